// The comparison of two commits, by what each command measured in both.
pages.compare = async site => {
  startPicking(site);
  const names = ["a", "b"].map(name => place().get(name) || "");
  names.forEach((name, i) => {
    byId("ab"[i]).value = name;
  });
  const commits = await Promise.all(names.map(async name => loadCommit(await positionOf(name))));
  commits.forEach((commit, i) =>
    fill(
      `${"ab"[i]}-is`,
      commit
        ? [h("span", {class: "mono"}, short(commit.checksum)), ` ${cut(firstLine(commit.subject), 90)}`]
        : names[i]
          ? h("span", {class: "worse"}, "There is no such commit, tag or branch here.")
          : "",
    ),
  );
  const [a, b] = commits;
  if (!a || !b) {
    byId("sentence").textContent = "Compare two commits";
    return fill(
      "result",
      h(
        "section",
        {class: "panel"},
        empty(
          "Choose two commits",
          "By a checksum, a tag or a branch. A Shift + click on two points of a chart comes here, too.",
        ),
        names.some(Boolean) ? null : await proposals(site),
      ),
    );
  }
  fill(
    "subtitle",
    cut(a.author, 40),
    ", ",
    day(a.date),
    " → ",
    cut(b.author, 40),
    ", ",
    day(b.date),
    ` · ${plural(Math.abs(b.at - a.at), "commit")} apart`,
  );
  const report = await reportOf(a.checksum, b.checksum);
  if (!report) return plainComparison(a, b, site);
  byId("sentence").textContent = sentenceOf(report.cases.flatMap(one => one.rows), b);
  return fill("result", reportParts(report, {most: 200}));
};

// What is compared most: the tag of the verdict with the head, and each of the newest changed commits with the one before.
async function proposals(site) {
  const [{verdict}, {changes}] = await Promise.all([load("overview"), load("changes")]);
  const newest = changes
    .filter((one, i, all) => all.findIndex(other => other.version.checksum === one.version.checksum) === i)
    .slice(0, 5);
  const rows = newest.map(({since, version}) => [
    compareLink(since.checksum, version.checksum),
    `${short(version.checksum)} ${cut(firstLine(version.subject), 90)}, beside the commit before`,
  ]);
  if (verdict.tag && site.head)
    rows.unshift([compareLink(verdict.tag.name, site.head), `${cut(verdict.tag.name, 60)} beside the newest commit`]);
  const items = rows.map(([href, text]) => h("li", {}, h("a", {href}, text)));
  return items.length ? h("ul", {class: "proposals"}, items) : null;
}

// The report of two commits; null where this site has none.
async function reportOf(a, b) {
  const {changes} = live ? {} : await load("changes");
  if (changes && !changes.some(one => one.report && one.since.checksum === a && one.version.checksum === b))
    return null;
  return load(`compare/${a}..${b}`).catch(problem =>
    problem.status === 404 ? null : Promise.reject(problem),
  );
}

// What is definite, and at worst how much.
function sentenceOf(rows, target) {
  const [bad, good] = ["worse", "better"].map(kind => rows.filter(row => kindOf(row.result) === kind)),
    name = short(target.checksum);
  if (!rows.length) return "These two have no measurement in common";
  if (!bad.length && !good.length)
    return `${name} changes nothing for certain, by ${plural(rows.length, "value")} of both`;
  const parts = [bad.length && `worse in ${bad.length}`, good.length && `better in ${good.length}`]
    .filter(Boolean)
    .join(" and ");
  const worst = bad.length ? `, at worst ${cut(bad[0].location || bad[0].name, 60)}: ${bad[0].text}` : "";
  return visible(`${name} is ${parts} of ${plural(rows.length, "value")}${worst}`).replaceAll(" %", "\u00a0%");
}

function startPicking(site) {
  const form = byId("pick");
  if (form.dataset.started) return;
  form.dataset.started = "yes";
  fill(
    "revisions",
    [...site.branches, ...[...site.tags].reverse()].slice(0, 300).map(one => h("option", {value: one.name})),
  );
  const go = () => {
    setPlace({a: byId("a").value.trim(), b: byId("b").value.trim()}, {push: true});
    draw();
  };
  form.addEventListener("submit", event => {
    event.preventDefault();
    go();
  });
  for (const name of ["a", "b"]) byId(name).addEventListener("change", go);
  byId("swap").addEventListener("click", () => {
    [byId("a").value, byId("b").value] = [byId("b").value, byId("a").value];
    go();
  });
}

// Without a report: the values of both, and the changes between them.
async function plainComparison(a, b, site) {
  const [old, now, {series}, {changes}] = await Promise.all([
    valuesAt(a.at, site),
    valuesAt(b.at, site),
    load("series"),
    load("changes"),
  ]);
  const names = new Map(series.map(one => [one.id, one])),
    [first, last] = [a.at, b.at].sort((one, other) => one - other);
  const side = (one, unit) => one && {text: measured(one.value, one.half, unit)};
  const rows = [...new Set([...now.keys(), ...old.keys()])]
    .filter(key => names.has((old.get(key) ?? now.get(key)).id))
    .map(key => {
      const {id, machine} = old.get(key) ?? now.get(key),
        one = names.get(id);
      return {
        name: one.name,
        series: id,
        below: [commandBelow(one), shortMachine(site, machine)].filter(Boolean).join(" · "),
        a: side(old.get(key), one.unit),
        b: side(now.get(key), one.unit),
        between: changes.filter(
          step => step.series === id && step.machine === machine && first < step.version.at && step.version.at <= last,
        ),
      };
    });
  rows.sort((one, other) => other.between.length - one.between.length);
  const changed = rows.filter(row => row.between.length).length;
  byId("sentence").textContent = rows.length
    ? `${short(b.checksum)} beside ${short(a.checksum)}: ${changed} of ${plural(rows.length, "value")} changed level`
    : "These two have no measurement in common";
  fill(
    "result",
    h(
      "div",
      {class: "notice"},
      "This site has the values and the changes between the two alone; ratios, distributions, functions and flame graphs of any two commits: ",
      commandLine("perun web serve"),
    ),
    rows.length
      ? h("section", {class: "panel case"}, h("header", {}, h("h2", {}, "Values")), valuesOfBoth(rows.slice(0, 300)))
      : h(
          "section",
          {class: "panel"},
          empty(
            "Nothing to compare",
            "At least one of them is not measured.",
            `perun run --minor ${short(b.checksum)} matrix`,
          ),
        ),
  );
}

const valuesOfBoth = rows =>
  table(
    [
      {
        title: "Where",
        name: true,
        sort: row => row.name,
        cell: row => [
          h("a", {href: seriesLink(row.series)}, cut(row.name, 140)),
          h("div", {class: "muted small"}, row.below),
        ],
      },
      {title: "Baseline", end: true, cell: row => valueCell(row.a)},
      {title: "Target", end: true, cell: row => valueCell(row.b)},
      {
        title: "Changes between",
        cell: row =>
          row.between.map(step =>
            h("div", {}, changeSize(step), h("a", {class: "mono small", href: commitLink(step.version.checksum)}, ` ${short(step.version.checksum)}`)),
          ),
      },
    ],
    rows,
    {label: "Values of both commits"},
  );
