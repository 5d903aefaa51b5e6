// What a LineChart draws: axes, lines of points or of columns, levels, changes, the map below.
const DASHES = [[], [6, 3], [2, 3], [8, 3, 2, 3]];

const lineColour = line =>
  perunTheme.series[line.colour % perunTheme.series.length][
    document.documentElement.hasAttribute("data-dark") ? 1 : 0
  ];

function drawAxes(chart, context, theme, width, height) {
  const ticks = chart.y.ticks(Math.max(2, Math.floor(height / 64)));
  context.font = `11.5px ${getComputedStyle(document.body).fontFamily}`;
  context.textBaseline = "middle";
  context.lineWidth = 1;
  context.strokeStyle = theme.line;
  context.fillStyle = theme.muted;
  context.textAlign = "right";
  context.globalAlpha = 0.55;
  context.beginPath();
  for (const tick of ticks) {
    const y = Math.round(chart.y.at(tick)) + 0.5;
    context.moveTo(MARGIN.left, y);
    context.lineTo(width - MARGIN.right, y);
  }
  context.stroke();
  context.globalAlpha = 1;
  for (const tick of ticks)
    context.fillText(tickText(tick, ticks, chart.unit), MARGIN.left - 8, chart.y.at(tick));
  // A unit without prefixes of its own stands once, above the ticks.
  const rest = perunScale(chart.unit)[2];
  if (rest) context.fillText(cut(rest, 9), MARGIN.left - 8, 9);
  drawDates(chart, context, width, height);
}

// Dates below, at commits; tags above, where there is room for them.
function drawDates(chart, context, width, height) {
  const {from, to} = chart.view,
    step = niceStep((to - from) / Math.max(2, Math.floor(chart.inner / 110)));
  const span = chart.dates.length
    ? chart.dates[Math.min(chart.dates.length - 1, Math.floor(to))] -
      chart.dates[Math.max(0, Math.ceil(from))]
    : 0;
  const write = span > 400 * DAY ? month : day;
  context.textAlign = "center";
  let written = "",
    end = MARGIN.left - 10;
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
    const place = Math.round(at),
      x = chart.x.at(place);
    if (place < 0 || place >= chart.dates.length) continue;
    const text = write(chart.dates[place]),
      half = context.measureText(text).width / 2;
    if (text === written || x - half < end || x + half > width) continue;
    context.fillText(text, x, height - MARGIN.bottom / 2 + 2);
    [written, end] = [text, x + half + 14];
  }
  end = width;
  context.textAlign = "left";
  for (let i = chart.tags.length - 1; i >= 0; i--) {
    const {name, at} = chart.tags[i];
    if (at < from || at > to) continue;
    const x = chart.x.at(at),
      text = cut(visible(name), 14),
      room = context.measureText(text).width + 8;
    if (x + room > end) continue;
    context.globalAlpha = 0.8;
    context.fillText(text, x + 4, 9);
    context.fillRect(Math.round(x), 2, 1, 14);
    context.globalAlpha = 1;
    end = x - 4;
  }
}

function drawLine(chart, context, line, theme) {
  const colour = lineColour(line),
    sparse = chart.pixelsApart(line) >= APART;
  context.strokeStyle = context.fillStyle = colour;
  context.setLineDash(sparse ? DASHES[line.dash % DASHES.length] : []);
  context.lineWidth = 1;
  context.globalAlpha = (sparse ? 0.5 : 0.42) * (line.strong ? 1 : 0.7);
  if (sparse) drawPath(chart, context, line);
  else drawColumns(chart, context, line);
  context.setLineDash([]);
  if (sparse) drawPoints(chart, context, line, theme);
  context.globalAlpha = 1;
  drawLevels(chart, context, line);
  if (chart.trim) drawBeyond(chart, context, line);
}

// Points that an axis without spikes leaves out, as open triangles at its edge.
function drawBeyond(chart, context, line) {
  const found = decimate(line.at, line.value, chart.view.from, chart.view.to, chart.inner);
  context.lineWidth = 1.3;
  context.beginPath();
  for (let i = 0; i < found.count; i++)
    for (const [beyond, y, tip] of [
      [chart.y.at(found.max[i]) < MARGIN.top - 2, MARGIN.top + 7, -6],
      [chart.y.at(found.min[i]) > chart.y.end + 2, chart.y.end - 7, 6],
    ]) {
      if (!beyond) continue;
      const x = MARGIN.left + found.x[i];
      context.moveTo(x - 4, y);
      context.lineTo(x + 4, y);
      context.lineTo(x, y + tip);
      context.lineTo(x - 4, y);
    }
  context.stroke();
}

function drawPath(chart, context, line) {
  const start = Math.max(0, firstAtLeast(line.at, chart.view.from) - 1),
    end = Math.min(line.at.length, firstAtLeast(line.at, chart.view.to) + 1);
  context.beginPath();
  for (let i = start; i < end; i++)
    if (known(line.value[i])) context.lineTo(chart.x.at(line.at[i]), chart.y.at(line.value[i]));
  context.stroke();
}

function drawColumns(chart, context, line) {
  const found = decimate(line.at, line.value, chart.view.from, chart.view.to, chart.inner);
  context.beginPath();
  for (let i = 0; i < found.count; i++) {
    const x = MARGIN.left + found.x[i] + 0.5;
    context.lineTo(x, chart.y.at(found.first[i]));
    context.lineTo(x, chart.y.at(found.min[i]));
    context.lineTo(x, chart.y.at(found.max[i]));
    context.lineTo(x, chart.y.at(found.last[i]));
  }
  context.stroke();
}

