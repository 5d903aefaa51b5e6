// What single commits measured, from the transposed pieces.

// The values at a commit, beside the nearest ones before it, with what is told of their difference.
async function commitValues(commit, site) {
  const own = await valuesAt(commit.at, site);
  if (!own.size) {
    byId("values").hidden = true;
    return;
  }
  const [old, {series}, {changes, doubtful}] = await Promise.all([
    valuesBefore(commit, site, own),
    load("series"),
    load("changes"),
  ]);
  const names = new Map(series.map(one => [one.id, one])),
    told = new Map(
      [...doubtful, ...changes]
        .filter(one => one.version.at === commit.at)
        .map(one => [`${one.series}/${one.machine ?? ""}`, one]),
    ),
    fits = onMachine(site);
  const rows = [...own]
    .filter(([, now]) => names.has(now.id) && fits(now.machine))
    .map(([key, now]) => ({
      ...names.get(now.id),
      on: shortMachine(site, now.machine),
      now,
      earlier: old.get(key),
      step: told.get(key),
    }));
  rows.sort((a, b) => Number(Boolean(b.step?.decides)) - Number(Boolean(a.step?.decides)) || Number(!a.step) - Number(!b.step));
  panel(
    "values",
    table(
      [
        {
          title: "Series",
          name: true,
          sort: one => one.name,
          cell: one => [
            h("a", {href: seriesLink(one.id, {c: commit.checksum})}, cut(one.name, 110)),
            h(
              "div",
              {class: "muted small"},
              [cut(commandBelow(one), 110), one.on].filter(Boolean).join(" · "),
            ),
          ],
        },
        {title: "Value", end: true, sort: one => one.now.value, cell: one => measured(one.now.value, one.now.half, one.unit)},
        {
          title: "Before",
          end: true,
          wide: true,
          cell: one => (one.earlier ? measured(one.earlier.value, one.earlier.half, one.unit) : "–"),
        },
        {
          title: "Difference",
          end: true,
          sort: one => one.step?.ratio ?? null,
          cell: ({step}) =>
            step
              ? [
                  h("span", {class: !step.decides ? "muted" : step.degradation ? "worse" : "better"}, step.text),
                  h("div", {class: "muted small"}, step.word),
                ]
              : "",
        },
      ],
      rows,
      {label: "Values", address: one => seriesLink(one.id, {c: commit.checksum})},
    ),
    {
      note: old.size
        ? "Beside the nearest value before it on the same machine; where no difference stands, none is told from noise"
        : "Nothing was measured before it",
    },
  );
}

// The values of a commit by series and machine: id, machine, value, half.
async function valuesAt(at, site) {
  const data = await load(`values/${Math.floor(at / site.chunk)}`),
    found = new Map(),
    place = at - data.first;
  data.series.forEach((id, row) => {
    const value = data.value[row][place];
    if (!known(value)) return;
    found.set(`${id}/${data.machine?.[row] ?? ""}`, {
      id,
      machine: data.machine?.[row] ?? null,
      value,
      half: halfOf(data.half?.[row]?.[place], value),
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
        found.set(key, {at, value, half: halfOf(data.half?.[row]?.[place], value)});
        break;
      }
    });
  }
  return found;
}
