// The lines of a series: how they are told apart, their levels, the legend, a point in words, all as a table.

// Lines of the series as the chart wants them: colours tell machines apart, dashes the branches.
function chartLines(data, lines, site) {
  const wanted = {machine: place().get("machine"), branch: place().get("branch")};
  const several = new Set(lines.map(line => line.machine)).size > 1,
    branches = new Set(lines.map(line => line.branch)).size > 1;
  return lines.map((line, number) => {
    const machine = machineName(site, line.machine),
      branch = site.branches[line.branch]?.name ?? site.branch ?? "";
    const name = [
      several ? shortMachine(site, line.machine) || machine : "",
      branches && (line.branch || !several) ? branch : "",
    ]
      .filter(Boolean)
      .join(", ");
    const fits =
      (!wanted.machine || wanted.machine === machine) && (!wanted.branch || wanted.branch === branch);
    const made = {
      ...line,
      name: name || machine || "values",
      title: [machine, branch].filter(Boolean).join(", "),
      strong: line.branch === 0,
      colour: several ? (line.machine ?? 0) : line.branch,
      dash: several ? line.branch : line.branch && 1,
      shown: fits && number < 40,
    };
    return {...made, levels: line.branch === 0 ? levelsOf(made, data.changes, site) : null};
  });
}
const ofMachine = (one, line) => !known(one.machine) || !known(line.machine) || one.machine === line.machine;

function levelsOf(line, changes) {
  const bounds = [...new Set(changes.filter(one => ofMachine(one, line)).map(one => one.version.at))].sort(
    (a, b) => a - b,
  );
  const levels = [];
  for (const [i, from] of [-Infinity, ...bounds].entries()) {
    const start = firstAtLeast(line.at, from),
      end = i < bounds.length ? firstAtLeast(line.at, bounds[i]) : line.at.length;
    const finite = Array.from(line.value.subarray(start, end)).filter(known);
    if (finite.length) levels.push({from: line.at[start], to: line.at[end - 1], value: median(finite)});
  }
  return levels;
}

function legend() {
  const {lines} = perunChart;
  byId("lines").hidden = lines.length < 2;
  const swatch = line => {
    const made = svg(
      "svg",
      {viewBox: "0 0 24 10", "aria-hidden": "true"},
      svg("line", {
        x1: 0,
        x2: 24,
        y1: 5,
        y2: 5,
        "stroke-width": 2.5,
        "stroke-dasharray": DASHES[line.dash % DASHES.length].join(" ") || null,
        stroke: lineColour(line),
      }),
    );
    return made;
  };
  fill(
    "lines",
    lines.slice(0, 60).map(line =>
      h(
        "li",
        {},
        h(
          "button",
          {
            type: "button",
            "aria-pressed": String(line.shown),
            title: line.title,
            onclick: event => {
              line.shown = !line.shown;
              event.currentTarget.setAttribute("aria-pressed", String(line.shown));
              perunChart.redraw();
            },
          },
          swatch(line),
          h("span", {}, cut(line.name, 60)),
        ),
      ),
    ),
  );
}

function pointLines(point, data, all, pinned) {
  const {line, index} = point,
    at = line.at[index],
    unit = data.series.unit;
  const step = data.changes.find(one => one.version.at === at && ofMachine(one, line));
  const facts = [
    line.n[index] > 1 ? plural(line.n[index], "measurement") : "",
    perunChart.visible.length > 1 ? line.name : "",
  ];
  const checksum = all.short(at);
  return [
    h("b", {}, measured(line.value[index], line.high[index] - line.value[index], unit)),
    h("div", {class: "line"}, facts.filter(Boolean).join(" · ")),
    step &&
      h(
        "div",
        {class: step.degradation ? "worse" : "better"},
        `${changeText(step)} from here on`,
      ),
    commitLines(at, checksum.slice(0, 7), all.dates[at]),
    pinned &&
      h(
        "div",
        {class: "actions"},
        h("a", {class: "chip", href: commitLink(checksum, {series: data.series.id})}, "Open the commit"),
        h(
          "button",
          {
            type: "button",
            onclick: () => {
              hideTip();
              perunChart.does.pick(point);
            },
          },
          perunChart.picked ? "Compare" : "Compare from here",
        ),
      ),
  ];
}

// What the chart shows, for those who cannot see it or want to copy it; made when it is opened.
const MOST_VALUES = 500;
function valuesTable(all) {
  const shown = h("div");
  const made = h(
    "details",
    {
      class: "values",
      ontoggle: () => {
        const {from, to} = perunChart.view,
          {unit} = perunChart,
          rows = [];
        for (const line of perunChart.visible)
          for (let i = firstAtLeast(line.at, from); i < line.at.length && line.at[i] <= to; i++)
            rows.push({line, i, at: line.at[i]});
        rows.sort((a, b) => b.at - a.at);
        if (made.open)
          fill(
            shown,
            rows.length > MOST_VALUES &&
              h("p", {class: "below muted small"}, `The newest ${MOST_VALUES} of ${rows.length}`),
            table(
              [
                {
                  title: "Commit",
                  cell: one =>
                    h(
                      "a",
                      {class: "mono", href: commitLink(all.short(one.at))},
                      all.short(one.at).slice(0, 7),
                    ),
                },
                {title: "Date", cell: one => day(all.dates[one.at])},
                {title: "Measured on", cell: one => one.line.name},
                {
                  title: "Value ± at 95 %",
                  end: true,
                  cell: ({line, i}) => measured(line.value[i], line.high[i] - line.value[i], unit),
                },
              ],
              rows.slice(0, MOST_VALUES),
              {label: "Values of the chart"},
            ),
          );
      },
    },
    h("summary", {}, "The values shown, as a table"),
    shown,
  );
  return made;
}
