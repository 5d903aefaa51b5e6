// The page of a series: its values along the commits; without an id, the list of all series.
let perunChart = null;
const RANGES = [
  ["50", "50"],
  ["200", "200"],
  ["1000", "1,000"],
  ["", "All"],
];

pages.series = async site => {
  const id = place().get("id");
  byId("one").hidden = !id;
  byId("steps").hidden = !id;
  if (!id) return seriesList(site);
  byId("list").hidden = true;
  let shown = false;
  // What is shown of the lines is up to the user, until the context says otherwise.
  const context = CONTEXT.map(name => place().get(name)).join();
  if (perunChart && perunChart.context !== context) perunChart = null;
  const update = (data, whole) => {
    if (!shown) seriesHead(data);
    showLines(data, whole(), site, all);
    shown = true;
  };
  const all = await loadHistory();
  const data = await loadSeries(id, update);
  update(data, () => data.lines);
  seriesHead(data);
  seriesSteps(data, site);
  return undefined;
};

function seriesHead({series, configuration}) {
  document.title = `${visible(cut(series.name, 80))} · ${document.querySelector(".brand span").textContent}`;
  document.querySelector("#head h1").textContent = visible(cut(series.name, 300));
  const texts = [
    configuration.collector,
    [configuration.cmd, configuration.args, configuration.workload].filter(Boolean).join(" "),
    series.metric,
    series.exact ? "counted exactly" : "",
    series.larger_is_better ? "larger is better" : "",
  ];
  fill("subtitle", [...new Set(texts.filter(Boolean))].join(" · "));
  fill(
    "facts",
    h(
      "div",
      {},
      h("dt", {}, "Latest"),
      h("dd", {class: "big"}, series.text || "–"),
    ),
  );
}

function showLines(data, lines, site, all) {
  if (!lines.length)
    return panel("chart", empty("No values", "No version of this series can be read.", "perun fsck"));
  if (!perunChart?.canvas.isConnected) {
    makeChart(data, site, all);
    perunChart.context = CONTEXT.map(name => place().get(name)).join();
  }
  const old = new Map(perunChart.lines.map(line => [line.name, line.shown])),
    shown = chartLines(data, lines, site);
  for (const line of shown) line.shown = old.get(line.name) ?? line.shown;
  const first = Math.min(...shown.map(line => line.at[0])),
    last = Math.max(...shown.map(line => line.at.at(-1)));
  const changes = data.changes.flatMap(one =>
    shown
      .filter(line => line.branch === 0 && ofMachine(one, line))
      .slice(0, 1)
      .map(line => ({
        at: one.version.at,
        since: one.since.at,
        up: one.after.value > one.before.value,
        worse: one.degradation,
        known: Boolean(one.acknowledged),
        line,
      })),
  );
  perunChart.show({
    lines: shown,
    changes,
    unit: data.series.unit,
    dates: all.dates,
    tags: site.tags.filter(tag => known(tag.at)),
    full: {from: first, to: last},
  });
  setAxis();
  const [from, to] = (place().get("view") || "").split("..").map(Number);
  const commit = place().get("c");
  if (known(from) && known(to) && to > from) perunChart.look(from, to);
  else if (commit) lookAround(all.find(commit), data);
  else if (place().has("n")) perunChart.look(last - Number(place().get("n")) + 0.5, last + 0.5);
  else perunChart.whole();
  return legend();
}
// The commit that a link names, with as much around it as shows the change.
function lookAround(at, {changes}) {
  if (at < 0) return perunChart.whole();
  const line = perunChart.visible[0],
    near = changes.find(one => one.version.at === at);
  const around = Math.max(40, Math.min(400, (near?.after?.versions ?? 60) * 1.5));
  perunChart.look(at - around, at + around);
  const index = line ? firstAtLeast(line.at, at) : -1;
  if (line?.at[index] === at) perunChart.setCursor({line, index});
  return undefined;
}

