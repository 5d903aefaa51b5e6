// Elements. Texts of a repository only ever become text nodes, values of attributes that are no addresses, or pixels.
const pages = {};

function filled(made, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : typeof value === "string" ? visible(value) : value);
  }
  for (const child of children.flat(3))
    if (child !== null && child !== undefined && child !== false)
      made.append(typeof child === "string" ? visible(child) : child);
  return made;
}
// An element: h("a", {class: "name", href: address, onclick: does}, "text", another, [more]).
const h = (name, attributes = {}, ...children) => filled(document.createElement(name), attributes, children);
const svg = (name, attributes = {}, ...children) =>
  filled(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);

const fill = (id, ...children) => {
  const place = typeof id === "string" ? byId(id) : id;
  place.replaceChildren();
  return filled(place, {}, children);
};

// The body of a panel, which is no longer busy then; its note and its tools where they are given.
function panel(id, body, {note, tools, title} = {}) {
  fill(`${id}-body`, body);
  if (title !== undefined) fill(`${id}-title`, title);
  if (note !== undefined) fill(`${id}-note`, note);
  if (tools !== undefined) fill(`${id}-tools`, tools);
  const made = byId(id);
  made.removeAttribute("aria-busy");
  made.hidden = false;
}

// What to say where there is nothing to show, and which command changes that.
const empty = (title, text, command) =>
  h("div", {class: "empty"}, h("b", {}, title), text, command && h("div", {}, commandLine(command)));

function commandLine(command) {
  const button = h("button", {type: "button", "aria-label": `Copy ${command}`}, "Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(command);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Select it";
      getSelection().selectAllChildren(button.previousSibling);
    }
    setTimeout(() => {
      button.textContent = "Copy";
    }, 1500);
  });
  return h("span", {class: "command"}, h("code", {}, command), button);
}

// A group of buttons of which one is pressed: choose([["50", "50 commits"], ...], "50", value => ...).
function choose(label, choices, chosen, changed) {
  const buttons = choices.map(([value, text]) =>
    h(
      "button",
      {
        type: "button",
        "aria-pressed": String(value === chosen),
        "data-value": value,
        onclick: event => {
          buttons.forEach(one => one.setAttribute("aria-pressed", String(one === event.currentTarget)));
          changed(value);
        },
      },
      text,
    ),
  );
  return h("span", {class: "group", role: "group", "aria-label": label}, buttons);
}

// A table of rows that j and k go through: columns [{title, end, sort: row => number or text, cell: row => node}].
// stacked: on a phone, the cells of a row stand below each other.
function table(columns, rows, {label, address, sort, changed, stacked, attributes = () => ({})} = {}) {
  let order = sort || "";
  const head = h("tr"),
    body = h("tbody");
  const draw = () => {
    const [name, direction] = order.split(":");
    const by = columns.find(column => column.sort && column.title === name);
    const sorted = by
      ? [...rows].sort((a, b) => compareValues(by.sort(a), by.sort(b)) * (direction === "down" ? -1 : 1))
      : rows;
    head.replaceChildren(
      ...columns.map(column => {
        const active = column === by;
        const next = active && direction === "up" ? "down" : active ? "up" : column.end ? "down" : "up";
        return h(
          column.title ? "th" : "td",
          {
            scope: column.title ? "col" : null,
            class: `${column.end ? "end" : ""} ${column.wide ? "wide-only" : ""}`.trim() || null,
            "aria-sort": active ? (direction === "down" ? "descending" : "ascending") : null,
          },
          column.sort
            ? h(
                "button",
                {
                  type: "button",
                  onclick: () => {
                    order = `${column.title}:${next}`;
                    changed?.(order);
                    draw();
                  },
                },
                column.title,
                active ? (direction === "down" ? " ↓" : " ↑") : "",
              )
            : column.title,
        );
      }),
    );
    body.replaceChildren(
      ...sorted.map(row =>
        h(
          "tr",
          {"data-row": address?.(row) ?? null, ...attributes(row)},
          columns.map(column =>
            h(
              "td",
              {
                class:
                  [
                    column.end && "end number",
                    column.number && "number",
                    column.name && "name",
                    column.wide && "wide-only",
                  ]
                    .filter(Boolean)
                    .join(" ") || null,
              },
              column.cell(row),
            ),
          ),
        ),
      ),
    );
  };
  draw();
  return h(
    "div",
    {class: "scroll", tabindex: "0", role: "region", "aria-label": `${label}, table`},
    h("table", {class: stacked ? "rows stacked" : "rows"}, h("thead", {}, head), body),
  );
}

function compareValues(a, b) {
  if (a === null || a === undefined) return b === null || b === undefined ? 0 : 1;
  if (b === null || b === undefined) return -1;
  return typeof a === "string" ? a.localeCompare(b) : a - b;
}
