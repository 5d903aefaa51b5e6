// The overview: the verdict since the last tag, the benchmarks, what changed, and their values by commits.
pages.overview = async site => {
  const data = await load("overview");
  verdict(data.verdict, site);
  if (!site.measured) return nothingMeasured(site);
  const fits = onMachine(site),
    changes = data.changes.filter(one => fits(one.machine));
  benchmarks(data, fits, site);
  changesOfOverview(changes, data.verdict.tag, site);
  record(data.record);
  heatOfOverview(withValues(data.heat.commits, data.heat.rows.filter(row => fits(row.machine))), data.verdict.tag, changes, site);
  return undefined;
};

const STATES = [
  ["worse", "got worse"],
  ["same", "stayed the same"],
  ["better", "got better"],
  ["unknown", "not known"],
];

function verdict(data, site) {
  const place = byId("verdict"),
    counts = STATES.map(([name, text]) => ({name, text, count: data[name] || 0})).filter(one => one.count);
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
        {class: "counts", "aria-label": "Benchmarks"},
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
    data.doubtful > 0 &&
      h(
        "div",
        {class: "doubtful muted small"},
        `${plural(data.doubtful, "doubtful change")}, seen once or hardly beyond the noise. Most of them decides `,
        commandLine(data.decides),
      ),
  );
  place.removeAttribute("aria-busy");
}

// A line for each benchmark by its headline; the workloads of a family, and parts and details, below it on demand.
function benchmarks(data, fits, site) {
  const rows = data.benchmarks
    .map(one => ({...one, members: one.members.filter(own => fits(own.machine))}))
    .filter(one => one.members.length);
  if (!rows.length) {
    byId("benchmarks").hidden = true;
    return;
  }
  panel("benchmarks", h("ul", {class: "benchmarks", "aria-label": "Benchmarks"}, grouped(rows, site)), {
    note: [
      plural(rows.reduce((sum, one) => sum + one.members.length, 0), "benchmark"),
      data.more > 0 && `; ${data.more.toLocaleString("en-US")} more are not shown`,
      ", what changed first",
    ],
    tools: h("a", {href: link("series")}, `All ${plural(site.series, "series")}`),
  });
}

// The lines of commands, and those of suites below their package or file, in the order of the worst of each.
function grouped(rows, site) {
  const groups = new Map();
  for (const one of rows) {
    const key = one.group || one;
    groups.set(key, [...(groups.get(key) || []), one]);
  }
  return [...groups].map(([key, own]) => {
    if (own.length === 1) return benchmark(own[0], site);
    const states = STATES.filter(([name]) => name === "worse" || name === "better")
      .map(([name, text]) => [own.filter(one => one.members[0].state === name).length, text])
      .filter(([count]) => count);
    return h(
      "li",
      {class: "suite"},
      h(
        "details",
        {open: states.length > 0 || rows.length <= 30},
        h(
          "summary",
          {},
          h("b", {}, cut(key, 90)),
          h("span", {class: "muted"}, [plural(own.length, "benchmark"), ...states.map(one => one.join(" "))].join(", ")),
        ),
        h("ul", {class: "benchmarks"}, own.map(one => benchmark({...one, name: inside(one.name, key)}, site))),
      ),
    );
  });
}
const inside = (name, group) => (name.startsWith(group) ? name.slice(group.length).replace(/^(::|[/.])/, "") : name);

function benchmark({name, metric, members}, site) {
  const [first] = members,
    {series} = first,
    parts = [...new Set(members.flatMap(one => one.parts))];
  const folded = h("div");
  const fold = h(
    "details",
    {
      ontoggle: async () => {
        if (!fold.open || folded.firstChild) return;
        const {series: all} = await load("series"),
          chosen = new Set([...(members.length > 1 ? members.map(one => one.series.id) : []), ...parts]);
        fill(folded, seriesTable(all.filter(one => chosen.has(one.id)), {label: `Parts of ${cut(name, 80)}`}));
      },
    },
    h(
      "summary",
      {class: "small"},
      [
        members.length > 1 && `${members.length} workloads`,
        parts.length > 0 && `${plural(parts.length, "part")} and details`,
      ]
        .filter(Boolean)
        .join(", "),
    ),
    folded,
  );
  return h(
    "li",
    {class: `benchmark is-${first.state}`, "data-row": seriesLink(series.id)},
    h(
      "div",
      {class: "what"},
      h("a", {class: "name", href: seriesLink(series.id), title: `${series.title}\n${series.command}`}, cut(name, 90)),
      h(
        "small",
        {class: "muted"},
        [members.length > 1 ? series.name : metric, shortMachine(site, first.machine)].filter(Boolean).join(" · "),
      ),
    ),
    spark(first.spark, {width: 240, height: 34}),
    h("b", {class: "now number"}, series.text || "–"),
    h("div", {class: "state"}, benchmarkState(first)),
    (members.length > 1 || parts.length > 0) && fold,
  );
}
function benchmarkState({state, change}) {
  if (!change) return h("span", {class: "muted"}, Object.fromEntries(STATES)[state]);
  return [
    changeSize(change),
    h("small", {}, h("a", {href: commitLink(change.version.checksum)}, `since ${short(change.version.checksum)}`)),
  ];
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
  for (const id of ["changes", "benchmarks", "record"]) byId(id).hidden = true;
}

const HEAT_ROWS = 10;

function heatOfOverview(heat, tag, changes, site) {
  if (!heat.rows.length) return panel("heat", otherMachine(site));
  const rows = labelled(heat.rows.slice(0, HEAT_ROWS), site),
    {at: commits} = heat,
    places = commits.map(commit => commit.at);
  const map = new HeatMap(
    rows,
    places,
    {
      tell: (row, column) => cellLines(row, column, commits[column], changes),
      open: (row, column, event) => openCell(row, commits[column].checksum, event),
    },
    row => levelUntil(row, places, tag, changes),
  );
  map.dated([commits[0], commits.at(-1)].map(commit => commit.date));
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
  const finite = row.value.map((one, i) => [one, places[i]]).filter(([one]) => known(one));
  if (!finite.length) return null;
  const until = finite.filter(([, at]) => !tag || at <= tag.at);
  if (until.length) return median((tag ? until.slice(-10) : until.slice(0, 8)).map(([one]) => one));
  const since = changes
    .filter(one => one.series === row.series && one.machine === row.machine && one.version.at > tag.at)
    .sort((a, b) => a.version.at - b.version.at);
  return since.length ? since[0].before.value : median(finite.map(([one]) => one));
}

// A cell: the value, what changed there, the commit.
function cellLines(row, column, commit, changes) {
  const value = row.value[column],
    own = changes.find(one => one.series === row.series && one.machine === row.machine && one.version.at === commit.at);
  return [
    h("b", {}, known(value) ? amount(value, row.unit) : "not measured"),
    own && h("div", {class: own.degradation ? "worse" : "better"}, changeText(own)),
    h("div", {class: "line"}, cut(row.title, 100)),
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

// What a gate fails on, by the month of the commit.
function record(months) {
  byId("record").hidden = !months.length;
  if (!months.length) return;
  const count = (title, key) => ({title, end: true, sort: one => one[key], cell: one => one[key].toLocaleString("en-US")});
  const columns = [
    {title: "Month", name: true, sort: one => one.month, cell: one => one.month},
    count("Slower", "alerts"),
    count("Acknowledged", "acknowledged"),
    count("Taken back", "taken_back"),
  ];
  panel("record", table(columns, months, {label: "The record by month"}), {
    note: "Degradations of benchmarks that commits brought",
  });
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

