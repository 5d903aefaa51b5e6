// The report of two commits: cases with their rows, models, distributions and flame graphs.
function reportParts(report, {most, samples = 12}) {
  const notes = report.notes?.length
    ? h(
        "div",
        {class: "notice"},
        h(
          "ul",
          {},
          report.notes.map(note => h("li", {class: "text"}, note)),
        ),
      )
    : null;
  return [
    notes,
    report.cases.map(one => casePart(one, most, samples)),
    !report.cases.length &&
      h(
        "section",
        {class: "panel"},
        empty("Nothing to compare", "No command was measured at both commits.", "perun run matrix"),
      ),
  ];
}

function casePart(one, most, samples = 0) {
  const changed = one.rows.filter(row => kindOf(row.result) !== "muted"),
    rows = one.rows.slice(0, most);
  return h(
    "section",
    {class: "panel case", "aria-label": one.title},
    h(
      "header",
      {},
      h("h2", {class: "name"}, cut(one.title, 200)),
      h(
        "p",
        {class: "note"},
        changed.length
          ? `${plural(changed.length, "value")} of ${one.rows.length} changed`
          : `${plural(one.rows.length, "value")}, none changed`,
        one.rows.length > rows.length ? `; the first ${rows.length} are shown` : "",
      ),
    ),
    rows.length > 0 && rowsTable(rows, cut(one.title, 100)),
    modelsOf(one.models),
    distributionsOf(one.samples?.slice(0, samples)),
    flameOf(one),
  );
}

function rowsTable(rows, of) {
  const scale = forestScale(rows);
  return table(
    [
      {
        title: "Where",
        name: true,
        sort: row => row.location,
        cell: row => [
          row.series
            ? h("a", {href: seriesLink(row.series)}, cut(row.location || row.metric, 140))
            : cut(row.location || row.metric, 140),
          h(
            "div",
            {class: "muted small reason", title: row.reason || null},
            [row.location && !row.location.includes(row.metric) ? row.metric : "", row.reason]
              .filter(Boolean)
              .join(" · "),
          ),
        ],
      },
      {
        title: "Baseline",
        end: true,
        wide: true,
        sort: row => row.a?.value ?? null,
        cell: row => valueCell(row.a),
      },
      {
        title: "Target",
        end: true,
        sort: row => row.b?.value ?? null,
        cell: row => valueCell(row.b),
      },
      {title: "Change", end: true, sort: row => row.ratio, cell: row => ratioCell(row)},
      {
        title: `Interval (${times(scale.low)} to ${times(scale.high)})`,
        wide: true,
        cell: row => forest(row, scale),
      },
    ],
    rows,
    {label: of ? `Values of both commits of ${of}` : "Values of both commits"},
  );
}
const valueCell = one =>
  one ? h("span", {title: one.whole || null}, one.text) : h("span", {class: "muted"}, "–");

// The colour of a word: what is not definite has none.
const kindOf = result =>
  /^(Severe|Total)?Degradation/.test(result) ? "worse" : /^(Severe|Total)?Optimization/.test(result) ? "better" : "muted";

function ratioCell(row) {
  if (row.a && !row.b) return h("span", {class: "muted"}, "gone");
  if (row.b && !row.a) return h("span", {class: "muted"}, "new");
  return [
    h("span", {class: kindOf(row.result)}, row.text || "–"),
    h("div", {class: "muted small"}, row.exact && row.word ? `${row.word}, exact` : row.word),
  ];
}

// Intervals of ratios on one axis, as in a forest plot: where one does not touch the line at 1, it is a change.
function forestScale(rows) {
  // Most of them fit; a few that are far away must not make points of all intervals.
  const bounds = rows
    .filter(row => row.ratio > 0)
    .map(row =>
      Math.max(
        ...[row.ratio, ...(row.interval || [])].filter(one => one > 0).map(one => Math.abs(Math.log(one))),
      ),
    );
  const usual = bounds.sort((a, b) => a - b)[Math.floor(bounds.length * 0.75)] ?? 0;
  const most = Math.min(Math.log(4), Math.max(Math.log(1.05), Math.min(1.25 * usual, bounds.at(-1) ?? 0)));
  return {
    low: Math.exp(-most),
    high: Math.exp(most),
    x: ratio => 96 + 92 * Math.max(-1, Math.min(1, Math.log(ratio) / most)),
  };
}
function forest(row, scale) {
  if (!(row.ratio > 0)) return "";
  const [low, high] = (row.interval || [row.ratio, row.ratio]).map(one => scale.x(Math.max(one, 1e-9)));
  return svg(
    "svg",
    {class: `forest ${kindOf(row.result)}`, viewBox: "0 0 192 18", "aria-hidden": "true"},
    svg("line", {class: "one", x1: 96, x2: 96, y1: 0, y2: 18}),
    svg("line", {x1: low, x2: Math.max(high, low + 1), y1: 9, y2: 9}),
    row.ratio > scale.high
      ? svg("path", {d: "M184 4l7 5-7 5z"})
      : row.ratio < scale.low
        ? svg("path", {d: "M8 4l-7 5 7 5z"})
        : svg("circle", {cx: scale.x(row.ratio), cy: 9, r: 3.4}),
  );
}

