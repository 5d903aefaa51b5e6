// The grid: all series along the whole history, or commit by commit in a part of it.
const GRID_ROWS = 200;

pages.grid = async site => {
  if (!site.measured)
    return panel(
      "grid",
      empty(
        "Nothing is measured yet",
        "Each measured commit becomes a column here, each series a row.",
        hintOf(site),
      ),
    );
  const [whole, {series}, all] = await Promise.all([load("grid"), load("series"), loadHistory()]),
    fits = onMachine(site);
  const details = new Map(series.map(one => [one.id, one]));
  const filter = h("input", {
    type: "search",
    placeholder: "Filter",
    "aria-label": "Filter series",
    value: place().get("q") || "",
  });
  const order = h(
    "select",
    {"aria-label": "Order of the rows"},
    [
      ["", "worst first"],
      ["name", "by name"],
      ["unit", "by metric"],
    ].map(([value, text]) => h("option", {value, selected: value === (place().get("order") || "")}, text)),
  );
  const range = choose(
    "Commits shown",
    [
      ["100", "100"],
      ["400", "400"],
      ["", "All"],
    ],
    place().get("n") || "",
    value => {
      setPlace({n: value});
      show();
    },
  );
  const shown = h("div");
  const main = [...all.measured].filter((cell, at) => cell === "1" && !all.line[at]).length;
  let number = 0;
  const show = async () => {
    const mine = ++number,
      count = Number(place().get("n"));
    const data = count ? await lastColumns(count, series, site) : whole;
    if (mine !== number) return;
    const words = (place().get("q") || "").toLowerCase().split(/\s+/).filter(Boolean);
    const {at, rows} = withValues(
      data.at,
      data.rows.filter(
        row =>
          fits(row.machine) &&
          words.every(word =>
            `${row.title} ${details.get(row.series)?.command ?? ""}`.toLowerCase().includes(word),
          ),
      ),
    );
    sortRows(rows, place().get("order") || "", details);
    if (!rows.length) {
      fill(
        shown,
        words.length
          ? empty("No series has these words", "The filter looks at names and commands.")
          : otherMachine(site),
      );
      return;
    }
    const map = new HeatMap(labelled(rows.slice(0, GRID_ROWS), site), at, {
      tell: (row, column) => [
        h("b", {}, known(row.value[column]) ? amount(row.value[column], row.unit) : "not measured"),
        h("div", {class: "line strong"}, cut(row.title, 100)),
        row.on && h("div", {class: "line"}, machineName(site, row.machine)),
        commitLines(at[column], all.short(at[column]).slice(0, 7), all.dates[at[column]]),
      ],
      open: (row, column, event) => openCell(row, all.short(at[column]), event),
    });
    map.dated(
      at.length
        ? [0, 0.25, 0.5, 0.75, 1].map(share => all.dates[at[Math.round(share * (at.length - 1))]])
        : [],
    );
    fill(
      shown,
      map.element,
      h(
        "p",
        {class: "below small muted"},
        heatScale(map),
        rows.length > GRID_ROWS
          ? ` The first ${GRID_ROWS} of ${rows.length} rows: filter to see others.`
          : "",
        " A click opens the commit, Shift + click the series.",
      ),
    );
    fill(
      "grid-note",
      count
        ? `The newest ${plural(at.length, "measured commit")}`
        : at.length < main
          ? `${plural(main, "measured commit")} of the main line, several to a column`
          : `${plural(main, "measured commit")} of the main line`,
    );
  };
  filter.addEventListener("input", () => {
    setPlace({q: filter.value});
    show();
  });
  order.addEventListener("change", () => {
    setPlace({order: order.value});
    show();
  });
  panel("grid", shown, {tools: [filter, order, range]});
  return show();
};

// Worst first: by how much the newest values are above the median of the row.
function sortRows(rows, order, details) {
  if (order === "name") rows.sort((a, b) => a.title.localeCompare(b.title));
  else if (order === "unit")
    rows.sort(
      (a, b) =>
        (details.get(a.series)?.metric ?? "").localeCompare(details.get(b.series)?.metric ?? "") ||
        a.title.localeCompare(b.title),
    );
  else {
    const newest = row => median([0, ...shifts(row).filter(known).slice(-5)].slice(-5));
    const rank = new Map(rows.map(row => [row, newest(row)]));
    rows.sort((a, b) => rank.get(b) - rank.get(a));
  }
}

// The newest measured commits of the main line, each a column, from the transposed chunks.
async function lastColumns(count, series, site) {
  const all = await loadHistory(),
    at = [],
    names = new Map(series.map(one => [one.id, one])),
    rows = new Map();
  for (let place = all.count - 1; place >= 0 && at.length < count; place--)
    if (all.measured[place] === "1" && !all.line[place]) at.push(place);
  at.reverse();
  const numbers = [...new Set(at.map(place => Math.floor(place / site.chunk)))];
  for (const [i, data] of (await Promise.all(numbers.map(number => load(`values/${number}`)))).entries())
    data.series.forEach((id, number) => {
      const one = names.get(id),
        machine = data.machine?.[number] ?? null,
        key = `${id}/${machine}`;
      if (!one) return;
      if (!rows.has(key))
        rows.set(key, {
          series: id,
          title: one.title,
          name: one.name,
          command: one.command,
          unit: one.unit,
          larger_is_better: one.larger_is_better,
          machine,
          value: at.map(() => null),
        });
      at.forEach((place, column) => {
        if (Math.floor(place / site.chunk) === numbers[i])
          rows.get(key).value[column] = data.value[number][place - data.first];
      });
    });
  return {at, rows: [...rows.values()].filter(row => row.value.some(known))};
}
