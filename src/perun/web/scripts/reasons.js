// Why a commit costs what it does, as `perun explain` found it: functions, worst first, with their lines of the diff.
async function commitReasons(own, commit, site) {
  const worse = own.some(one => one.degradation);
  if (!site.explained.includes(commit.at)) {
    byId("reasons").hidden = !worse;
    if (worse)
      panel(
        "reasons",
        empty(
          "Not explained yet",
          "Which functions cost more, and the lines of the commit that changed them:",
          `perun explain ${short(commit.checksum)}`,
        ),
      );
    return;
  }
  try {
    const found = await load(`explained/${commit.checksum}`);
    const notes = h("ul", {class: "small"}, found.notes.map(text => h("li", {class: "text"}, cut(text, 400))));
    panel("reasons", [found.notes.length > 0 && notes, found.cases.map(reasonsOf), otherFiles(found)], {
      note: [
        "Found by perun explain, against ",
        h("a", {class: "mono", href: commitLink(found.a.checksum)}, short(found.a.checksum)),
      ],
    });
  } catch (problem) {
    panel("reasons", empty("The reasons cannot be shown", problem.message, problem.hint));
  }
}

function reasonsOf(one) {
  const totals = one.totals.filter(cost => cost.before || cost.after);
  return h(
    "section",
    {class: "reasons", "aria-label": one.title},
    h("h3", {class: "name mono"}, cut(one.title, 200)),
    totals.length > 0 && h("ul", {class: "costs"}, totals.map(cost => costLine(cost))),
    one.functions.length
      ? h("ol", {class: "functions"}, one.functions.map(functionOf))
      : h("p", {}, "No function costs more or less than before."),
    one.more + one.smaller > 0 &&
      h("p", {class: "muted small"}, `${plural(one.more + one.smaller, "more function")} changed, by less.`),
    one.unseen.length > 0 &&
      h(
        "details",
        {},
        h("summary", {class: "small"}, "What could not be seen"),
        h(
          "ul",
          {class: "small muted"},
          one.unseen.map(text => h("li", {class: "text"}, cut(text, 400))),
        ),
      ),
  );
}

function functionOf(one) {
  return h(
    "li",
    {class: one.worse ? "is-worse" : "is-better"},
    h("p", {class: "text"}, cut(one.sentence, 600)),
    h("ul", {class: "costs"}, one.costs.slice(0, 4).map(cost => costLine(cost, true))),
    one.growth && h("p", {class: "small mono text"}, `${cut(one.growth[0], 120)} → ${cut(one.growth[1], 120)}`),
    one.diffs.map(diffOf),
  );
}

// instructions 22 M → 43 M, 1.9x
function costLine(cost, ofFunction = false) {
  const grew = cost.after > cost.before,
    share = ofFunction && known(cost.share) && Math.abs(cost.share) < 1 && cost.of_whole;
  return h(
    "li",
    {},
    h("span", {class: "muted"}, cut(cost.metric, 60)),
    " ",
    h("span", {class: cost.before === cost.after ? "" : grew ? "worse" : "better"}, cost.text),
    share ? h("span", {class: "muted"}, ` ${share} of the program`) : "",
  );
}

function diffOf(one) {
  const kinds = {"+": "added", "-": "removed"};
  return h(
    "figure",
    {class: "diff"},
    h("figcaption", {class: "mono"}, cut(one.place, 200)),
    h(
      "div",
      {class: "scroll", tabindex: "0", role: "region", "aria-label": `Changed lines of ${cut(one.place, 100)}`},
      h(
        "table",
        {},
        h(
          "tbody",
          {},
          one.lines.map(line =>
            h(
              "tr",
              {class: kinds[line.mark] || null},
              h("td", {class: "number"}, line.old ? String(line.old) : ""),
              h("td", {class: "number"}, line.new ? String(line.new) : ""),
              h("td", {}, line.mark + cut(line.text, 400)),
            ),
          ),
        ),
      ),
    ),
    one.more > 0 && h("p", {class: "small muted more"}, `and ${plural(one.more, "more line")}`),
  );
}

const otherFiles = ({others}) =>
  others.length > 0 &&
  h("p", {class: "small muted below text"}, `Also in the diff: ${cut(others.slice(0, 20).join(", "), 800)}`);