function modelsOf(models) {
  return models?.length
    ? h(
        "div",
        {class: "in"},
        h("h3", {}, "How the cost grows"),
        table(
          [
            {title: "Where", name: true, cell: one => cut(one.name, 140)},
            {title: "Baseline", cell: one => h("code", {}, cut(one.a || "–", 80))},
            {
              title: "Target",
              cell: one => h("code", {class: one.a === one.b ? "" : "worse"}, cut(one.b || "–", 80)),
            },
          ],
          models,
          {label: "Models"},
        ),
      )
    : null;
}

function distributionsOf(samples) {
  return samples?.length
    ? h(
        "div",
        {class: "distributions"},
        samples.map(one => {
          const canvas = h("canvas", {
            role: "img",
            "aria-label":
              `Measurements of ${one.name}: baseline above, median ${amount(middleOf(one.a), one.unit)}; ` +
              `target below, median ${amount(middleOf(one.b), one.unit)}`,
          });
          const paint = oncePerFrame(() => drawDistribution(canvas, one));
          new ResizeObserver(paint).observe(canvas);
          addEventListener("perun-theme", paint);
          return h("figure", {}, h("figcaption", {}, cut(one.name, 120)), canvas);
        }),
      )
    : null;
}

// Each measurement as a stroke, the quartiles as a box: the baseline above, the target below, on one axis.
function drawDistribution(canvas, {a, b, unit}) {
  const width = canvas.clientWidth,
    height = canvas.clientHeight,
    all = [...a, ...b].filter(known);
  if (!width || !all.length) return;
  sharpen(canvas, width, height);
  canvas.style.height = "";
  const context = canvas.getContext("2d"),
    theme = themeColours(),
    low = Math.min(...all),
    high = Math.max(...all);
  const room = (high - low || Math.abs(high) || 1) * 0.04,
    axis = linearScale(low - room, high + room, 58, width - 8);
  context.font = `11.5px ${getComputedStyle(document.body).fontFamily}`;
  context.textBaseline = "middle";
  [
    [a, theme.muted, "baseline", 24],
    [b, theme.accent, "target", 62],
  ].forEach(([values, colour, name, y]) => {
    const sorted = values.filter(known).sort((one, other) => one - other),
      of = share => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
    context.fillStyle = theme.muted;
    context.fillText(name, 0, y);
    context.fillStyle = colour;
    context.globalAlpha = Math.max(0.15, Math.min(0.7, 20 / sorted.length));
    for (const value of sorted) context.fillRect(axis.at(value) - 0.75, y - 12, 1.5, 24);
    context.globalAlpha = 0.25;
    if (sorted.length > 3)
      context.fillRect(axis.at(of(0.25)), y - 7, axis.at(of(0.75)) - axis.at(of(0.25)), 14);
    context.globalAlpha = 1;
    if (sorted.length) context.fillRect(axis.at(median(sorted)) - 1.5, y - 14, 3, 28);
  });
  context.fillStyle = theme.muted;
  context.textAlign = "center";
  const ticks = axis.ticks(Math.max(2, Math.floor(width / 90)));
  for (const tick of ticks)
    if (axis.at(tick) > 60 && axis.at(tick) < width - 16)
      context.fillText(tickText(tick, ticks, unit), axis.at(tick), height - 8);
}

const flameOf = one =>
  one.flame
    ? h("iframe", {
        sandbox: "allow-scripts",
        loading: "lazy",
        title: `Differential flame graph of ${one.title}`,
        src: `./${one.flame}`,
      })
    : null;
