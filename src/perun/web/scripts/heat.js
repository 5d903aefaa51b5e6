// A heat map of series by commits. Each cell is a multiple of the median of its row: worse is orange, better is blue,
// and what lies within the noise of its row keeps the colour of the page.
const HEAT = {row: 22, least: Math.log(1.03), most: Math.log(3), quiet: 0.12};

class HeatMap {
  // rows: [{series, title, unit, larger_is_better, value: [...]}]; at: the position of each column;
  // does: {tell(row, column) -> nodes of the tooltip, open(row, column, event)};
  // base: the value of a row that others are beside.
  constructor(rows, at, does, base = rowMedian) {
    Object.assign(this, {at, does, cursor: null});
    this.rows = rows.map(row => ({...row, shift: shifts(row, base)}));
    this.span = spanOf(this.rows);
    this.canvas = h("canvas", {
      tabindex: "0",
      role: "application",
      "aria-roledescription": "heat map",
      "aria-label":
        `${plural(rows.length, "series")} by ${plural(at.length, "commit")}. ` +
        "Arrow keys go from cell to cell, Enter opens the commit.",
    });
    this.labels = h(
      "ul",
      {class: "labels"},
      rows.map(row =>
        h(
          "li",
          {},
          h("a", {href: seriesLink(row.series), title: row.title}, row.label ?? row.name),
          row.on && h("small", {}, row.on),
        ),
      ),
    );
    this.axis = h("div", {class: "axis", "aria-hidden": "true"});
    this.pointer = h("i", {class: "pointer", hidden: true});
    const cells = h("div", {class: "cells"}, this.canvas, this.pointer);
    this.element = h("div", {class: "heat"}, this.labels, cells, this.axis);
    this.redraw = oncePerFrame(() => this.draw());
    new ResizeObserver(() => this.redraw()).observe(this.canvas);
    addEventListener("perun-theme", this.redraw);
    this.listen();
  }

  dated(dates) {
    if (dates.length)
      fill(
        this.axis,
        dates.map(date => h("span", {}, day(date))),
      );
  }

  draw() {
    const width = this.canvas.clientWidth,
      height = this.rows.length * HEAT.row;
    if (!width) return;
    sharpen(this.canvas, width, height);
    const context = this.canvas.getContext("2d"),
      colours = heatColours(),
      columns = this.at.length;
    this.wide = width / Math.max(columns, 1);
    const gap = this.wide >= 5 ? 1 : 0;
    for (const [number, row] of this.rows.entries()) {
      const y = number * HEAT.row + 2;
      for (let left = 0; left < columns;) {
        // Columns that share a pixel show the worst of them.
        let right = left + 1;
        while (right < columns && Math.floor(right * this.wide) === Math.floor(left * this.wide)) right++;
        const shift = strongest(row.shift, left, right);
        const x = Math.floor(left * this.wide),
          end = Math.max(Math.floor(right * this.wide) - gap, x + 1);
        context.fillStyle = shift === null ? "transparent" : colours.of(shift / this.span);
        context.fillRect(x, y, end - x, HEAT.row - 4);
        left = right;
      }
    }
    this.point();
    this.canvas.dataset.drawn = String(Number(this.canvas.dataset.drawn || 0) + 1);
  }

  // The frame around the cell that the cursor is at: an element, so that no cell is drawn again for it.
  point() {
    this.pointer.hidden = !this.cursor;
    if (!this.cursor) return;
    const {row, column} = this.cursor,
      {style} = this.pointer;
    style.left = `${Math.floor(column * this.wide) - 1}px`;
    style.top = `${row * HEAT.row}px`;
    style.width = `${Math.max(this.wide, 3) + 1}px`;
    style.height = `${HEAT.row}px`;
  }

  cellAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const row = Math.floor((event.clientY - box.top) / HEAT.row),
      column = Math.floor((event.clientX - box.left) / this.wide);
    return row >= 0 && row < this.rows.length && column >= 0 && column < this.at.length
      ? {row, column}
      : null;
  }
  move(cell, event) {
    if (cell?.row === this.cursor?.row && cell?.column === this.cursor?.column) return;
    this.labels.children[this.cursor?.row]?.classList.remove("at");
    this.labels.children[cell?.row]?.classList.add("at");
    this.cursor = cell;
    this.point();
    if (!cell) return hideTip();
    const box = this.canvas.getBoundingClientRect();
    showTip(
      this.does.tell(this.rows[cell.row], cell.column),
      event || {
        clientX: box.left + (cell.column + 0.5) * this.wide,
        clientY: box.top + (cell.row + 1) * HEAT.row,
      },
    );
  }
  listen() {
    const {canvas} = this;
    canvas.addEventListener("pointermove", event => this.move(this.cellAt(event), event));
    canvas.addEventListener("pointerleave", () => this.move(null));
    canvas.addEventListener("blur", () => this.move(null));
    canvas.addEventListener("click", event => {
      const cell = this.cellAt(event);
      if (cell) this.does.open(this.rows[cell.row], cell.column, event);
    });
    canvas.addEventListener("keydown", event => {
      const steps = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]};
      const here = this.cursor || {row: 0, column: this.at.length};
      if (event.key === "Enter" && this.cursor)
        return this.does.open(this.rows[here.row], here.column, event);
      if (!Object.hasOwn(steps, event.key) || event.ctrlKey || event.metaKey || event.altKey)
        return undefined;
      event.preventDefault();
      event.stopPropagation();
      const [down, right] = steps[event.key];
      const within = (value, count) => Math.max(0, Math.min(count - 1, value));
      return this.move({
        row: within(here.row + down, this.rows.length),
        column: within(here.column + right, this.at.length),
      });
    });
  }
}

// The columns that have a value in one of the rows, and these rows without the others.
function withValues(at, rows) {
  const kept = at.map((_, column) => column).filter(column => rows.some(row => known(row.value[column])));
  const chosen = all => kept.map(column => all[column]);
  return {at: chosen(at), rows: rows.map(row => ({...row, value: chosen(row.value)}))};
}
// Rows with what of their names is in brackets, and the machine where there are several, behind them: long names are
// cut there.
const labelled = (rows, site) =>
  rows.map(row => {
    const [, label, metric] = /^([^]+) \[([^\]]+)\]$/.exec(row.name) || [null, row.name, ""];
    return {...row, label, on: [metric, shortMachine(site, row.machine)].filter(Boolean).join(" · ")};
  });

// How much worse each value is than that of the row, as a logarithm: 0 is as always, positive is worse.
// To and from 0 there is no ratio: it is as strong as can be, whatever else is shown.
const rowMedian = ({value}) => middleOf(value);
function shifts(row, base = rowMedian) {
  const level = base(row),
    sign = row.larger_is_better ? -1 : 1;
  return row.value.map(value => {
    if (!known(value) || !known(level)) return null;
    if (value > 0 && level > 0) return sign * Math.log(value / level);
    return value === level ? 0 : sign * (value > level ? Infinity : -Infinity);
  });
}
// What has the strongest colour: nearly the largest shift, so that one spike does not make all else pale.
function spanOf(rows) {
  const sizes = rows.flatMap(row => row.shift.filter(known).map(Math.abs)).sort((a, b) => a - b);
  const large = sizes.length ? sizes[Math.min(sizes.length - 1, Math.floor(sizes.length * 0.985))] : 0;
  return Math.min(HEAT.most, Math.max(HEAT.least, large));
}
function strongest(shift, from, to) {
  let found = null;
  for (let i = from; i < to; i++)
    if (shift[i] !== null && (found === null || Math.abs(shift[i]) > Math.abs(found))) found = shift[i];
  return found;
}
function heatColours() {
  const dark = document.documentElement.hasAttribute("data-dark"),
    theme = themeColours();
  const neutral = dark ? "#272d36" : "#eceff2",
    worse = dark ? "#ff8a3d" : "#d55e00",
    better = dark ? "#4aa8ea" : "#0072b2";
  const steps = Array.from({length: 65}, (_, i) => {
    const share = (i - 32) / 32,
      size = Math.max(0, (Math.abs(share) - HEAT.quiet) / (1 - HEAT.quiet));
    return mixed(neutral, share > 0 ? worse : better, size ** 0.8);
  });
  return {
    text: theme.text,
    steps,
    of: share => steps[Math.round(32 + 32 * Math.max(-1, Math.min(1, share)))],
  };
}

// The legend of a heat map.
function heatScale(map) {
  const bar = h("i"),
    most = Math.exp(map.span);
  const paint = () => {
    bar.style.background = gradient(heatColours().steps.filter((_, i) => i % 4 === 0));
  };
  paint();
  addEventListener("perun-theme", paint);
  return h("span", {class: "scale"}, `${times(1 / most)} better`, bar, `${times(most)} worse`);
}