function makeChart(data, site, all) {
  const canvas = h("canvas", {
    class: "main",
    tabindex: "0",
    role: "application",
    "aria-roledescription": "chart",
    id: "chart-canvas",
    "aria-label":
      `${cut(data.series.title, 200)} along the commits. Left and right go from point to point, ` +
      "Enter opens the commit, Space marks it for a comparison.",
  });
  const map = h("canvas", {class: "map", "aria-hidden": "true"});
  const commitOf = point => all.short(point.line.at[point.index]);
  let later = 0;
  perunChart = new LineChart(canvas, map, {
    hover: (point, pinned) =>
      point ? showTip(pointLines(point, data, all, pinned), perunChart.placeOf(point), pinned) : hideTip(),
    open: (point, event) => {
      const address = commitLink(commitOf(point), {series: data.series.id});
      if (event.ctrlKey || event.metaKey) open(address);
      else location.assign(address);
    },
    pick: point => pick(point, commitOf, data),
    moved: view => {
      clearTimeout(later);
      later = setTimeout(() => {
        const whole = view.to - view.from > (perunChart.full.to - perunChart.full.from) * 0.995;
        setPlace({view: whole ? null : `${view.from.toFixed(1)}..${view.to.toFixed(1)}`, n: null, c: null});
        for (const button of document.querySelectorAll("#chart-tools .group:first-child [data-value]"))
          button.setAttribute("aria-pressed", String(button.dataset.value === "" && whole));
      }, 150);
    },
  });
  const range = choose(
    "Commits shown",
    RANGES.map(([value, text]) => [value, text]),
    place().get("n") ?? (place().has("view") || place().has("c") ? "?" : ""),
    value => {
      const {to} = perunChart.full;
      if (value) perunChart.look(to - Number(value) + 0.5, to + 0.5);
      else perunChart.whole();
    },
  );
  const axis = choose(
    "Value axis",
    [
      ["", "Fit"],
      ["usual", "Without spikes"],
      ["zero", "From 0"],
      ["log", "Log"],
    ],
    place().get("axis") || "",
    value => {
      setPlace({axis: value});
      setAxis();
    },
  );
  panel(
    "chart",
    [
      h("div", {class: "chart"}, canvas, map),
      h("ul", {class: "legend", id: "lines", "aria-label": "Lines"}),
      valuesTable(all),
    ],
    {
      note: h(
        "span",
        {class: "wide-only"},
        "A click opens a commit, Shift + click compares two; drag and Ctrl + wheel move and zoom",
      ),
      tools: [range, axis],
    },
  );
}

function setAxis() {
  const axis = place().get("axis");
  Object.assign(perunChart, {trim: axis === "usual", zero: axis === "zero", log: axis === "log"});
  perunChart.redraw();
}

// The first point is marked; with the second one the two are compared, the older one as the baseline.
function pick(point, commitOf, data) {
  const first = perunChart.picked;
  if (first && first.line.at[first.index] !== point.line.at[point.index]) {
    const [a, b] = [first, point].sort((one, other) => one.line.at[one.index] - other.line.at[other.index]);
    location.assign(compareLink(commitOf(a), commitOf(b), {series: data.series.id}));
    return;
  }
  perunChart.picked = first ? null : point;
  fill(
    "chart-note",
    perunChart.picked
      ? h(
          "span",
          {role: "status"},
          `${commitOf(point).slice(0, 7)} is marked: Shift + click, or Space, on another point compares the two`,
        )
      : "",
  );
  perunChart.redraw();
}

function seriesSteps(data, site) {
  if (!data.changes.length)
    panel(
      "steps",
      empty(
        "Its level did not change",
        "What differs from commit to commit is within the noise of this series.",
      ),
    );
  else panel("steps", stepTable(data.changes, site), {note: plural(data.changes.length, "change")});
  const related = (data.related || []).slice(0, 30);
  if (related.length)
    load("series").then(({series}) => {
      const chosen = new Set(related);
      panel("list", seriesTable(series.filter(one => chosen.has(one.id))), {
        title: "Related series",
        note: "Of the same command, or of the same place",
      });
    });
}

function stepTable(changes, site) {
  return table(
    [
      {
        title: "Change",
        number: true,
        cell: one => [changeSize(one), " ", h("small", {class: "muted"}, one.word)],
      },
      {title: "Value", number: true, cell: one => one.sides.join(" → ")},
      {
        title: "Commit",
        name: true,
        cell: one => [
          h(
            "a",
            {href: commitLink(one.version.checksum)},
            h("span", {class: "mono"}, short(one.version.checksum)),
            " ",
            cut(firstLine(one.version.subject), 90),
          ),
          h("div", {class: "muted small"}, cut(one.version.author, 40), ", ", when(one.version.date)),
        ],
      },
      {
        title: "",
        cell: one => [
          marks(one),
          known(one.machine) && site.machines.length > 1
            ? h(
                "span",
                {class: "chip", title: machineName(site, one.machine)},
                shortMachine(site, one.machine),
              )
            : "",
        ],
      },
      {
        title: "",
        end: true,
        cell: one => [
          h("a", {href: compareLink(one.since.checksum, one.version.checksum)}, "Compare"),
          " ",
          acknowledgeButton(one, site),
        ],
      },
    ],
    [...changes].sort((a, b) => b.version.at - a.version.at),
    {label: "Changes of this series", address: one => commitLink(one.version.checksum), stacked: true},
  );
}
