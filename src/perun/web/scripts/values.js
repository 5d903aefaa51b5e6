// What single commits measured, from the transposed pieces.

// The values at a commit, beside the nearest ones before it.
async function commitValues(commit, site) {
  const own = await valuesAt(commit.at, site);
  if (!own.size) {
    byId("values").hidden = true;
    return;
  }
  const old = await valuesBefore(commit, site, own);
  const {series} = await load("series"),
    names = new Map(series.map(one => [one.id, one]));
  const fits = onMachine(site);
  const rows = [...own]
    .filter(([, now]) => names.has(now.id) && fits(now.machine))
    .map(([key, now]) => {
      const earlier = old.get(key),
        ratio = earlier?.value > 0 ? now.value / earlier.value : null;
      return {
        ...names.get(now.id),
        on: shortMachine(site, now.machine),
        now,
        earlier,
        ratio,
        apart: earlier && (now.low > earlier.high || now.high < earlier.low),
      };
    });
  rows.sort(
    (a, b) =>
      Number(b.apart ?? false) - Number(a.apart ?? false) ||
      Math.abs(Math.log(b.ratio || 1)) - Math.abs(Math.log(a.ratio || 1)),
  );
  panel(
    "values",
    table(
      [
        {
          title: "Series",
          name: true,
          sort: one => one.title,
          cell: one => [
            h("a", {href: seriesLink(one.id, {c: commit.checksum})}, cut(nameOf(one), 110)),
            h(
              "div",
              {class: "muted small"},
              [cut(commandBelow(one), 110), one.on].filter(Boolean).join(" · "),
            ),
          ],
        },
        {title: "Value", end: true, sort: one => one.now.value, cell: one => amount(one.now.value, one.unit)},
        {
          title: "Interval",
          end: true,
          wide: true,
          cell: one => amounts([one.now.low, one.now.high], one.unit),
        },
        {
          title: "Before",
          end: true,
          wide: true,
          cell: one => (one.earlier ? amount(one.earlier.value, one.unit) : "–"),
        },
        {
          title: "Difference",
          end: true,
          sort: one => one.ratio,
          cell: one =>
            h(
              "span",
              {class: !one.apart ? "muted" : isWorse(one.ratio, one.larger_is_better) ? "worse" : "better"},
              change(one.ratio),
            ),
        },
      ],
      rows,
      {label: "Values", address: one => seriesLink(one.id, {c: commit.checksum})},
    ),
    {
      note: old.size
        ? "Beside the nearest value before it on the same machine; coloured where the two intervals are apart"
        : "Nothing was measured before it",
    },
  );
}

// The values of a commit by series and machine: id, machine, value, low, high.
async function valuesAt(at, site) {
  const data = await load(`values/${Math.floor(at / site.chunk)}`),
    found = new Map(),
    place = at - data.first;
  data.series.forEach((id, row) => {
    const value = data.value[row][place];
    if (!known(value)) return;
    const half = (data.half?.[row]?.[place] ?? 0) / 1e4;
    found.set(`${id}/${data.machine?.[row] ?? ""}`, {
      id,
      machine: data.machine?.[row] ?? null,
      value,
      low: value * Math.max(0, 1 - half),
      high: value * (1 + half),
    });
  });
  return found;
}
// Of each series on each machine the nearest value before a commit, on its branch or the main line.
async function valuesBefore(commit, site, wanted) {
  const all = await loadHistory(),
    found = new Map(),
    last = Math.floor(commit.at / site.chunk);
  for (const number of [last, last - 1].filter(one => one >= 0)) {
    const data = await load(`values/${number}`);
    data.series.forEach((id, row) => {
      const machine = data.machine?.[row] ?? null,
        key = `${id}/${machine ?? ""}`;
      if (!wanted.has(key) || found.has(key)) return;
      for (let place = Math.min(commit.at - data.first, data.value[row].length) - 1; place >= 0; place--) {
        const value = data.value[row][place],
          at = data.first + place;
        if (!known(value) || (all.line[at] && all.line[at] !== commit.branch)) continue;
        const half = (data.half?.[row]?.[place] ?? 0) / 1e4;
        found.set(key, {at, value, low: value * Math.max(0, 1 - half), high: value * (1 + half)});
        break;
      }
    });
  }
  return found;
}
