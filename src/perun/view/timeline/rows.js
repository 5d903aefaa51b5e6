// The data of a timeline without the page: rows of entries that do not overlap, and what of them is at a time.
// An entry is a position in the columns, which are in the order of threads and starts.
"use strict";

// The rows of each thread: its calls do not overlap, but what an event loop does at once, or runs of like calls, may.
// Such entries go to further rows of the thread; what finds no room in `most` rows is drawn over others.
function perunRows(columns, threads, most = 6) {
  const {thread, start, duration} = columns, rows = [];
  const ofThread = Array.from({length: threads}, () => []);
  for (let entry = 0; entry < thread.length; entry++) ofThread[thread[entry]].push(entry);
  ofThread.forEach((entries, number) => {
    const own = [{thread: number, line: 0, entries: []}], ends = [-1];
    for (const entry of entries) {
      let line = ends.findIndex(end => end <= start[entry]);
      if (line < 0 && own.length < most) {
        line = own.length;
        own.push({thread: number, line, entries: []});
        ends.push(-1);
      } else if (line < 0) line = most - 1;
      own[line].entries.push(entry);
      ends[line] = Math.max(ends[line], start[entry] + duration[entry]);
    }
    for (const row of own) rows.push({...row, entries: Int32Array.from(row.entries), lines: own.length});
  });
  return rows;
}

// The first position in `entries` whose start is at `time` or later.
function perunFirst(entries, start, time) {
  let low = 0, high = entries.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (start[entries[middle]] < time) low = middle + 1; else high = middle;
  }
  return low;
}

// Calls `draw(entry, from, to)` for the entries of a row between two times, `from` and `to` in pixels. Of those that are
// narrower than a pixel one is drawn in each column, so that the work does not grow with the number of entries.
function perunVisible(entries, columns, view, width, draw) {
  const {start, duration} = columns, scale = width / (view[1] - view[0]);
  let place = Math.max(perunFirst(entries, start, view[0]) - 1, 0);
  while (place < entries.length) {
    const entry = entries[place], begin = start[entry];
    if (begin >= view[1]) return;
    const from = (begin - view[0]) * scale, to = (begin + duration[entry] - view[0]) * scale;
    if (to < 0) { place++; continue; }
    draw(entry, Math.max(from, 0), Math.min(to, width));
    if (to - from >= 1) { place++; continue; }
    const column = Math.max(Math.floor(from), 0) + 1;
    const next = Math.max(perunFirst(entries, start, view[0] + column / scale), place + 1);
    // The last one that begins in the column may reach far beyond it.
    const last = next - 1, reach = (start[entries[last]] + duration[entries[last]] - view[0]) * scale;
    place = last > place && reach >= column ? last : next;
  }
}

// The entry of a row at a time, or the nearest one within `tolerance` of it; -1 if there is none.
function perunEntryAt(entries, columns, time, tolerance) {
  const {start, duration} = columns;
  const after = perunFirst(entries, start, time);
  let best = -1, distance = Infinity;
  for (let place = Math.max(after - 1, 0); place < Math.min(after + 1, entries.length); place++) {
    const entry = entries[place];
    const away = Math.max(start[entry] - time, time - start[entry] - duration[entry], 0);
    if (away < distance) [best, distance] = [entry, away];
  }
  return distance <= tolerance ? best : -1;
}

// For each of `bins` equal parts of the run, the share of all threads' time that is in calls.
function perunDensity(columns, end, bins) {
  const {start, duration, busy} = columns, found = new Float64Array(bins), size = end / bins || 1;
  for (let entry = 0; entry < start.length; entry++) {
    const share = duration[entry] ? busy[entry] / duration[entry] : 1;
    const first = Math.min(Math.floor(start[entry] / size), bins - 1);
    const last = Math.min(Math.floor((start[entry] + duration[entry]) / size), bins - 1);
    for (let bin = first; bin <= last; bin++) {
      const covered = Math.min((bin + 1) * size, start[entry] + duration[entry]) - Math.max(bin * size, start[entry]);
      found[bin] += Math.max(covered, 0) / size * share;
    }
  }
  return found;
}
