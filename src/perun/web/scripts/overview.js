// The overview: the verdict since the last tag, series by commits, what changed, and the series at a glance.
pages.overview = async site => {
  const data = await load("overview");
  verdict(data.verdict, site);
  if (!site.measured) return nothingMeasured(site);
  const fits = onMachine(site),
    changes = data.changes.filter(one => fits(one.machine));
  heatOfOverview({...data.heat, rows: data.heat.rows.filter(row => fits(row.machine))}, data.verdict.tag, changes, site);
  changesOfOverview(changes, data.verdict.tag, site);
  const multiples = data.multiples.filter(
    (one, i, all) => all.findIndex(other => other.series.id === one.series.id) === i,
  );
  const brief = shortCommands(multiples.map(one => one.series));
  byId("multiples").hidden = !multiples.length;
  panel("multiples", h("div", {class: "multiples"}, multiples.map(one => multiple(one, brief))), {
    note: [
      `The last values of ${plural(multiples.length, "series")}`,
      multiples.length < site.series && ` of ${site.series.toLocaleString("en-US")}`,
    ],
    tools: multiples.length < site.series && h("a", {href: link("series")}, "All series"),
  });
  return undefined;
};

function verdict(data, site) {
  const place = byId("verdict"),
    counts = [
      ["worse", "got worse"],
      ["same", "stayed the same"],
      ["better", "got better"],
      ["unknown", "not known"],
    ]
      .map(([name, text]) => ({name, text, count: data[name] || 0}))
      .filter(one => one.count);
  place.querySelector("h1").textContent = visible(data.sentence).replaceAll(" %", "\u00a0%");
  const whole = counts.reduce((sum, one) => sum + one.count, 0);
  const bar = h(
    "div",
    {class: "shares", "aria-hidden": "true"},
    counts.map(one => h("span", {class: `s-${one.name}`})),
  );
  counts.forEach((one, i) => {
    bar.children[i].style.flex = `${one.count} 1 0`;
  });
  const since = data.tag
    ? [
        " since ",
        h("a", {href: compareLink(data.tag.name, site.head || "HEAD")}, cut(data.tag.name, 60)),
        known(data.tag.date) ? [", ", when(data.tag.date)] : "",
      ]
    : " along the whole history, as there is no tag";
  fill(
    "verdict-body",
    !whole && data.details && h("p", {}, data.details),
    whole > 0 && bar,
    whole > 0 &&
      h(
        "ul",
        {class: "counts", "aria-label": "Series"},
        counts.map(one =>
          h(
            "li",
            {class: one.name === "same" || one.name === "unknown" ? "muted" : one.name},
            h("b", {}, one.count.toLocaleString("en-US")),
            ` ${one.text}`,
            one.name === "worse" && data.acknowledged > 0 && `, ${data.acknowledged} of them acknowledged`,
          ),
        ),
        h("li", {class: "muted"}, since),
      ),
  );
  place.removeAttribute("aria-busy");
}

function nothingMeasured(site) {
  panel(
    "heat",
    empty(
      "Nothing is measured yet",
      "Each measured commit becomes a column here, each series a row.",
      hintOf(site),
    ),
  );
  for (const id of ["changes", "multiples"]) byId(id).hidden = true;
}

const HEAT_ROWS = 10;

function heatOfOverview(heat, tag, changes, site) {
  if (!heat.rows.length) return panel("heat", otherMachine(site));
  const rows = labelled(heat.rows.slice(0, HEAT_ROWS), site),
    places = heat.commits.map(commit => commit.at);
  const map = new HeatMap(
    rows,
    places,
    {
      tell: (row, column) => cellLines(row, column, heat.commits[column]),
      open: (row, column, event) => openCell(row, heat.commits[column].checksum, event),
    },
    row => levelUntil(row, places, tag, changes),
  );
  map.dated([heat.commits[0], heat.commits.at(-1)].map(commit => commit.date));
  return panel("heat", map.element, {
    note: [
      tag && places[0] <= tag.at
        ? "Measured commits"
        : places.length > 1
          ? `The newest ${plural(places.length, "measured commit")}`
          : "The one measured commit",
      tag
        ? `, beside the level at ${cut(tag.name, 40)}`
        : places.length > 1 && ", beside the oldest of them",
    ],
    tools: [heatScale(map), h("a", {href: link("grid")}, "All series")],
  });
}

