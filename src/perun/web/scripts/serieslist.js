// Series in a table, and the list of all of them.

const seriesTable = (series, options = {}) =>
  table(
    [
      {
        title: "Series",
        name: true,
        sort: one => one.title,
        cell: one => [
          h("a", {href: seriesLink(one.id)}, cut(one.name, 110)),
          commandBelow(one) && h("div", {class: "muted small"}, cut(commandBelow(one), 110)),
        ],
      },
      {title: "Metric", wide: true, sort: one => one.metric, cell: one => one.metric},
      {title: "Trend", cell: one => spark(one.spark || [])},
      {title: "Latest", end: true, sort: one => one.latest, cell: one => one.text || "–"},
    ],
    series,
    {label: "Series", address: one => seriesLink(one.id), ...options},
  );

async function seriesList(site) {
  const {series, more} = await load("series");
  fill("subtitle", `${plural(series.length + (more || 0), "series")}: what is measured again at each commit`);
  fill("facts");
  if (!series.length)
    return panel(
      "list",
      empty("No series yet", "A series begins with the first measured commit.", hintOf(site)),
    );
  const input = h("input", {
    type: "search",
    "aria-label": "Filter series",
    placeholder: "Filter",
    value: place().get("q") || "",
  });
  const shown = h("div");
  const draw = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = series.filter(one =>
      words.every(word =>
        `${one.title} ${one.command} ${one.metric} ${one.collector}`.toLowerCase().includes(word),
      ),
    );
    fill(
      shown,
      found.length
        ? seriesTable(found.slice(0, 500), {
            sort: place().get("sort"),
            changed: order => setPlace({sort: order}),
          })
        : empty("No series has these words", "The filter looks at names, commands and metrics."),
    );
    fill(
      "list-note",
      found.length < series.length
        ? `${found.length.toLocaleString("en-US")} of ${series.length.toLocaleString("en-US")}`
        : series.length > 500
          ? "The first 500: filter to see others"
          : "",
    );
  };
  input.addEventListener("input", () => {
    setPlace({q: input.value});
    draw();
  });
  panel("list", shown, {tools: input, note: ""});
  draw();
  return undefined;
}
