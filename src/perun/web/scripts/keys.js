// Keys that work everywhere: / j k Enter ? t, g and a letter, and those of a page (keysOfPage).
const keysOfPage = {};

function startKeys() {
  let going = false;
  document.addEventListener("keydown", event => {
    // A dialog that was closed just now may hold the focus until the next frame.
    const inside = event.target.closest("input, select, textarea, dialog[open]");
    if (event.ctrlKey || event.metaKey || event.altKey || inside) return;
    const key = event.key,
      goes = going && [...document.querySelectorAll("nav a[data-key]")].find(one => one.dataset.key === key);
    going = false;
    if (goes) location.assign(goes.href);
    else if (key === "g") going = true;
    else if (key === "/") byId("search").focus();
    else if (key === "?") byId("keys").showModal();
    else if (key === "t") nextTheme();
    else if (key === "j" || key === "k") stepRow(key === "j" ? 1 : -1);
    else if (key === "Enter" && event.target === document.body) openRow();
    else if (Object.hasOwn(keysOfPage, key)) keysOfPage[key]();
    else return;
    event.preventDefault();
  });
  byId("help").addEventListener("click", () => byId("keys").showModal());
  byId("keys").addEventListener("click", event => {
    if (event.target.closest("[data-close]") || event.target === byId("keys")) byId("keys").close();
  });
  byId("theme").addEventListener("click", nextTheme);
}

// Rows of lists and tables, in the order of the page.
const rowsShown = () =>
  [...document.querySelectorAll("main [data-row]")].filter(row => row.offsetParent !== null);
function stepRow(by) {
  const rows = rowsShown(),
    now = rows.findIndex(row => row.classList.contains("at"));
  const next =
    rows[now < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.max(0, Math.min(rows.length - 1, now + by))];
  if (!next) return;
  rows[now]?.classList.remove("at");
  next.classList.add("at");
  next.scrollIntoView({block: "nearest"});
  // So that Enter and screen readers are where the eye is.
  (next.querySelector("a") || next).focus({preventScroll: true});
}
function openRow() {
  const row = document.querySelector("main [data-row].at");
  if (row?.dataset.row) location.assign(row.dataset.row);
}

// As the system has it, then the other way, then as the system again.
function nextTheme() {
  const dark = document.documentElement.hasAttribute("data-dark");
  try {
    if (localStorage.getItem("perun.theme")) localStorage.removeItem("perun.theme");
    else localStorage.setItem("perun.theme", dark ? "light" : "dark");
  } catch {
    return;
  }
  dispatchEvent(new Event("perun-theme-chosen"));
}