function drawPoints(chart, context, line, theme) {
  const start = firstAtLeast(line.at, chart.view.from),
    end = firstAtLeast(line.at, chart.view.to + 1e-9);
  context.globalAlpha = line.strong ? 0.55 : 0.35;
  context.beginPath();
  for (let i = start; i < end; i++) {
    if (line.low[i] === line.high[i] || !known(line.value[i])) continue;
    const x = Math.round(chart.x.at(line.at[i])) + 0.5;
    context.moveTo(x, chart.y.at(line.low[i]));
    context.lineTo(x, chart.y.at(line.high[i]));
  }
  context.stroke();
  context.globalAlpha = line.strong ? 1 : 0.75;
  const size = chart.apart > 9 ? 3 : 2;
  context.beginPath();
  for (let i = start; i < end; i++) {
    if (!known(line.value[i])) continue;
    const x = chart.x.at(line.at[i]),
      y = chart.y.at(line.value[i]);
    context.moveTo(x + size, y);
    context.arc(x, y, size, 0, 7);
  }
  context.fill();
}

// The level between two changes: the median there, which is what the eye should follow.
function drawLevels(chart, context, line) {
  if (!line.levels) return;
  context.strokeStyle = lineColour(line);
  context.lineWidth = 2.2;
  context.globalAlpha = line.strong ? 0.95 : 0.6;
  context.beginPath();
  for (const level of line.levels) {
    context.moveTo(chart.x.at(level.from), chart.y.at(level.value));
    context.lineTo(chart.x.at(level.to), chart.y.at(level.value));
  }
  context.stroke();
  context.globalAlpha = 1;
}

// A change: a line through it, and a triangle at the top that says in which direction, apart from colours.
function drawChanges(chart, context, theme, height) {
  for (const change of chart.changes) {
    if (!change.line.shown || change.at < chart.view.from || change.at > chart.view.to) continue;
    const x = Math.round((chart.x.at(change.since) + chart.x.at(change.at)) / 2) + 0.5;
    const {up} = change;
    context.strokeStyle = context.fillStyle = change.known
      ? theme.muted
      : change.worse
        ? theme.mark
        : theme.accent;
    context.globalAlpha = 0.75;
    context.setLineDash([3, 3]);
    context.beginPath();
    context.moveTo(x, MARGIN.top);
    context.lineTo(x, height - MARGIN.bottom);
    context.stroke();
    context.setLineDash([]);
    context.globalAlpha = 1;
    context.beginPath();
    context.moveTo(x - 5, MARGIN.top + (up ? 0 : -8));
    context.lineTo(x + 5, MARGIN.top + (up ? 0 : -8));
    context.lineTo(x, MARGIN.top + (up ? -8 : 0));
    context.fill();
  }
}

function drawMarked(chart, context, theme, height) {
  for (const [point, ring] of [
    [chart.picked, theme.mark],
    [chart.cursor, theme.text],
  ]) {
    if (!point || !point.line.shown) continue;
    const x = chart.x.at(point.line.at[point.index]),
      y = chart.y.at(point.line.value[point.index]);
    context.strokeStyle = theme.muted;
    context.lineWidth = 1;
    context.globalAlpha = 0.5;
    context.beginPath();
    context.moveTo(Math.round(x) + 0.5, MARGIN.top);
    context.lineTo(Math.round(x) + 0.5, height - MARGIN.bottom);
    context.stroke();
    context.globalAlpha = 1;
    context.fillStyle = lineColour(point.line);
    context.strokeStyle = ring;
    context.lineWidth = 2;
    context.beginPath();
    context.arc(x, y, 4.5, 0, 7);
    context.fill();
    context.stroke();
  }
}

// The whole history in a strip, drawn once, with a window on what is seen above.
function drawMap(chart, theme) {
  const {map, full} = chart,
    width = map.clientWidth,
    height = map.clientHeight;
  if (!width || !height) return;
  const key = [
    width,
    height,
    devicePixelRatio,
    theme.background,
    ...chart.lines.map(line => line.shown && line.at.length),
  ].join();
  if (chart.mapDrawn?.key !== key) chart.mapDrawn = {key, picture: mapPicture(chart, width, height)};
  sharpen(map, width, height);
  map.style.height = "";
  const context = map.getContext("2d"),
    inner = width - MARGIN.left - MARGIN.right;
  context.drawImage(chart.mapDrawn.picture, 0, 0, width, height);
  const x = at => MARGIN.left + ((at - full.from + 0.5) / (full.to - full.from + 1)) * inner;
  const start = x(chart.view.from),
    end = x(chart.view.to);
  context.fillStyle = theme.accent;
  context.globalAlpha = 0.13;
  context.fillRect(start, 0, Math.max(end - start, 3), height);
  context.globalAlpha = 1;
  context.fillRect(start - 1, 0, 2, height);
  context.fillRect(Math.max(end, start + 3) - 1, 0, 2, height);
}

function mapPicture(chart, width, height) {
  const picture = document.createElement("canvas");
  sharpen(picture, width, height);
  const context = picture.getContext("2d"),
    inner = width - MARGIN.left - MARGIN.right,
    {from, to} = chart.full;
  let low = Infinity,
    high = -Infinity;
  for (const line of chart.visible) {
    const found = extent(line.at, line.value, line.value, from, to);
    if (found) [low, high] = [Math.min(low, found[0]), Math.max(high, found[1])];
  }
  const y = linearScale(low, high, height - 4, 4);
  for (const line of chart.visible) {
    const found = decimate(line.at, line.value, from - 0.5, to + 0.5, inner);
    context.strokeStyle = lineColour(line);
    context.globalAlpha = 0.6;
    context.beginPath();
    for (let i = 0; i < found.count; i++)
      for (const part of ["first", "min", "max", "last"])
        context.lineTo(MARGIN.left + found.x[i] + 0.5, y.at(found[part][i]));
    context.stroke();
  }
  return picture;
}
