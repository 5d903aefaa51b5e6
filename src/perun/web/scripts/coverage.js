// The coverage of measurement: which commits each workload is measured at.
const CELLS = {1: "measured", ".": "not measured", d: "damaged", i: "incomplete"};

pages.coverage = async site => {
  const [data, all] = await Promise.all([load("coverage"), loadHistory()]),
    at = summed(data.at);
  if (!data.rows.length) {
    panel(
      "strips",
      empty(
        "Nothing is measured yet",
        "Each command and workload becomes a row here, each commit a column.",
        hintOf(site),
      ),
    );
    byId("missing").hidden = true;
    fuzzed(data);
    return;
  }
  const fits = onMachine(site);
  const rows = data.rows.filter(row => fits(row.machine)).map(row => ({
    ...row,
    count: [...row.cells].filter(cell => cell === "1").length,
    damaged: [...row.cells].filter(cell => cell === "d").length,
    gap: longestGap(row.cells),
  }));
  const share = site.commits ? Math.round((100 * site.measured) / site.commits) : 0;
  byId("sentence").textContent = `${share} % of the commits are measured`;
  panel(
    "strips",
    table(
      [
        {
          title: "Workload",
          name: true,
          sort: row => row.title,
          cell: row => [
            h("span", {class: "mono"}, cut([row.command, row.workload].filter(Boolean).join(" "), 110)),
            h(
              "div",
              {class: "muted small"},
              [row.collector, machineName(site, row.machine)].filter(Boolean).join(" · "),
            ),
          ],
        },
        {title: "Commits, oldest to newest", cell: row => strip(row, at, all)},
        {
          title: "Measured",
          end: true,
          sort: row => row.count,
          cell: row => [
            `${Math.round((100 * row.count) / Math.max(at.length, 1))} %`,
            h("div", {class: "muted small"}, row.count.toLocaleString("en-US")),
          ],
        },
        {
          title: "Longest gap",
          end: true,
          wide: true,
          sort: row => row.gap,
          cell: row => (row.gap ? plural(row.gap, "commit") : "none"),
        },
        {
          title: "Damaged",
          end: true,
          wide: true,
          sort: row => row.damaged,
          cell: row => (row.damaged ? h("span", {class: "worse"}, String(row.damaged)) : "–"),
        },
      ],
      rows,
      {label: "Measured commits by workload", stacked: true},
    ),
    {note: `${plural(at.length, "commit")} of the main line`, tools: coverageLegend()},
  );
  const missing = data.missing.filter(one => fits(one.machine));
  panel(
    "missing",
    missing.length
      ? h(
          "ul",
          {class: "missing"},
          missing
            .slice(0, 50)
            .map(one =>
              h(
                "li",
                {},
                h(
                  "span",
                  {},
                  h("b", {}, plural(one.count, "commit")),
                  " without ",
                  h("span", {class: "name mono"}, cut(one.title, 200)),
                  known(one.machine) && h("span", {class: "muted"}, ` on ${machineName(site, one.machine)}`),
                ),
                one.command && commandLine(one.command),
              ),
            ),
        )
      : empty("Nothing is missing", "Each workload is measured at each commit of the main line."),
  );
  fuzzed(data);
};

// The workloads that fuzzing found, which each later version is measured on.
function fuzzed({fuzzed: kept}) {
  panel(
    "fuzzed",
    kept.length
      ? table(
          [
            {
              title: "Workload",
              name: true,
              sort: one => one.name,
              cell: one => [
                h("span", {class: "mono"}, cut(one.name, 120)),
                h("div", {class: "muted small"}, one.titles.length ? cut(one.titles.join(", "), 160) : ""),
              ],
            },
            {title: "Size", end: true, sort: one => one.size, cell: one => amount(one.size, "B")},
            {title: "Kept", end: true, wide: true, sort: one => one.date, cell: one => when(one.date)},
            {
              title: "Measured",
              end: true,
              sort: one => one.measured,
              cell: one => (one.measured ? plural(one.measured, "commit") : h("span", {class: "muted"}, "never")),
            },
          ],
          kept,
          {label: "Workloads that fuzzing found"},
        )
      : empty(
          "No input of a fuzzer is kept",
          "What perun fuzz finds to be slow can become workloads, which each later version is measured on.",
          "perun fuzz --keep results",
        ),
    kept.length ? {note: plural(kept.length, "workload")} : {},
  );
}

function longestGap(cells) {
  return Math.max(0, ...cells.split(/[^.]+/).map(part => part.length));
}

function coverageColours() {
  const theme = themeColours(),
    dark = document.documentElement.hasAttribute("data-dark");
  return {
    1: theme.accent,
    ".": dark ? "#272d36" : "#e4e8ec",
    d: theme.mark,
    i: mixed(theme.accent, theme.background, 0.5),
  };
}

function strip(row, at, all) {
  const canvas = h("canvas", {
    class: "strip",
    role: "img",
    "aria-label": `${row.count} of ${at.length} commits measured, longest gap ${row.gap}`,
  });
  const paint = oncePerFrame(() => {
    const width = canvas.clientWidth,
      height = canvas.clientHeight;
    if (!width) return;
    sharpen(canvas, width, height);
    canvas.style.height = "";
    const context = canvas.getContext("2d"),
      colours = coverageColours(),
      wide = width / row.cells.length;
    for (let x = 0, cell = 0; cell < row.cells.length; x++) {
      // Of the commits that share a pixel the most telling one: damaged, then missing.
      const end = Math.max(cell + 1, Math.min(row.cells.length, Math.round((x + 1) / wide))),
        part = row.cells.slice(cell, end);
      const shown = ["d", "i", "."].find(one => part.includes(one)) || "1";
      context.fillStyle = colours[shown];
      const left = Math.floor(cell * wide);
      context.fillRect(left, 0, Math.max(1, Math.ceil(end * wide) - left - (wide >= 4 ? 1 : 0)), height);
      cell = end;
    }
  });
  new ResizeObserver(paint).observe(canvas);
  addEventListener("perun-theme", paint);
  const cellAt = event => {
    const box = canvas.getBoundingClientRect();
    return Math.max(
      0,
      Math.min(row.cells.length - 1, Math.floor(((event.clientX - box.left) / box.width) * row.cells.length)),
    );
  };
  canvas.addEventListener("pointermove", event => {
    const cell = cellAt(event);
    showTip(
      [
        h("b", {}, CELLS[row.cells[cell]] || ""),
        commitLines(at[cell], all.short(at[cell]).slice(0, 7), all.dates[at[cell]]),
      ],
      event,
    );
  });
  canvas.addEventListener("pointerleave", hideTip);
  canvas.addEventListener("click", event => location.assign(commitLink(all.short(at[cellAt(event)]))));
  return canvas;
}

function coverageLegend() {
  const made = h("span", {class: "scale"});
  const paint = () => {
    const colours = coverageColours();
    fill(
      made,
      Object.entries(CELLS).map(([cell, text]) => {
        const swatch = h("span", {class: "swatch"});
        swatch.style.background = colours[cell];
        return [swatch, text];
      }),
    );
  };
  paint();
  addEventListener("perun-theme", paint);
  return made;
}
