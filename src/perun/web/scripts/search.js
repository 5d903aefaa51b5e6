// The search of the bar: series by the words of their names, commits by checksum or subject, tags and branches.
const MOST_FOUND = 12;

async function searched(text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  const [{series}, site, all] = await Promise.all([load("series"), load("site"), loadHistory()]);
  const found = [];
  const fits = name => words.every(word => name.includes(word));
  for (const one of series) {
    const title = one.title.toLowerCase();
    if (fits(title) || fits(`${title} ${one.command.toLowerCase()} ${one.collector} ${one.metric}`))
      found.push({
        kind: "series",
        title: one.title,
        more: one.command,
        href: seriesLink(one.id),
        rank: title.startsWith(words[0]) ? 0 : 1,
      });
  }
  found.sort((a, b) => a.rank - b.rank);
  for (const [kind, named] of [
    ["tag", site.tags],
    ["branch", site.branches],
  ])
    for (const one of named)
      if (known(one.at) && fits(one.name.toLowerCase()))
        found.push({kind, title: one.name, href: commitLink(all.short(one.at))});
  if (/^[0-9a-f]{4,40}$/i.test(text.trim())) {
    const at = all.find(text.trim()),
      commit = at < 0 ? null : await loadCommit(at);
    if (commit && commit.checksum.startsWith(text.trim().toLowerCase())) found.unshift(commitFound(commit));
  }
  if (found.length < MOST_FOUND && text.trim().length > 2)
    found.push(...(await commitsFound(fits, site, all)));
  return found.slice(0, MOST_FOUND);
}

const commitFound = commit => ({
  kind: "commit",
  title: firstLine(commit.subject) || short(commit.checksum),
  href: commitLink(commit.checksum),
  more: `${short(commit.checksum)}, ${commit.author}, ${day(commit.date)}`,
});

// Of commits the newest ones are searched by their words: older ones would all have to be loaded.
async function commitsFound(fits, site, all) {
  const last = Math.floor((all.count - 1) / site.chunk),
    found = [];
  for (const number of [last, last - 1].filter(one => one >= 0)) {
    const {commits} = await load(`commits/${number}`);
    for (const commit of [...commits].reverse())
      if (commit && fits(`${commit.subject} ${commit.author}`.toLowerCase())) found.push(commitFound(commit));
  }
  return found;
}

function startSearch() {
  const input = byId("search"),
    list = byId("found");
  let at = 0,
    number = 0,
    found = [];
  const close = () => {
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  };
  const mark = place => {
    at = place;
    for (const [i, item] of [...list.children].entries())
      item.setAttribute("aria-selected", String(i === at));
    const item = list.children[at];
    if (!item || !found.length) return;
    input.setAttribute("aria-activedescendant", item.id);
    item.scrollIntoView({block: "nearest"});
  };
  const draw = async () => {
    const mine = ++number;
    if (!input.value.trim()) return close();
    const items = await searched(input.value).catch(problem => problem);
    if (mine !== number) return undefined;
    found = Array.isArray(items) ? items : [];
    fill(
      list,
      found.length
        ? found.map((one, i) =>
            h(
              "li",
              {
                role: "option",
                id: `found-${i}`,
                "aria-selected": "false",
                onpointerdown: event => {
                  event.preventDefault();
                  location.assign(one.href);
                },
              },
              h("span", {class: "kind"}, one.kind),
              h("span", {class: "name"}, cut(one.title, 100)),
              one.more && h("div", {class: "muted small name"}, cut(one.more, 110)),
            ),
          )
        : h(
            "li",
            {class: "none", role: "option", "aria-disabled": "true"},
            Array.isArray(items) ? "Nothing has these words." : items.message,
          ),
    );
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
    mark(0);
    return undefined;
  };
  input.addEventListener("input", draw);
  input.addEventListener("focus", draw);
  input.addEventListener("blur", close);
  input.addEventListener("keydown", async event => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      mark((at + (event.key === "ArrowDown" ? 1 : -1) + found.length) % Math.max(found.length, 1));
    } else if (event.key === "Enter") {
      event.preventDefault();
      await draw();
      if (found[at]) location.assign(found[at].href);
    } else if (event.key === "Escape") {
      close();
      input.blur();
    }
  });
}