// The level of a row at the tag: the median of its newest values until then; where these are not here, the level
// before its first change since, or its median where nothing changed. Without a tag that of its oldest values.
function levelUntil(row, places, tag, changes) {
  const finite = row.value.map((one, i) => [one, places[i]]).filter(([one]) => isPositive(one));
  if (!finite.length) return null;
  const until = finite.filter(([, at]) => !tag || at <= tag.at);
  if (until.length) return median((tag ? until.slice(-10) : until.slice(0, 8)).map(([one]) => one));
  const since = changes
    .filter(one => one.series === row.series && one.machine === row.machine && one.version.at > tag.at)
    .sort((a, b) => a.version.at - b.version.at);
  return since.length ? since[0].before.value : median(finite.map(([one]) => one));
}

// A cell: the value, how it compares with its row, the commit.
function cellLines(row, column, commit) {
  const value = row.value[column],
    shift = row.shift[column];
  return [
    h("b", {}, known(value) ? amount(value, row.unit) : "not measured"),
    shift !== null &&
      h(
        "div",
        {class: "line"},
        change(Math.exp(row.larger_is_better ? -shift : shift)),
        ` beside the level before, ${cut(row.title, 80)}`,
      ),
    shift === null && h("div", {class: "line"}, cut(row.title, 100)),
    h(
      "div",
      {class: "line strong"},
      h("span", {class: "mono"}, short(commit.checksum)),
      " ",
      cut(firstLine(commit.subject || ""), 120),
    ),
    h("div", {class: "line"}, commit.author ? `${cut(commit.author, 60)}, ` : "", day(commit.date)),
  ];
}
function openCell(row, checksum, event) {
  const address = event.shiftKey
    ? seriesLink(row.series, {c: checksum})
    : commitLink(checksum, {series: row.series});
  if (event.ctrlKey || event.metaKey) open(address);
  else location.assign(address);
}

function changesOfOverview(changes, tag, site) {
  if (!changes.length) {
    const text =
      site.measured < 6
        ? "A change of level shows from some six measured commits on: measure more of the history."
        : "No series changed its level in the commits that are measured.";
    return panel("changes", empty("No changes", text, site.measured < 6 ? hintOf(site) : "perun changes"));
  }
  const groups = byCommit(changes);
  return panel("changes", changeList(groups, "Changes, worst first"), {
    note:
      tag && changes.every(one => one.version.at <= tag.at)
        ? `None since ${cut(tag.name, 40)}: the newest before`
        : "Worst first; what is acknowledged comes last",
    tools: h("a", {href: "feed.atom"}, "Feed"),
  });
}

function multiple({series: one, spark: values}, brief) {
  return h(
    "a",
    {
      class: "multiple",
      href: seriesLink(one.id),
      "data-row": seriesLink(one.id),
      title: `${one.title}\n${one.command}`,
    },
    h("span", {class: "title name"}, cut(isWhole(one) ? brief(one.command) : nameOf(one), 80)),
    spark(values, {width: 240, height: 42}),
    h("span", {class: "now"}, amount(one.latest, one.unit)),
    h(
      "span",
      {class: "sub"},
      h("span", {}, cut(isWhole(one) ? metricOfWhole(one) : brief(one.command), 60)),
      h(
        "span",
        {class: "number", title: "the last value beside the median of those shown"},
        lastMove(values),
      ),
    ),
  );
}
// How the last value differs from the median of those shown.
function lastMove(values) {
  const finite = values.filter(value => known(value) && value > 0);
  return finite.length > 2 ? change(finite.at(-1) / median(finite)) : "";
}
