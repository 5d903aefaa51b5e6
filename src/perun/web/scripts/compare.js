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
  const rows = report.cases.flatMap(one => one.rows);
  byId("sentence").textContent = sentenceOf(
    rows,
    row => /Degradation/.test(row.result),
    row => /Optimization/.test(row.result),
    b,
  );
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

function sentenceOf(rows, isBad, isGood, target) {
  const bad = rows.filter(isBad),
    good = rows.filter(isGood),
    name = short(target.checksum);
  if (!rows.length) return "These two have no measurement in common";
  if (!bad.length && !good.length)
    return `${name} costs the same, by ${plural(rows.length, "value")} that both have`;
  const worst = bad.reduce(
    (one, other) =>
      !one || Math.abs(Math.log(other.ratio || 1)) > Math.abs(Math.log(one.ratio || 1)) ? other : one,
    null,
  );
  const parts = [bad.length && `worse in ${bad.length}`, good.length && `better in ${good.length}`]
    .filter(Boolean)
    .join(" and ");
  return visible(
    `${name} is ${parts} of ${plural(rows.length, "value")}` +
      (worst ? `, at worst ${cut(worst.location || worst.title, 60)}: ${change(worst.ratio)}` : ""),
  ).replaceAll(" %", "\u00a0%");
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

// Without a report: the values that both have.
async function plainComparison(a, b, site) {
  const [old, now, {series}] = await Promise.all([
    valuesAt(a.at, site),
    valuesAt(b.at, site),
    load("series"),
  ]);
  const names = new Map(series.map(one => [one.id, one])),
    keys = [...new Set([...old.keys(), ...now.keys()])];
  const rows = keys
    .filter(key => names.has((old.get(key) ?? now.get(key)).id))
    .map(key => {
      const [before, after] = [old.get(key), now.get(key)],
        one = names.get((before ?? after).id),
        both = before && after && before.value > 0;
      const interval = both && before.low > 0 ? [after.low / before.high, after.high / before.low] : null;
      const apart = both && (interval ? interval[0] > 1 || interval[1] < 1 : before.value !== after.value);
      const ratio = both ? after.value / before.value : null;
      return {
        location: nameOf(one),
        metric: [commandBelow(one), shortMachine(site, (before ?? after).machine)].filter(Boolean).join(" · "),
        unit: one.unit,
        exact: one.exact,
        series: one.id,
        ratio,
        interval: one.exact ? null : interval,
        a: before && {value: before.value, interval: [before.low, before.high]},
        b: after && {value: after.value, interval: [after.low, after.high]},
        result: !apart ? "NoChange" : isWorse(ratio, one.larger_is_better) ? "Degradation" : "Optimization",
      };
    });
  rows.sort((one, other) => Math.abs(Math.log(other.ratio || 1)) - Math.abs(Math.log(one.ratio || 1)));
  byId("sentence").textContent = sentenceOf(
    rows.filter(row => row.ratio),
    row => row.result === "Degradation",
    row => row.result === "Optimization",
    b,
  );
  fill(
    "result",
    h(
      "div",
      {class: "notice"},
      "By the stored values alone; distributions, functions and flame graphs of any two commits: ",
      commandLine("perun web serve"),
    ),
    rows.length
      ? casePart({title: "Values", rows, models: [], samples: [], flame: null}, 300)
      : h(
          "section",
          {class: "panel"},
          empty(
            "Nothing to compare",
            "At least one of them is not measured.",
            `perun run matrix --minor-version ${short(b.checksum)}`,
          ),
        ),
  );
}
