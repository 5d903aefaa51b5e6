// A series along the commits, on a canvas: panned and zoomed at any length, as only what is seen is drawn.
const MARGIN = {left: 64, right: 14, top: 22, bottom: 26};
const LEAST_VIEW = 6; // commits
const APART = 4; // pixels between points from which on each is drawn, with its interval

class LineChart {
  // `canvas` and `map` are elements; `does` has hover(point), open(point), pick(point), moved(view).
  constructor(canvas, map, does) {
    Object.assign(this, {
      canvas,
      map,
      does,
      lines: [],
      changes: [],
      tags: [],
      dates: [],
      unit: "",
      view: {from: 0, to: 1},
      full: {from: 0, to: 1},
      zero: false,
      log: false,
      trim: false,
      cursor: null,
      picked: null,
    });
    this.redraw = oncePerFrame(() => this.draw());
    this.resized = new ResizeObserver(() => this.redraw());
    this.resized.observe(canvas);
    addEventListener("perun-theme", this.redraw);
    listenToChart(this);
    listenToMap(this);
  }

  // What is shown. lines: {at, value, low, high, n, name, colour, dash, strong, shown};
  // changes: {at, line, worse}.
  show(data) {
    Object.assign(this, data);
    this.mapDrawn = null;
    this.redraw();
  }

  // Show commits `from` to `to`, as many as there are, at least a few.
  look(from, to) {
    const {from: first, to: last} = this.full;
    const width = Math.min(Math.max(to - from, LEAST_VIEW), Math.max(last - first + 1, LEAST_VIEW));
    const start = Math.max(first - 0.5, Math.min(from, last + 0.5 - width));
    this.view = {from: start, to: start + width};
    this.does.moved?.(this.view);
    this.redraw();
  }
  zoom(factor, middle = (this.view.from + this.view.to) / 2) {
    this.look(middle - (middle - this.view.from) * factor, middle + (this.view.to - middle) * factor);
  }
  pan(commits) {
    this.look(this.view.from + commits, this.view.to + commits);
  }
  whole() {
    this.look(this.full.from - 0.5, this.full.to + 0.5);
  }
  commitAt(x) {
    return this.view.from + ((x - MARGIN.left) / this.inner) * (this.view.to - this.view.from);
  }
  get inner() {
    return Math.max(10, this.canvas.clientWidth - MARGIN.left - MARGIN.right);
  }
  get visible() {
    return this.lines.filter(line => line.shown && line.at.length);
  }

  // The value axis: what is seen fits, with room above and below.
  valueAxis(height) {
    let low = Infinity,
      high = -Infinity;
    for (const line of this.visible) {
      const sparse = this.pixelsApart(line) >= APART;
      const found = this.trim
        ? usual(line, this.view.from, this.view.to)
        : extent(
            line.at,
            sparse ? line.low : line.value,
            sparse ? line.high : line.value,
            this.view.from,
            this.view.to,
          );
      if (found) [low, high] = [Math.min(low, found[0]), Math.max(high, found[1])];
    }
    if (low > high) [low, high] = [0, 1];
    if (this.log && low > 0) return logScale(low / 1.06, high * 1.06, height - MARGIN.bottom, MARGIN.top);
    const room = (high - low || Math.abs(high) || 1) * 0.07;
    const bottom = this.zero ? Math.min(0, low) : low >= 0 ? Math.max(0, low - room) : low - room;
    return linearScale(bottom, high + room, height - MARGIN.bottom, MARGIN.top);
  }
  pixelsApart(line) {
    const count = firstAtLeast(line.at, this.view.to) - firstAtLeast(line.at, this.view.from);
    return count > 0 ? this.inner / count : Infinity;
  }

  draw() {
    const width = this.canvas.clientWidth,
      height = this.canvas.clientHeight;
    if (!width || !height) return;
    sharpen(this.canvas, width, height);
    this.canvas.style.height = "";
    const context = this.canvas.getContext("2d"),
      theme = themeColours();
    this.y = this.valueAxis(height);
    this.apart = Math.min(...this.visible.map(line => this.pixelsApart(line)));
    this.x = linearScale(this.view.from, this.view.to, MARGIN.left, MARGIN.left + this.inner);
    drawAxes(this, context, theme, width, height);
    context.save();
    context.beginPath();
    context.rect(MARGIN.left, 0, this.inner + 1, height - MARGIN.bottom + 1);
    context.clip();
    drawChanges(this, context, theme, height);
    const strong = this.visible.filter(line => line.strong);
    for (const line of this.visible.filter(one => !one.strong).concat(strong))
      drawLine(this, context, line, theme);
    drawMarked(this, context, theme, height);
    context.restore();
    drawMap(this, theme);
    this.canvas.dataset.drawn = String(Number(this.canvas.dataset.drawn || 0) + 1);
  }

  // The point nearest to a place on the canvas, within some pixels; null where there is none.
  nearest(x, y, reach = 28) {
    let best = null,
      least = reach * reach;
    const around = this.commitAt(x),
      span = (reach * (this.view.to - this.view.from)) / this.inner;
    for (const line of this.visible)
      for (
        let i = firstAtLeast(line.at, around - span), end = firstAtLeast(line.at, around + span);
        i < end;
        i++
      ) {
        if (!known(line.value[i])) continue;
        const dx = this.x.at(line.at[i]) - x,
          dy = (this.y.at(line.value[i]) - y) / 2;
        const distance = dx * dx + dy * dy;
        if (distance < least) [best, least] = [{line, index: i}, distance];
      }
    return best;
  }
  // The point by which the cursor goes on, from where it is, or from the newest one that is seen.
  step(by) {
    const line = this.cursor?.line.shown
      ? this.cursor.line
      : this.visible.find(one => one.strong) || this.visible[0];
    if (!line) return null;
    const last = firstAtLeast(line.at, this.view.to + 1e-9) - 1;
    let index = this.cursor?.line === line ? this.cursor.index + by : last;
    while (index >= 0 && index < line.at.length && !known(line.value[index])) index += by || -1;
    if (index < 0 || index >= line.at.length) return this.cursor;
    const at = line.at[index],
      width = this.view.to - this.view.from;
    if (at < this.view.from) this.look(at - width / 4, at + (width * 3) / 4);
    else if (at > this.view.to) this.look(at - (width * 3) / 4, at + width / 4);
    return {line, index};
  }
  setCursor(point) {
    this.cursor = point;
    this.redraw();
  }
  // Where a point is in the window, for the tooltip.
  placeOf(point) {
    const box = this.canvas.getBoundingClientRect();
    return {
      clientX: box.left + this.x.at(point.line.at[point.index]),
      clientY: box.top + this.y.at(point.line.value[point.index]),
    };
  }
}
