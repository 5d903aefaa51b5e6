// Where one is: the page, what it shows, and the context that links carry on, all in the address.
const CONTEXT = ["machine", "branch"];
const place = () => new URLSearchParams(location.search);

// The address of a page; what belongs to the context comes from the present address, unless it is given.
function link(page, values = {}) {
  const here = place(),
    query = new URLSearchParams();
  for (const name of CONTEXT) if (here.has(name)) query.set(name, here.get(name));
  for (const [name, value] of Object.entries(values))
    if (value === null || value === undefined || value === "") query.delete(name);
    else query.set(name, value);
  const file = page === "overview" ? "index.html" : `${page}.html`;
  return query.size ? `${file}?${query}` : file;
}

// Change the address of this page; `push` makes a step that the browser goes back over.
function setPlace(values, {push = false} = {}) {
  const query = place();
  for (const [name, value] of Object.entries(values))
    if (value === null || value === undefined || value === "") query.delete(name);
    else query.set(name, value);
  const address = location.pathname + (query.size ? `?${query}` : "");
  if (address === location.pathname + location.search) return;
  try {
    history[push ? "pushState" : "replaceState"](null, "", address);
  } catch {
    // too often in a moment: the next change says it
  }
  linkContext();
}

// The links of the bar carry the context.
function linkContext() {
  for (const one of document.querySelectorAll("a[data-link]"))
    one.setAttribute("href", link(one.dataset.link));
}

const seriesLink = (id, values = {}) => link("series", {id, ...values});
const commitLink = (checksum, values = {}) => link("commit", {c: checksum, ...values});
const compareLink = (a, b, values = {}) => link("compare", {a, b, ...values});
