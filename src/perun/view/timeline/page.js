// The page of a timeline: drawing, zoom, search, keyboard, tables. Times are nanoseconds since the start of the run; view
// is the part of them that is visible.
(() => {
  "use strict";
  const data = JSON.parse(byId("data").textContent);
  const {columns, threads, apis, objects, stops} = data;
  const canvas = byId("graph"), viewport = byId("viewport"), tip = byId("tip"), search = byId("search");
  const overview = byId("overview"), pen = canvas.getContext("2d"), thin = overview.getContext("2d");
  const sampled = data.noun === "sample", nouns = data.noun + "s", usual = sampled ? "object" : "kind";  // calls, or what samples saw of functions
  const LINE = 18, GAP = 5, AXIS = 22, MOST_OBJECTS = 200, end = Math.max(data.end, 1);
  const all = perunRows(columns, threads.length);
  const called = new Set(columns.thread);
  let rows = [], tops = [], height = 0, label = 120;
  let view = [0, end], selected = -1, hovered = -1, matches = null, colouring = usual, roles = {}, size = {width: 0, height: 0};

  // ---- texts ----------------------------------------------------------------------------------------------

  const time = ns => perunNumber(ns, "ns", 4);
  const percent = share => Number.isFinite(share) ? (share && share < 0.001 ? "<0.1" : (share * 100).toFixed(1)) + " %" : "\u2013";
  const count = (number, one, many) => `${number.toLocaleString("en-US")} ${number === 1 ? one : many}`;
  const threadName = number => {
    const [name, process] = threads[number];
    return data.processes.length > 1 ? `${name} in ${data.processes[process]}` : name;
  };
  const objectName = entry => {
    const object = columns.object[entry];
    return object >= 0 ? objects[object] : object === -2 ? "several objects" : "";
  };
  const nameOf = entry => sampled ? objectName(entry) : apis[columns.api[entry]][0];
  const kindOf = api => apis[api][1] === apis[api][2] ? apis[api][1] : `${apis[api][1]} ${apis[api][2]}`;
  const amountOf = (amount, unit) => unit ? perunNumber(amount, unit) : amount.toLocaleString("en-US");
  const stoppedIn = (from, to) => stops.reduce((sum, [start, length]) =>
    sum + Math.max(0, Math.min(start + length, to) - Math.max(start, from)), 0);

  function facts(entry) {
    const api = columns.api[entry], calls = columns.calls[entry], [, kind, subtype, unit] = apis[api];
    const start = columns.start[entry], duration = columns.duration[entry];
    const found = [["Thread", visible(threadName(columns.thread[entry]))]];
    if (objectName(entry) && !sampled) found.push(["Object", visible(objectName(entry))]);
    found.push(["Kind", kind === subtype ? kind : `${kind}, ${subtype}`]);
    found.push(["Start", time(start)]);
    if (sampled) found.push(["Samples", calls.toLocaleString("en-US")], ["Time", time(columns.busy[entry])]);
    else if (calls > 1) found.push(["Calls", `${calls.toLocaleString("en-US")} within ${time(duration)}, ${time(columns.busy[entry])} in the calls`]);
    else found.push(["Duration", duration ? time(duration) : "an event without duration"]);
    if (columns.amount[entry] && !sampled) found.push(["Amount", amountOf(columns.amount[entry], unit)]);
    const stopped = stoppedIn(start, start + duration);
    if (stopped) found.push(["Stopped meanwhile", time(stopped)]);
    return found;
  }

  // ---- colours --------------------------------------------------------------------------------------------

  const KINDS = ["disk", "net", "lock", "wait", "sleep", "random", "thread", "timer"];
  const PLACES = {disk: 0, net: 1, random: 2, lock: 3, wait: 4, thread: 5, timer: 5, sleep: 7};
  const hash = text => {
    let value = 2166136261;
    for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 16777619);
    return value >>> 0;
  };
  // Subtypes of one type differ in shade, in the order in which they first appear.
  const kindColours = (() => {
    const seen = {};
    return apis.map(([, kind, subtype]) => {
      const own = seen[kind] ||= [];
      if (!own.includes(subtype)) own.push(subtype);
      const base = data.palette[kind in PLACES ? PLACES[kind] : OTHERS];
      return mixed(base, "#ffffff", Math.min(own.indexOf(subtype), 4) * 0.17);
    });
  })();
  const objectColours = objects.map(name => data.palette[DISTINCT[hash(name) % DISTINCT.length]]);
  const colourOf = entry => {
    if (matches && !matches[entry]) return roles.line;
    if (colouring === "kind") return kindColours[columns.api[entry]];
    const object = columns.object[entry];
    return object >= 0 ? objectColours[object] : data.palette[OTHERS];
  };
  const inks = new Map();
  const inkOn = colour => {
    if (!inks.has(colour)) {
      const [r, g, b] = channels(colour).map(part => part / 255)
        .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
      inks.set(colour, 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000000" : "#ffffff");
    }
    return inks.get(colour);
  };

  function legend() {
    const seconds = new Map();
    for (let entry = 0; entry < columns.start.length; entry++) {
      const key = colouring === "kind" ? kindOf(columns.api[entry]) : objectName(entry) || "no object";
      const known = seconds.get(key) || [colouring === "kind" ? kindColours[columns.api[entry]] : colourIgnoringSearch(entry), 0];
      known[1] += columns.busy[entry];
      seconds.set(key, known);
    }
    const order = [...seconds].sort((a, b) => b[1][1] - a[1][1]);
    const items = order.slice(0, 12).map(([name, [colour, sum]]) =>
      legendEntry(colour, `${visible(cut(name, 120))} \u2013 ${time(sum)}`, {title: visible(cut(name, 500))}));
    if (order.length > 12) items.push(element("li", `and ${order.length - 12} more`));
    items.unshift(legendEntry(mixed(roles.line, roles.background, 0.45), sampled ? "not seen on a processor" : "outside of calls"));
    if (stops.length) items.push(legendEntry(data.palette[OTHERS], `stopped \u2013 ${time(stops.reduce((sum, stop) => sum + stop[1], 0))}`));
    byId("legend").replaceChildren(...items);
  }
  function colourIgnoringSearch(entry) {
    const object = columns.object[entry];
    return object >= 0 ? objectColours[object] : data.palette[OTHERS];
  }

  // ---- layout and drawing ---------------------------------------------------------------------------------

  function layout() {
    rows = byId("idle").checked ? all : all.filter(row => called.has(row.thread));
    if (!rows.length) rows = all;
    let top = AXIS;
    tops = rows.map((row, i) => {
      if (i && row.thread !== rows[i - 1].thread) top += GAP;
      const own = top;
      top += LINE;
      return own;
    });
    height = top + 3;
  }

  function fit() {
    size.width = viewport.clientWidth;
    size.height = Math.min(height, Math.max(160, Math.round(window.innerHeight * 0.56)));
    viewport.style.height = size.height + 2 + "px";
    byId("sheet").style.height = height + "px";
    label = Math.min(190, Math.round(size.width * 0.22));
    sharpen(canvas, size.width, size.height);
    // The strip stands above the calls, and not above the names of the threads.
    overview.style.marginLeft = label + "px";
    overview.style.width = `calc(100% - ${label}px)`;
    sharpen(overview, overview.clientWidth, 46);
    roles = themeColours();
  }
  const plot = () => Math.max(size.width - label, 1);
  const x = ns => label + (ns - view[0]) / (view[1] - view[0]) * plot();

  function drawAxis() {
    const wanted = Math.max(2, Math.floor(plot() / 110)), rough = (view[1] - view[0]) / wanted;
    const power = 10 ** Math.floor(Math.log10(rough)), step = [1, 2, 5, 10].map(one => one * power).find(one => one >= rough);
    const ticks = [];
    for (let tick = Math.ceil(view[0] / step) * step; tick <= view[1]; tick += step) ticks.push(tick);
    pen.fillStyle = roles.background;
    pen.fillRect(0, 0, size.width, AXIS - 2);
    pen.textBaseline = "middle";
    pen.font = `11px ${roles.mono}`;
    for (const tick of ticks) {
      const place = x(tick);
      pen.fillStyle = roles.line;
      pen.fillRect(place, AXIS - 6, 1, 4);
      pen.fillStyle = roles.muted;
      const text = perunTick(tick, ticks, "ns");
      pen.fillText(text, Math.min(place + 3, size.width - pen.measureText(text).width - 2), 9);
    }
  }

  function drawRow(row, y) {
    const [, , created, destroyed] = threads[row.thread];
    const from = Math.max(x(created), label), to = Math.min(x(destroyed), size.width);
    pen.fillStyle = mixed(roles.line, roles.background, 0.45);
    if (to > from) pen.fillRect(from, y, Math.max(to - from, 1), LINE - 2);
    const letter = pen.measureText("M").width;
    perunVisible(row.entries, columns, view, plot(), (entry, start, stop) => {
      const fill = colourOf(entry), wide = stop - start;
      pen.fillStyle = fill;
      pen.fillRect(label + start, y, Math.max(wide - (wide > 3 ? 0.6 : 0), 1), LINE - 2);
      const letters = Math.floor((wide - 6) / letter);
      if (letters < 3) return;
      pen.fillStyle = inkOn(fill);
      const calls = columns.calls[entry];
      pen.fillText(cut(nameOf(entry) + (calls > 1 && !sampled ? ` \u00d7${calls}` : ""), letters), label + start + 3, y + LINE / 2 - 1, wide - 5);
    });
    if (matches && row.matching.length) {  // a match is never hidden by what is drawn in the same column
      perunVisible(row.matching, columns, view, plot(), (entry, start, stop) => {
        if (stop - start >= 1) return;
        pen.fillStyle = roles.mark;
        pen.fillRect(label + start, y, 1, LINE - 2);
      });
    }
  }

  function drawStops(top) {
    if (!byId("stops").checked) return;
    pen.save();
    pen.globalAlpha = 0.4;
    pen.fillStyle = data.palette[OTHERS];
    let before = -1;
    for (const [start, length] of stops) {
      const from = Math.max(x(start), label), to = Math.min(x(start + length), size.width);
      if (to < label || from > size.width || to - before < 0.5) continue;
      pen.fillRect(from, AXIS - 2, Math.max(to - from, 1), height - AXIS - top);
      before = to;
    }
    pen.restore();
  }

  function draw() {
    const top = viewport.scrollTop;
    pen.fillStyle = roles.background;
    pen.fillRect(0, 0, size.width, size.height);
    pen.textBaseline = "middle";
    let named = -1;
    rows.forEach((row, i) => {
      const y = tops[i] - top;
      if (y + LINE < AXIS || y > size.height) return;
      pen.font = `11px ${roles.mono}`;
      drawRow(row, y);
      if (row.thread !== named) {
        named = row.thread;
        pen.fillStyle = roles.text;
        pen.fillText(cut(visible(threadName(row.thread)), Math.floor((label - 8) / pen.measureText("M").width)), 4, y + LINE / 2 - 1, label - 8);
      }
    });
    drawStops(top);
    for (const [entry, colour, thick] of [[hovered, roles.text, 1], [selected, roles.mark, 2]]) {
      if (entry < 0) continue;
      const place = rows.findIndex(row => row.thread === columns.thread[entry] && holds(row, entry));
      const from = Math.max(x(columns.start[entry]), label), to = Math.min(x(columns.start[entry] + columns.duration[entry]), size.width);
      if (place < 0 || to < label || from > size.width) continue;
      pen.strokeStyle = colour;
      pen.lineWidth = thick;
      pen.strokeRect(from, tops[place] - top, Math.max(to - from, 1), LINE - 2);
    }
    drawAxis();
    drawOverview();
  }
  const holds = (row, entry) => {
    for (let place = perunFirst(row.entries, columns.start, columns.start[entry]); place < row.entries.length; place++) {
      if (row.entries[place] === entry) return true;
      if (columns.start[row.entries[place]] > columns.start[entry]) return false;
    }
    return false;
  };

  let density = null;
  function drawOverview() {
    const width = overview.clientWidth, tall = 46, bins = Math.max(1, Math.min(600, Math.floor(width / 2)));
    if (!density || density.length !== bins) density = perunDensity(columns, end, bins);
    const most = density.reduce((a, b) => Math.max(a, b), 1e-12);
    thin.fillStyle = roles.surface;
    thin.fillRect(0, 0, width, tall);
    thin.fillStyle = roles.muted;
    density.forEach((share, bin) => {
      const high = Math.max(share / most * (tall - 6), share ? 1 : 0);
      thin.fillRect(bin * width / bins, tall - high, Math.max(width / bins - 0.4, 0.5), high);
    });
    const from = view[0] / end * width, to = view[1] / end * width;
    thin.fillStyle = roles.accent;
    thin.globalAlpha = 0.22;
    thin.fillRect(from, 0, Math.max(to - from, 2), tall);
    thin.globalAlpha = 1;
    thin.strokeStyle = roles.accent;
    thin.strokeRect(from + 0.5, 0.5, Math.max(to - from - 1, 1), tall - 1);
  }
  const redraw = oncePerFrame(draw);

  // ---- zoom and selection ---------------------------------------------------------------------------------

  function showRange(from, to) {
    const wide = Math.min(Math.max(to - from, Math.min(50, end)), end), start = Math.min(Math.max(from, 0), end - wide);
    view = [start, start + wide];
    byId("reset").disabled = wide >= end;
    save();
    redraw();
  }
  function zoomBy(factor, at = (view[0] + view[1]) / 2) {
    showRange(at - (at - view[0]) * factor, at + (view[1] - at) * factor);
  }
  function zoomTo(entry) {
    const start = columns.start[entry], wide = Math.max(columns.duration[entry], 100);
    showRange(start - wide * 0.5, start + wide * 1.5);
  }
  function reset() { showRange(0, end); }

  function select(entry) {
    selected = entry;
    showDetails(entry);
    if (entry >= 0) {
      const start = columns.start[entry], stop = start + columns.duration[entry], wide = view[1] - view[0];
      if (stop < view[0] || start > view[1]) showRange(start - wide / 3, start + wide * 2 / 3);
      const place = rows.findIndex(row => row.thread === columns.thread[entry] && holds(row, entry));
      if (place >= 0 && tops[place] < viewport.scrollTop + AXIS) viewport.scrollTop = tops[place] - AXIS;
      else if (place >= 0 && tops[place] + LINE > viewport.scrollTop + size.height) viewport.scrollTop = tops[place] + LINE - size.height + 4;
    }
    save();
    redraw();
  }
  function showDetails(entry) {
    if (entry < 0) {
      byId("details").replaceChildren(element("p", `Point at a ${sampled ? "function" : "call"}, or select one.`, {class: "rest"}));
      return;
    }
    const list = element("dl");
    for (const [name, text] of facts(entry)) list.append(element("dt", name), element("dd", text));
    byId("details").replaceChildren(element("h2", visible(nameOf(entry))), list);
  }
  // The next call of the thread that is drawn and not dimmed, or the nearest one of another thread.
  function beside(entry, step) {
    for (let other = entry + step; other >= 0 && other < columns.start.length; other += step) {
      if (columns.thread[other] !== columns.thread[entry]) return entry;
      if (!matches || matches[other]) return other;
    }
    return entry;
  }
  function otherThread(entry, step) {
    const middle = columns.start[entry] + columns.duration[entry] / 2;
    let place = rows.findIndex(row => row.thread === columns.thread[entry]);
    while (rows[place] && rows[place].thread === columns.thread[entry]) place += step;
    if (!rows[place]) return entry;
    while (rows[place - 1] && rows[place - 1].thread === rows[place].thread) place--;
    const found = perunEntryAt(rows[place].entries, columns, middle, Infinity);
    return found < 0 ? entry : found;
  }

  // ---- search ---------------------------------------------------------------------------------------------

  function find() {
    const text = search.value;
    let wanted = null;
    search.removeAttribute("aria-invalid");
    byId("found").textContent = "";
    try {  // smart case: only an expression with a capital letter is case-sensitive
      if (text) wanted = new RegExp(text, text === text.toLowerCase() ? "iu" : "u");
    } catch {
      search.setAttribute("aria-invalid", "true");
      byId("found").textContent = "not a regular expression";
    }
    matches = null;
    if (wanted) {
      const ofApi = apis.map(api => wanted.test(api[0])), ofObject = objects.map(name => wanted.test(name));
      matches = Uint8Array.from(columns.api, (api, entry) => ofApi[api] || (columns.object[entry] >= 0 && ofObject[columns.object[entry]]) ? 1 : 0);
      let calls = 0, busy = 0;
      matches.forEach((match, entry) => { if (match) { calls += columns.calls[entry]; busy += columns.busy[entry]; } });
      byId("found").textContent = calls ? `${count(calls, data.noun, nouns)}, ${time(busy)}` : "no match";
    }
    for (const row of all) row.matching = matches ? row.entries.filter(entry => matches[entry]) : [];
    save();
    redraw();
  }
  function nextMatch(step) {
    if (!matches) return;
    const total = matches.length;
    let entry = selected >= 0 ? selected : step > 0 ? -1 : total;
    for (let tried = 0; tried < total; tried++) {
      entry = (entry + step + total) % total;
      if (matches[entry]) { select(entry); return; }
    }
  }

  // ---- mouse ----------------------------------------------------------------------------------------------

  const timeAt = event => view[0] + (event.clientX - canvas.getBoundingClientRect().left - label) / plot() * (view[1] - view[0]);
  function entryAt(event) {
    const box = canvas.getBoundingClientRect(), y = event.clientY - box.top + viewport.scrollTop;
    if (event.clientX - box.left < label || event.clientY - box.top < AXIS) return -1;
    const place = tops.findIndex(top => top <= y && y < top + LINE);
    return place < 0 ? -1 : perunEntryAt(rows[place].entries, columns, timeAt(event), 2 * (view[1] - view[0]) / plot());
  }
  let dragged = null;
  function hover(event) {
    const entry = entryAt(event);
    if (entry !== hovered) {
      hovered = entry;
      redraw();
      if (entry >= 0) {
        tip.replaceChildren(element("b", visible(nameOf(entry))));
        for (const [name, text] of facts(entry)) tip.append(element("div", `${name}: ${cut(text, 200)}`));
      }
      if (selected < 0) showDetails(entry);
    }
    tip.hidden = entry < 0;
    if (entry >= 0) placeTip(tip, event);
  }
  canvas.addEventListener("pointermove", event => {
    if (dragged && event.buttons & 1) {
      const way = event.clientX - dragged.x;
      if (Math.abs(way) > 4) dragged.moved = true;
      if (dragged.moved) {
        const by = way / plot() * (dragged.view[1] - dragged.view[0]);
        tip.hidden = true;
        showRange(dragged.view[0] - by, dragged.view[1] - by);
        return;
      }
    }
    hover(event);
  });
  canvas.addEventListener("pointerleave", () => {
    tip.hidden = true;
    hovered = -1;
    if (selected < 0) showDetails(-1);
    redraw();
  });
  canvas.addEventListener("pointerdown", event => { dragged = {x: event.clientX, view: view.slice(), moved: false}; });
  canvas.addEventListener("click", event => {
    const moved = dragged && dragged.moved;
    dragged = null;
    if (moved) return;
    select(entryAt(event));
  });
  canvas.addEventListener("dblclick", event => { const entry = entryAt(event); if (entry >= 0) zoomTo(entry); });
  viewport.addEventListener("wheel", event => {
    const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      zoomBy(Math.exp(Math.max(-80, Math.min(80, event.deltaY)) / 160), Math.min(Math.max(timeAt(event), view[0]), view[1]));
    } else if (sideways && Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) {
      event.preventDefault();
      const by = sideways / plot() * (view[1] - view[0]);
      showRange(view[0] + by, view[1] + by);
    }
  }, {passive: false});
  viewport.addEventListener("scroll", redraw);
  let brushed = null;
  const timeInOverview = event => {
    const box = overview.getBoundingClientRect();
    return Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1) * end;
  };
  overview.addEventListener("pointerdown", event => {
    brushed = timeInOverview(event);
    overview.setPointerCapture(event.pointerId);
  });
  overview.addEventListener("pointermove", event => {
    if (brushed === null || !(event.buttons & 1)) return;
    const other = timeInOverview(event);
    if (Math.abs(other - brushed) > end / 500) showRange(Math.min(brushed, other), Math.max(brushed, other));
  });
  overview.addEventListener("pointerup", event => {
    const wide = view[1] - view[0], other = timeInOverview(event);
    if (brushed !== null && Math.abs(other - brushed) <= end / 500) showRange(other - wide / 2, other + wide / 2);
    brushed = null;
  });

  // ---- keyboard and controls ------------------------------------------------------------------------------

  canvas.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey || !columns.start.length) return;
    const steps = {ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1};
    if (event.key in steps && selected < 0) select(firstVisible());
    else if (event.key === "ArrowLeft" || event.key === "ArrowRight") select(beside(selected, steps[event.key]));
    else if (event.key in steps) select(otherThread(selected, steps[event.key]));
    else if (event.key === "Enter" && selected >= 0) zoomTo(selected);
    else return;
    event.preventDefault();
  });
  const firstVisible = () => {
    for (const row of rows) if (row.entries.length) {
      const place = Math.min(perunFirst(row.entries, columns.start, view[0]), row.entries.length - 1);
      return row.entries[place];
    }
    return -1;
  };
  search.addEventListener("input", () => { selected = -1; find(); });
  search.addEventListener("keydown", event => {
    if (event.key === "Enter") { event.preventDefault(); nextMatch(event.shiftKey ? -1 : 1); }
  });
  document.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") {
      event.preventDefault();
      if (search.value) { search.value = ""; find(); canvas.focus(); }
      else if (document.activeElement === search) canvas.focus();
      else { reset(); select(-1); }
      return;
    }
    if (event.target.closest("input:not([type=checkbox]), select")) return;
    if (event.key === "/") { search.focus(); search.select(); }
    else if (event.key === "0") reset();
    else if (event.key === "+" || event.key === "=") zoomBy(0.5);
    else if (event.key === "-") zoomBy(2);
    else if (event.key === "c") recolour(colouring === "kind" ? "object" : "kind");
    else return;
    event.preventDefault();
  });
  function recolour(name) {
    colouring = byId("colour").value = name;
    legend();
    save();
    redraw();
  }
  byId("colour").addEventListener("change", event => recolour(event.target.value));
  byId("stops").addEventListener("change", redraw);
  byId("idle").addEventListener("change", () => { layout(); fit(); redraw(); });
  byId("in").addEventListener("click", () => zoomBy(0.5));
  byId("out").addEventListener("click", () => zoomBy(2));
  byId("reset").addEventListener("click", reset);
  if (sampled) {
    byId("colour").options[1].textContent = "function";
    byId("objects").querySelector("summary").textContent = "Functions";
    byId("objects").open = true;
  }
  byId("stops-label").hidden = !stops.length;
  byId("idle-label").hidden = called.size === threads.length || !called.size;

  // ---- the state in the address, so that it survives a reload and can be shared as a link -----------------

  let saves = false;
  function save() {
    if (!saves) return;
    const state = new URLSearchParams();
    if (search.value) state.set("search", search.value);
    if (view[0] > 0 || view[1] < end) state.set("view", view.map(Math.round).join("-"));
    if (colouring !== usual) state.set("colour", colouring);
    if (selected >= 0) state.set("call", String(selected));
    try { history.replaceState(null, "", "#" + state); } catch { /* too often, or not allowed here */ }
  }
  function restore() {
    const state = new URLSearchParams(location.hash.slice(1));
    search.value = state.get("search") || "";
    if (["kind", "object"].includes(state.get("colour"))) colouring = state.get("colour");
    byId("colour").value = colouring;
    const [from, to] = (state.get("view") || "").split("-").map(Number), call = Number(state.get("call") || -1);
    if (to > from) showRange(from, to);
    return Number.isInteger(call) && call >= 0 && call < columns.start.length ? call : -1;
  }

  layout();
  fit();
  const chosen = restore();
  legend();
  find();
  select(chosen);
  perunTables(data.rows, MOST_OBJECTS, nouns, name => {
    search.value = name.slice(0, 1000).replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
    selected = -1;
    find();
    nextMatch(1);
    canvas.scrollIntoView({block: "nearest"});
  });
  draw();
  saves = true;
  new ResizeObserver(() => { fit(); draw(); }).observe(viewport);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { fit(); legend(); draw(); });
  window.addEventListener("resize", () => { fit(); redraw(); });
  document.documentElement.dataset.drawn = String(Math.round(performance.now()));
})();
