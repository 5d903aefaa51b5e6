// Changes as rows: how much, of what, since which commit, by whom.

// The changes of one commit together, in the order in which the first of each comes.
function byCommit(changes) {
  const groups = new Map();
  for (const one of changes) {
    const key = one.version.checksum;
    groups.set(key, [...(groups.get(key) || []), one]);
  }
  return [...groups.values()];
}

function changeRow(one, others = [], who = commitOfChange) {
  const {version} = one,
    acknowledged = one.acknowledged;
  return h(
    "li",
    {
      class: `change ${acknowledged ? "known" : ""}`,
      "data-row": seriesLink(one.series, {c: version.checksum}),
    },
    h(
      "div",
      {class: "size"},
      changeSize(one),
      h("small", {}, one.exact ? `${one.word}, exact` : one.word),
    ),
    h(
      "div",
      {class: "what"},
      h("a", {class: "name", href: seriesLink(one.series, {c: version.checksum})}, cut(one.name, 120)),
      h(
        "small",
        {title: one.command},
        [one.sides.join(" → "), cut(commandBelow(one), 90)]
          .filter(Boolean)
          .join(" · "),
      ),
    ),
    one.spark
      ? spark(one.spark.value, {change: one.spark.change, worse: acknowledged ? null : one.degradation})
      : h("span", {class: "wide-only"}),
    h("div", {class: "who"}, who(one)),
    h(
      "div",
      {class: "marks"},
      marks(one),
      others.length > 0 &&
        h("a", {class: "chip", href: commitLink(version.checksum)}, `and ${others.length} more of it`),
    ),
  );
}

const commitOfChange = ({version, possible}) => [
  h(
    "a",
    {href: commitLink(version.checksum), title: firstLine(version.subject)},
    h("span", {class: "mono"}, short(version.checksum)),
    " ",
    cut(firstLine(version.subject), 90),
  ),
  h(
    "small",
    {},
    cut(version.author, 40),
    ", ",
    when(version.date),
    possible > 1 ? `, or ${possible === 2 ? "the commit" : `one of ${possible - 1} commits`} before it` : "",
  ),
];

// Degradation +34 % [+30, +38]: in the words of `perun changes`.
const changeText = one => `${one.word} ${one.text}`;

// +34 % [+30, +38], with an arrow, so that the direction does not hang on the colour.
function changeSize(one) {
  const up = !one.text.startsWith("-");
  return h(
    "span",
    {class: one.acknowledged ? "muted" : one.degradation ? "worse" : "better"},
    h("span", {"aria-hidden": "true"}, up ? "▲ " : "▼ "),
    one.text,
    h("span", {class: "hidden-text"}, ` ${one.degradation ? "worse" : "better"}`),
  );
}

function marks(one) {
  const until = one.acknowledged?.until ? ` until ${one.acknowledged.until}` : "";
  return [
    one.acknowledged &&
      h("span", {class: "chip", title: one.acknowledged.because || null}, `acknowledged${until}`),
    one.taken_back &&
      h("a", {class: "chip", href: commitLink(one.taken_back)}, `taken back by ${short(one.taken_back)}`),
    one.takes_back &&
      h("a", {class: "chip", href: commitLink(one.takes_back)}, `takes back ${short(one.takes_back)}`),
    one.moved_with?.length > 0 &&
      h("span", {class: "chip", title: one.moved_with.slice(0, 8).join("\n")}, "cost moved"),
    one.conditions?.length > 0 &&
      h(
        "span",
        {class: "chip mark", title: `Changed with it: ${one.conditions.join(", ")}`},
        "machine changed too",
      ),
  ];
}

const changeList = (groups, label, who) =>
  h(
    "ul",
    {class: "changes", "aria-label": label},
    groups.map(([first, ...others]) => changeRow(first, others, who)),
  );

// A button that acknowledges a change, where this server lets us.
function acknowledgeButton(one, site) {
  if (!live || !site.can_acknowledge || !one.degradation || one.acknowledged || !token()) return null;
  return h("button", {type: "button", onclick: () => acknowledge(one)}, "Acknowledge");
}

function acknowledge(one) {
  const because = h("input", {name: "because", maxlength: "400"}),
    until = h("input", {name: "until", type: "date"});
  const problem = h("p", {class: "worse", role: "alert"});
  const form = h(
    "form",
    {method: "dialog"},
    h("h2", {}, `Acknowledge ${one.text} of ${cut(one.name, 80)}`),
    h("label", {}, "Why it is accepted", because),
    h("label", {}, "Until (for ever where empty)", until),
    problem,
    h(
      "div",
      {class: "buttons"},
      h("button", {type: "button", onclick: () => box.close()}, "Cancel"),
      h("button", {class: "main"}, "Acknowledge"),
    ),
  );
  const box = h("dialog", {"aria-label": "Acknowledge a change"}, form);
  form.addEventListener("submit", async event => {
    event.preventDefault();
    const body = JSON.stringify({
      version: one.version.checksum,
      location: one.location,
      because: because.value,
      until: until.value,
    });
    const answer = await fetch("api/ack", {
      method: "POST",
      body,
      headers: {"Content-Type": "application/json", Authorization: `Bearer ${token()}`},
    }).catch(() => null);
    if (answer?.ok) {
      box.close();
      refresh();
      return;
    }
    const said = await answer?.json().catch(() => null);
    problem.textContent = visible(said?.error || "The server does not answer.");
  });
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  box.showModal();
}

// The token of the address that `perun web serve` opened: kept for this tab, and taken out of the address.
function token() {
  try {
    return sessionStorage.getItem("perun.token") || "";
  } catch {
    return "";
  }
}
function keepToken() {
  const found = /^#token=([\w-]+)$/.exec(location.hash);
  if (!found) return;
  try {
    sessionStorage.setItem("perun.token", found[1]);
  } catch {
    /* without it nothing can be acknowledged */
  }
  history.replaceState(null, "", location.pathname + location.search);
}
