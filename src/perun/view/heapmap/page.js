// The page of a heap map: snapshots with a slider, and the heat map of all. A place is a row of the page times
// data.rowSize, plus the offset in the row (perun.view.heapmap).
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const canvas = byId("map"), pen = canvas.getContext("2d");
  const timeline = byId("timeline"), line = timeline.getContext("2d");
  const slider = byId("snapshot"), viewport = byId("viewport"), tip = byId("tip");
  const chunks = data.places.length, last = data.times.length - 1;
  const rows = data.regions.reduce((sum, region) => sum + region.rows, 0);
  // In pixels: the column of addresses, a row, the space between regions, the timeline.
  const GUTTER = 124, ROW = 13, BREAK = 9, TIMELINE = 56;
  const MAX_SITES = DISTINCT.length;
  const places = Float64Array.from(data.places), amounts = Float64Array.from(data.amounts);
  let heat = data.heat, now = 0, playing = 0, selected = -1, hovered = null, live = [], size = {}, roles = {};
  let fills = [], owners = [], shownLegend = "";

  // ---- texts ----------------------------------------------------------------------------------------------

  const number = amount => perunNumber(amount, data.unit);
  const count = (amount, one, many) => `${amount.toLocaleString("en-US")} ${amount === 1 ? one : many}`;
  const percent = share => Number.isFinite(share) ? `${(share * 100).toFixed(1)} %` : "\u2013";
  const siteOf = owner => {
    const site = data.sites[owner];
    const where = [site.source, site.line || ""].filter(part => part).join(":");
    return visible(site.function + (where ? ` (${where})` : "")) || "unknown";
  };
  const seconds = Number.isFinite(Number(data.times[0])) && data.times[0] !== "" && data.times.some(time => time.includes("."));
  const timeOf = snapshot => seconds ? `${data.times[snapshot]} s` : visible(cut(data.times[snapshot], 40));
  const rowOf = place => Math.floor(place / data.rowSize);
  const addressOf = place => {
    const row = rowOf(place);
    const region = data.regions.find(one => row < one.row + one.rows) || data.regions[data.regions.length - 1];
    return BigInt(region.address) + BigInt(row - region.row) * BigInt(data.rowSize) + BigInt(Math.round(place - row * data.rowSize));
  };
  const hexOf = place => { const value = addressOf(place); return value < 0n ? String(value) : "0x" + value.toString(16); };
  const RAMP = rampSteps(data.ramp), rampCss = gradient(data.ramp);

  // ---- snapshots -----------------------------------------------------------------------------------------

  const sums = new Float64Array(last + 2), numbers = new Int32Array(last + 2);
  // Each chunk notes where it comes and where it goes; the running sums are the totals of the snapshots.
  for (let i = 0; i < chunks; i++) {
    sums[data.firsts[i]] += amounts[i]; sums[data.ends[i]] -= amounts[i];
    numbers[data.firsts[i]]++; numbers[data.ends[i]]--;
  }
  for (let i = 1; i <= last; i++) { sums[i] += sums[i - 1]; numbers[i] += numbers[i - 1]; }
  const most = Math.max(...sums.subarray(0, last + 1));
  const peak = Math.max(0, sums.subarray(0, last + 1).indexOf(most));
  const order = Array.from({length: chunks}, (_, i) => i).sort((a, b) => places[a] - places[b] || a - b);
  const bySite = new Float64Array(data.sites.length);
  for (let i = 0; i < chunks; i++) bySite[data.owners[i]] += amounts[i] * (data.ends[i] - data.firsts[i]);
  const ranked = data.sites.map((_, i) => i).sort((a, b) => bySite[b] - bySite[a]);
  const siteColours = new Array(data.sites.length).fill(data.palette[OTHERS]);
  ranked.slice(0, MAX_SITES).forEach((site, i) => { siteColours[site] = data.palette[DISTINCT[i]]; });
  let largest = 1, smallest = Infinity, hottest = 0;
  for (const amount of amounts) { largest = Math.max(largest, amount); smallest = Math.min(smallest, amount); }
  for (const times of data.counts) hottest = Math.max(hottest, times);

  // The chunks that are allocated at the end of the snapshot, in the order of their places.
  function updateLive() {
    live = order.filter(i => data.firsts[i] <= now && now < data.ends[i]);
  }

  function colourOf(i, by) {
    if (by === "site") return siteColours[data.owners[i]];
    if (by === "kind") return data.palette[data.kinds[i] % data.palette.length];
    if (by === "amount") {
      const span = Math.log(largest / smallest);
      return RAMP[Math.round(64 * (span ? Math.log(amounts[i] / smallest) / span : 0.5))];
    }
    return RAMP[Math.round(64 * (last ? (now - data.firsts[i]) / last : 0))];
  }

  // ---- drawing --------------------------------------------------------------------------------------------

  // The y of each row; there is a break between regions.
  const tops = new Float64Array(rows + 1);
  {
    let y = 2, row = 0;
    data.regions.forEach((region, i) => {
      if (i) y += BREAK;
      for (let j = 0; j < region.rows; j++) { tops[row++] = y; y += ROW; }
    });
    tops[rows] = y + 2;
  }

  function fit() {
    size.all = tops[rows];
    size.height = Math.min(size.all, Math.max(200, Math.round(window.innerHeight * 0.6)));
    viewport.style.height = size.height + 2 + "px";
    byId("sheet").style.height = size.all + "px";
    size.width = viewport.clientWidth;
    size.inner = Math.max(10, size.width - GUTTER - 4);
    sharpen(canvas, size.width, size.height);
    sharpen(timeline, timeline.clientWidth, TIMELINE);
    roles = themeColours();
  }

  const xOf = within => GUTTER + within / data.rowSize * size.inner;

  // Calls each(row, left, right) for every row that a chunk covers, in pixels.
  function pieces(place, amount, each) {
    let row = rowOf(place), from = place - row * data.rowSize, rest = amount;
    while (rest > 0 && row < rows) {
      const here = Math.min(rest, data.rowSize - from);
      each(row, xOf(from), xOf(from + here));
      rest -= here;
      from = 0;
      row++;
    }
  }

  function draw() {
    const top = viewport.scrollTop;
    pen.fillStyle = roles.background;
    pen.fillRect(0, 0, size.width, size.height);
    pen.font = `11px ${roles.mono}`;
    pen.textBaseline = "middle";
    data.regions.forEach((region, i) => {
      for (let row = region.row; row < region.row + region.rows; row++) {
        const y = tops[row] - top;
        if (y + ROW < 0 || y > size.height) continue;
        pen.fillStyle = roles.surface;
        pen.fillRect(GUTTER, y, size.inner, ROW - 1);
        pen.fillStyle = roles.muted;
        pen.fillText(hexOf(row * data.rowSize), 5, y + ROW / 2, GUTTER - 10);
      }
      if (i) {
        const y = Math.round(tops[region.row] - BREAK / 2 - 1 - top) + 0.5;
        pen.strokeStyle = roles.muted;
        pen.setLineDash([2, 4]);
        pen.beginPath(); pen.moveTo(5, y); pen.lineTo(GUTTER + size.inner, y); pen.stroke();
        pen.setLineDash([]);
      }
    });
    if (heat) drawHeat(top); else drawChunks(top);
  }

  function drawHeat(top) {
    const perRow = data.rowSize / data.cell;
    const scale = Math.log(hottest) || 1;  // logarithmic, as a few places are allocated thousands of times
    for (let row = 0; row < rows; row++) {
      const y = tops[row] - top;
      if (y + ROW < 0 || y > size.height) continue;
      for (let i = 0; i < perRow;) {
        const times = data.counts[row * perRow + i];
        // Neighbours with the same count become one rectangle.
        let end = i + 1;
        while (end < perRow && data.counts[row * perRow + end] === times) end++;
        if (times) {
          pen.fillStyle = RAMP[Math.round(64 * Math.log(times) / scale)];
          const x = xOf(i * data.cell);
          pen.fillRect(x, y, Math.max(xOf(end * data.cell) - x, 0.5), ROW - 1);
        }
        i = end;
      }
    }
    if (hovered && hovered.cell !== undefined) {
      const row = Math.floor(hovered.cell / perRow), x = xOf((hovered.cell % perRow) * data.cell);
      pen.strokeStyle = roles.text;
      pen.strokeRect(x - 0.5, tops[row] - top - 0.5, Math.max(xOf(data.cell) - GUTTER, 2) + 1, ROW);
    }
  }

  function drawChunks(top) {
    const by = byId("colour").value;
    let before = "";
    for (const i of live) {
      const colour = colourOf(i, by);
      if (colour !== before) pen.fillStyle = before = colour;
      pieces(places[i], amounts[i], (row, from, to) => {
        const y = tops[row] - top;
        if (y + ROW < 0 || y > size.height) return;
        const wide = to - from;
        pen.fillRect(from, y, wide > 3 ? wide - 0.7 : Math.max(wide, 1), ROW - 1);
      });
    }
    for (const [i, colour, thick] of [[hovered ? hovered.chunk : -1, roles.text, 1], [selected, roles.mark, 2]]) {
      if (i === undefined || i < 0) continue;
      pen.strokeStyle = colour;
      pen.lineWidth = thick;
      pieces(places[i], amounts[i], (row, from, to) => pen.strokeRect(from - 0.5, tops[row] - top - 0.5, Math.max(to - from, 2) + 0.5, ROW));
      pen.lineWidth = 1;
    }
  }

  function drawTimeline() {
    const width = timeline.clientWidth, height = TIMELINE;
    line.clearRect(0, 0, width, height);
    const step = width / (last + 1);
    const y = snapshot => height - 2 - (most ? sums[snapshot] / most : 0) * (height - 16);
    line.fillStyle = roles.accent;
    line.globalAlpha = 0.3;
    line.beginPath();
    line.moveTo(0, height);
    for (let i = 0; i <= last; i++) { line.lineTo(i * step, y(i)); line.lineTo((i + 1) * step, y(i)); }
    line.lineTo(width, height);
    line.fill();
    line.globalAlpha = 1;
    line.fillStyle = roles.mark;
    line.fillRect(Math.min((now + 0.5) * step - 1, width - 2), 0, 2, height);
    line.fillStyle = roles.muted;
    line.font = `11px ${roles.mono}`;
    line.textBaseline = "top";
    line.fillText(`peak: ${number(most)} at ${timeOf(peak)}`, 4, 1, width - 8);
  }

  const redraw = oncePerFrame(draw);

  // ---- texts of the state------------------------------------------------------------------------------------

  function show() {
    updateLive();
    const position = `snapshot ${now + 1} of ${last + 1}, at ${timeOf(now)}`;
    slider.value = String(now);
    slider.setAttribute("aria-valuetext", `${position}: ${number(sums[now])} in ${count(numbers[now], "chunk", "chunks")}`);
    byId("when").textContent = `${now + 1} of ${last + 1}, at ${timeOf(now)}`;
    if (!playing || heat) summarize();
    if (selected >= 0 && !(data.firsts[selected] <= now && now < data.ends[selected])) { selected = -1; detail(null); }
    if (!heat) listSites();
    legend();
    drawTimeline();
    redraw();
  }

  function summarize() {
    if (heat) {
      byId("summary").textContent = `${count(data.allocations, "allocation", "allocations")} over all snapshots; ` +
        `the hottest address range was allocated ${count(hottest, "time", "times")}.`;
      return;
    }
    let holes = 0, widest = 0, number_ = 0, big = 0;
    for (let k = 0; k < live.length; k++) {
      big = Math.max(big, amounts[live[k]]);
      if (!k) continue;
      const end = places[live[k - 1]] + amounts[live[k - 1]], gap = places[live[k]] - end;
      if (gap <= 0 || regionOf(places[live[k]]) !== regionOf(places[live[k - 1]])) continue;
      holes += gap; number_++;
      widest = Math.max(widest, gap);
    }
    byId("summary").textContent = live.length
      ? `${number(sums[now])} allocated in ${count(live.length, "chunk", "chunks")}, the largest ${number(big)}; ` +
        (number_ ? `${number(holes)} free between them in ${count(number_, "hole", "holes")}, the largest ${number(widest)}.` : "no holes between them.")
      : "nothing is allocated at the end of this snapshot.";
    if (!data.single) byId("summary").textContent += " A chunk is what one call stack holds, drawn from its first block on.";
  }
  function regionOf(place) {
    const row = rowOf(place);
    return data.regions.findIndex(region => row < region.row + region.rows);
  }

  function listSites() {
    const byOwner = new Map();
    for (const i of live) {
      const known = byOwner.get(data.owners[i]) || [0, 0];
      known[0] += amounts[i]; known[1]++;
      byOwner.set(data.owners[i], known);
    }
    const first = [...byOwner].sort((a, b) => b[1][0] - a[1][0] || a[0] - b[0]).slice(0, 15);
    byId("rows").replaceChildren(...first.map(([owner, [sum, times]]) => {
      const row = element("tr");
      row.append(element("td", number(sum)), element("td", percent(sum / sums[now])), element("td", times.toLocaleString("en-US")),
        element("td", cut(siteOf(owner), 300)));
      return row;
    }));
  }

  function legend() {
    const by = heat ? "heat" : byId("colour").value;
    if (shownLegend === by) return;  // playing changes the snapshot, not the legend
    shownLegend = by;
    const items = by === "site"
      ? ranked.slice(0, MAX_SITES).map(site => [siteColours[site], cut(siteOf(site), 200)])
      : by === "kind" ? data.subtypes.map((kind, i) => [data.palette[i % data.palette.length], visible(cut(kind, 200)) || "unknown"])
      : by === "amount" ? [[rampCss, `${number(smallest)} to ${number(largest)}, logarithmic`]]
      : by === "age" ? [[rampCss, "new to as old as the run"]]
      : [[rampCss, `allocated once to ${count(hottest, "time", "times")}, logarithmic`]];
    if (by === "site" && data.sites.length > MAX_SITES) items.push([data.palette[OTHERS], `${data.sites.length - MAX_SITES} others`]);
    byId("legend").replaceChildren(...items.map(([colour, text]) => legendEntry(colour, text)));
  }

  function lines(found) {
    if (found.chunk !== undefined) {
      const i = found.chunk;
      const until = data.ends[i] > last ? "to the end" : `until ${timeOf(data.ends[i])}`;
      return [siteOf(data.owners[i]), `${number(amounts[i])} by ${visible(cut(data.subtypes[data.kinds[i]] || "unknown", 100))}, ` +
        `${percent(amounts[i] / sums[now])} of what is allocated`, `${hexOf(places[i])} \u2013 ${hexOf(places[i] + amounts[i] - 1)}`,
        `allocated at ${timeOf(data.firsts[i])}, ${until}`];
    }
    return [`allocated ${count(data.counts[found.cell], "time", "times")}`,
      `${hexOf(found.cell * data.cell)} \u2013 ${hexOf((found.cell + 1) * data.cell - 1)}`];
  }
  function detail(found) {
    const [title, ...rest] = found ? lines(found) : [];
    byId("details").replaceChildren(...(found ? [element("b", title), ...rest.map(text => element("div", text))] : []));
  }

  // ---- mouse ----------------------------------------------------------------------------------------------

  function partAt(event) {
    const box = canvas.getBoundingClientRect();
    const y = event.clientY - box.top + viewport.scrollTop, x = event.clientX - box.left;
    let row = 0;
    while (row < rows && y >= tops[row] + ROW) row++;
    if (row >= rows || y < tops[row] || x < GUTTER || x >= GUTTER + size.inner) return null;
    const pixel = data.rowSize / size.inner;
    const place = row * data.rowSize + (x - GUTTER) * pixel;
    if (heat) {
      const cell = Math.floor(place / data.cell);
      return data.counts[cell] ? {cell} : null;
    }
    // Binary search for the last chunk that starts at or before the place.
    let low = 0, high = live.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (places[live[middle]] <= place) low = middle + 1; else high = middle;
    }
    // A chunk is drawn at least a pixel wide, so that a pixel beside it counts as hit.
    for (const k of [low - 1, low])
      if (k >= 0 && k < live.length && place < places[live[k]] + Math.max(amounts[live[k]], pixel) && place >= places[live[k]] - pixel)
        return {chunk: live[k]};
    return null;
  }
  function hover(event) {
    const found = partAt(event);
    const same = JSON.stringify(found) === JSON.stringify(hovered);
    hovered = found;
    tip.hidden = !found;
    if (!same) redraw();
    if (!found) return;
    const [title, ...rest] = lines(found);
    if (!same) tip.replaceChildren(element("b", cut(title, 300)), ...rest.map(text => element("div", text)));
    placeTip(tip, event);
  }
  canvas.addEventListener("pointermove", hover);
  canvas.addEventListener("pointerleave", () => { hovered = null; tip.hidden = true; redraw(); });
  canvas.addEventListener("click", event => {
    const found = partAt(event);
    selected = found && found.chunk !== undefined ? found.chunk : -1;
    detail(found);
    redraw();
  });
  viewport.addEventListener("scroll", redraw);
  timeline.addEventListener("click", event => {
    const box = timeline.getBoundingClientRect();
    go(Math.floor((event.clientX - box.left) / box.width * (last + 1)));
  });

  // ---- keyboard and controls ------------------------------------------------------------------------------

  canvas.addEventListener("keydown", event => {
    if (heat || !live.length || !["ArrowLeft", "ArrowRight"].includes(event.key)) return;
    const at = live.indexOf(selected), step = event.key === "ArrowRight" ? 1 : -1;
    const next = at < 0 ? (step > 0 ? 0 : live.length - 1) : Math.min(Math.max(at + step, 0), live.length - 1);
    selected = live[next];
    const y = tops[rowOf(places[selected])];
    if (y < viewport.scrollTop || y + ROW > viewport.scrollTop + size.height) viewport.scrollTop = y - size.height / 2;
    detail({chunk: selected});
    redraw();
    event.preventDefault();
  });
  function go(snapshot) {
    now = Math.min(Math.max(snapshot, 0), last);
    if (heat) { choose(false); return; }
    show();
  }
  function play(on) {
    clearInterval(playing);
    playing = 0;
    if (on && last > 0) {
      if (now >= last) go(0);
      // The whole run takes about ten seconds, at no more than 25 frames a second, which the eye can follow.
      const each = Math.min(Math.max(10000 / (last + 1), 40), 600), step = Math.max(1, Math.round(each * (last + 1) / 10000 / 1.5));
      playing = setInterval(() => { go(now + step); if (now >= last) play(false); }, each);
    }
    byId("play").textContent = playing ? "\u275a\u275a Pause" : "\u25b6 Play";
    if (!playing) summarize();
  }
  function choose(hot) {
    heat = hot;
    if (heat) play(false);
    selected = -1;
    hovered = null;
    tip.hidden = true;
    byId("show-heap").setAttribute("aria-pressed", String(!heat));
    byId("show-heat").setAttribute("aria-pressed", String(heat));
    byId("sites").hidden = heat;
    byId("colour").disabled = heat;
    canvas.setAttribute("aria-label", heat ? "Heat map of allocations over all snapshots." : "Heap map. Left and right arrow go from chunk to chunk.");
    detail(null);
    show();
    summarize();
  }
  slider.addEventListener("input", () => { play(false); go(Number(slider.value)); });
  byId("play").addEventListener("click", () => play(!playing));
  byId("peak").addEventListener("click", () => { play(false); go(peak); });
  byId("colour").addEventListener("change", show);
  byId("show-heap").addEventListener("click", () => choose(false));
  byId("show-heat").addEventListener("click", () => choose(true));
  document.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("select")) return;
    if (event.key === "p") play(!playing);
    else if (event.key === "[") { play(false); go(now - 1); }
    else if (event.key === "]") { play(false); go(now + 1); }
    else return;
    event.preventDefault();
  });

  slider.max = String(last);
  slider.disabled = byId("play").disabled = last < 1;
  byId("row-size").textContent = number(data.rowSize);
  const known = data.totals.peak !== undefined
    ? `peak ${number(data.totals.peak)}, allocated ${number(data.totals.allocated)}, leaked ${number(data.totals.leaked)}`
    : `at most ${number(most)} at once`;
  byId("subtitle").textContent = `${known}; ${count(data.allocations, "allocation", "allocations")}, ${count(last + 1, "snapshot", "snapshots")}`;
  byId("notes").replaceChildren(...data.notes.map(text => element("li", visible(text))));
  byId("single").hidden = data.single;
  now = 0;
  fit();
  choose(heat);
  draw();
  new ResizeObserver(() => { fit(); drawTimeline(); draw(); }).observe(viewport);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { fit(); drawTimeline(); draw(); });
  document.documentElement.dataset.drawn = String(Math.round(performance.now()));
})();
