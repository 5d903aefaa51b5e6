// What is left of a line of many points where the screen has few pixels: of each column of pixels the first, the
// last, the smallest and the largest value, so that no spike is lost and the picture is that of all points
// (U. Jugel, Z. Jerzak, G. Hackenbroich, V. Markl: M4, PVLDB 7(10), 2014).

// The first place of an ascending array that holds `value` or more.
function firstAtLeast(sorted, value) {
  let low = 0,
    high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Columns of the points with `from <= at <= to` on `width` pixels: arrays x, first, last, min, max of their length.
function decimate(at, value, from, to, width) {
  const start = firstAtLeast(at, from),
    end = firstAtLeast(at, to + 1e-9);
  const most = Math.max(0, Math.min(Math.ceil(width) + 1, end - start));
  const found = {
    count: 0,
    x: new Int32Array(most),
    first: new Float64Array(most),
    last: new Float64Array(most),
    min: new Float64Array(most),
    max: new Float64Array(most),
  };
  const scale = width / Math.max(to - from, 1e-9);
  let column = -1;
  for (let i = start; i < end; i++) {
    const one = value[i];
    if (one !== one) continue;
    const x = Math.floor((at[i] - from) * scale);
    if (column < 0 || x !== found.x[column]) {
      column++;
      found.x[column] = x;
      found.first[column] = found.last[column] = found.min[column] = found.max[column] = one;
    } else {
      found.last[column] = one;
      if (one < found.min[column]) found.min[column] = one;
      if (one > found.max[column]) found.max[column] = one;
    }
  }
  found.count = column + 1;
  return found;
}

// The range of what is seen of a line without its spikes: by John Tukey's outer fences, three times the distance of
// the quartiles beyond them, around each of its levels.
function usual(line, from, to) {
  let found = null;
  for (const level of line.levels?.length ? line.levels : [{from, to}]) {
    const start = firstAtLeast(line.at, Math.max(from, level.from)),
      end = firstAtLeast(line.at, Math.min(to, level.to) + 1e-9);
    const sorted = line.value.slice(start, end).filter(known).sort();
    if (!sorted.length) continue;
    const low = sorted[sorted.length >> 2],
      high = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * 0.75))],
      room = 3 * (high - low);
    const range = [Math.max(sorted[0], low - room), Math.min(sorted.at(-1), high + room)];
    found = found ? [Math.min(found[0], range[0]), Math.max(found[1], range[1])] : range;
  }
  return found;
}

// Smallest and largest value with `from <= at <= to`; null where there is none.
function extent(at, low, high, from, to) {
  let min = Infinity,
    max = -Infinity;
  for (let i = firstAtLeast(at, from), end = firstAtLeast(at, to + 1e-9); i < end; i++) {
    if (low[i] < min) min = low[i];
    if (high[i] > max) max = high[i];
  }
  return min <= max ? [min, max] : null;
}
