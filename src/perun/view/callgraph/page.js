// The page of a call graph: all functions by level, and the callers and callees around one of them. Functions are
// numbers; those from data.known on are of other files.
(() => {
  "use strict";
  const data = JSON.parse(byId("data").textContent);
  const SVG = "http://www.w3.org/2000/svg";
  const names = data.names.map(visible), total = names.length, known = data.known;
  const MOST = 40;      // functions in a column before the rest is folded
  const FEW = 60;       // functions on a level that are shown with their names
  const FOUND = 50;     // matches that are listed
  const WIDTH = 210, HEIGHT = 24, GAP = 8, BETWEEN = 90, TOP = 26;
  const callees = Array.from({length: total}, () => []), callers = Array.from({length: total}, () => []);
  const kindOf = new Map(), timesOf = new Map();
  const key = (caller, callee) => caller * total + callee;
  data.callers.forEach((caller, i) => {
    const callee = data.callees[i], pair = key(caller, callee);
    if (!kindOf.has(pair)) { callees[caller].push(callee); callers[callee].push(caller); }
    kindOf.set(pair, data.kindNames[data.kinds[i]]);
    timesOf.set(pair, data.times[i]);
  });
  const pointers = new Set(data.pointers), taken = new Set(data.taken);
  const changeOf = number => Object.hasOwn(data.changes, number) ? data.changes[number] : null;
  const count = (amount, one, many) => `${amount.toLocaleString("en-US")} ${amount === 1 ? one : many}`;
  let focus = data.focus ? data.names.indexOf(data.focus) : -1, depth = data.depth, history = [], selected = -1;
  let folded = new Set(), unfolded = new Set(), shownAt = new Map();

  // ---- what leads to a change ----------------------------------------------------------------------------

  const changed = Object.keys(data.changes).map(Number);
  const leading = new Set(changed);
  for (const queue = [...changed]; queue.length;) {
    for (const caller of callers[queue.pop()]) if (!leading.has(caller)) { leading.add(caller); queue.push(caller); }
  }
  const isShown = number => !byId("only-changes").checked || leading.has(number);

  // ---- levels ----------------------------------------------------------------------------------------------

  function describe(number) {
    const change = changeOf(number), parts = [names[number]];
    if (change) parts.push(change[0] === "new" ? "new" : `${change[0]}: ${visible(change[1])}`);
    if (number < known && data.counted) parts.push(`called ${count(data.counts[number], "time", "times")}`);
    return parts.join("\n");
  }

  function cell(number) {
    const change = changeOf(number);
    const button = element("button", cut(names[number], 60), {type: "button", title: describe(number), "data-function": number});
    button.setAttribute("aria-label", describe(number).replaceAll("\n", ", "));
    if (change) button.classList.add(change[0]);
    return button;
  }

  function drawLevels() {
    const bands = new Map();
    for (let number = 0; number < known; number++) {
      const level = data.levels[number];
      if (!isShown(number)) continue;
      if (!bands.has(level)) bands.set(level, []);
      bands.get(level).push(number);
    }
    const order = [...bands.keys()].sort((a, b) => (a < 0) - (b < 0) || a - b);
    const weight = number => (changeOf(number) ? 1e15 : 0) + data.counts[number] * 1e3 + callers[number].length;
    byId("levels").replaceChildren(...order.map(level => {
      const own = bands.get(level).sort((a, b) => weight(b) - weight(a) || a - b);
      const band = element("div", undefined, {class: "level"});
      const title = element("h2", level < 0 ? "only by pointers" : `level ${level}`);
      title.append(element("small", count(own.length, "function", "functions")));
      const cells = element("div", undefined, {class: own.length > FEW ? "cells many" : "cells"});
      cells.append(...own.map(cell));
      band.append(title, cells);
      return band;
    }));
    if (!order.length) byId("levels").replaceChildren(element("p", "no function changed", {class: "level"}));
    mark();
  }

  function mark() {
    const wanted = byId("search").value.trim().toLowerCase();
    for (const button of byId("levels").querySelectorAll("button")) {
      const matches = wanted && names[button.dataset.function].toLowerCase().includes(wanted);
      button.classList.toggle("found", Boolean(matches));
      button.classList.toggle("faint", Boolean(wanted) && !matches);
    }
  }

  // ---- around a function ---------------------------------------------------------------------------------

  // The functions of each column: negative ones hold callers, 0 the focus, positive ones callees.
  function columnsAround() {
    const place = new Map([[focus, 0]]), columns = new Map([[0, [focus]]]), rest = new Map();
    for (const [step, next] of [[1, callees], [-1, callers]]) {
      let front = [focus];
      for (let level = 1; level <= depth && front.length; level++) {
        const column = step * level, found = [];
        for (const number of front) {
          if (folded.has(number) && number !== focus) continue;
          for (const other of next[number]) if (!place.has(other) && isShown(other)) { place.set(other, column); found.push(other); }
        }
        const weight = number => (changeOf(number) ? 1e15 : 0) + (data.counts[number] || 0) * 1e3 + (number < known ? 1 : 0);
        const sorted = found.map((number, i) => [number, i]).sort((a, b) => weight(b[0]) - weight(a[0]) || a[1] - b[1]).map(one => one[0]);
        const most = unfolded.has(column) ? sorted.length : MOST;
        for (const number of sorted.slice(most)) place.delete(number);
        if (sorted.length > most) rest.set(column, sorted.length - most);
        // Beside what leads to them, so that fewer lines cross.
        front = sorted.slice(0, most);
        if (front.length) columns.set(column, front);
      }
    }
    return {place, columns, rest};
  }

  const node = (name, attributes, text) => {
    const made = document.createElementNS(SVG, name);
    for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
    if (text !== undefined) made.textContent = text;
    return made;
  };

  function drawAround() {
    const graph = byId("graph"), {place, columns, rest} = columnsAround();
    const order = [...columns.keys()].sort((a, b) => a - b);
    const rows = Math.max(...order.map(column => columns.get(column).length + (rest.has(column) ? 1 : 0)));
    const height = TOP + rows * (HEIGHT + GAP) + GAP, width = order.length * (WIDTH + BETWEEN) - BETWEEN + 56;
    graph.setAttribute("width", width);
    graph.setAttribute("height", height);
    const x = column => 8 + order.indexOf(column) * (WIDTH + BETWEEN);
    const at = new Map(), boxes = [];
    for (const column of order) {
      const own = columns.get(column), used = own.length + (rest.has(column) ? 1 : 0);
      const start = TOP + (rows - used) / 2 * (HEIGHT + GAP);
      const title = column ? `${count(Math.abs(column), "level", "levels")} ${column < 0 ? "up" : "down"}` : "function";
      boxes.push(node("text", {class: "column", x: x(column), y: 14}, title));
      own.forEach((number, row) => {
        at.set(number, {x: x(column), y: start + row * (HEIGHT + GAP), column, row});
        boxes.push(box(number, at.get(number)));
      });
      if (rest.has(column)) boxes.push(more(column, rest.get(column), x(column), start + own.length * (HEIGHT + GAP)));
    }
    const lines = [];
    for (const [number, from] of at) {
      for (const callee of callees[number]) {
        const to = at.get(callee);
        if (to) lines.push(line(number, callee, from, to));
      }
    }
    graph.replaceChildren(...lines, ...boxes);
    shownAt = at;
    byId("depth").textContent = count(depth, "level", "levels");
    const middle = at.get(focus);
    byId("viewport").scrollTo(Math.max(0, middle.x - byId("viewport").clientWidth / 2 + WIDTH / 2), Math.max(0, middle.y - byId("viewport").clientHeight / 2));
  }

  function box(number, where) {
    const change = changeOf(number), fold = folded.has(number) ? " \u2026" : "";
    const classes = ["node", number === focus ? "focus" : "", number < known ? "" : "other", change ? change[0] : ""];
    const group = node("g", {class: classes.filter(Boolean).join(" "), tabindex: number === focus ? 0 : -1, role: "button",
      "data-function": number, transform: `translate(${where.x} ${where.y})`, "aria-label": describe(number).replaceAll("\n", ", ")});
    group.append(node("title", {}, describe(number)), node("rect", {width: WIDTH, height: HEIGHT}),
      node("text", {x: 7, y: 16}, cut(names[number], 27 - fold.length) + fold));
    return group;
  }

  function more(column, hidden, x, y) {
    const group = node("g", {class: "node", tabindex: -1, role: "button", "data-column": column, transform: `translate(${x} ${y})`});
    group.append(node("rect", {width: WIDTH, height: HEIGHT}), node("text", {x: 7, y: 16}, `show ${count(hidden, "other", "others")}`));
    return group;
  }

  function line(caller, callee, from, to) {
    const kind = kindOf.get(key(caller, callee));
    const x1 = from.x + WIDTH, y1 = from.y + HEIGHT / 2, x2 = to.x, y2 = to.y + HEIGHT / 2;
    // Calls within a column, and back to an earlier one, stay faint until one of their ends is selected.
    const bend = to.column > from.column ? BETWEEN / 2 : BETWEEN * 0.8;
    const d = caller === callee
      ? `M${x1} ${y1 - 5}c34 -14 34 24 0 10`
      : `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
    const path = node("path", {d, class: to.column > from.column ? kind : `${kind} back`, "data-caller": caller, "data-callee": callee});
    const times = timesOf.get(key(caller, callee));
    path.append(node("title", {}, `${names[caller]} \u2192 ${names[callee]}: ${kind}${times ? `, ${count(times, "call", "calls")}` : ""}`));
    return path;
  }

  // ---- the selected function -------------------------------------------------------------------------------

  function select(number) {
    selected = number;
    for (const path of byId("graph").querySelectorAll("path")) {
      path.classList.toggle("lit", path.dataset.caller === String(number) || path.dataset.callee === String(number));
    }
    const details = byId("details"), change = changeOf(number), facts = [];
    if (number < 0) { details.replaceChildren(); return; }
    if (number >= known) facts.push("a function of another file");
    else {
      facts.push(data.levels[number] < 0 ? "no call leads to it from the entry" : `level ${data.levels[number]}`);
      if (data.sizes[number]) facts.push(`${data.sizes[number].toLocaleString("en-US")} B`,
        count(data.instructions[number], "instruction", "instructions"), count(data.blocks[number], "basic block", "basic blocks"));
      if (data.counted) facts.push(`called ${count(data.counts[number], "time", "times")} in the profile`);
      if (pointers.has(number)) facts.push("calls through pointers");
      if (taken.has(number)) facts.push("its address is taken");
    }
    if (change) facts.push(change[0] === "new" ? "new" : `${change[0]}: ${visible(change[1])}`);
    const parts = [element("b", names[number]), element("div", facts.join("; "))];
    for (const [title, list] of [["called by", callers[number]], ["calls", callees[number]]]) {
      if (!list.length) continue;
      const row = element("div", `${title} ${count(list.length, "function", "functions")}`), line = element("div", undefined, {class: "names"});
      line.append(...list.slice(0, 60).map(cell));
      if (list.length > 60) line.append(element("span", `and ${list.length - 60} more`));
      parts.push(row, line);
    }
    details.replaceChildren(...parts);
  }

  // ---- going about -----------------------------------------------------------------------------------------

  function show(number, {remember = true} = {}) {
    if (remember && (focus !== number || byId("around").hidden)) history.push(byId("around").hidden ? -1 : focus);
    focus = number;
    unfolded = new Set();
    const around = number >= 0;
    byId("around").hidden = !around;
    byId("levels").hidden = around;
    byId("depths").hidden = !around;
    byId("show-around").setAttribute("aria-pressed", around);
    byId("show-levels").setAttribute("aria-pressed", !around);
    byId("back").disabled = !history.length;
    if (around) { drawAround(); legend(); select(number); }
    else { legend(); drawLevels(); }
  }
  const redraw = () => { if (focus >= 0) { drawAround(); select(selected >= 0 ? selected : focus); } else drawLevels(); };
  const goBack = () => { if (history.length) show(history.pop(), {remember: false}); };
  function deeper(step) {
    depth = Math.min(Math.max(depth + step, 1), 12);
    if (focus >= 0) redraw();
  }
  function fold(number) {
    if (number < 0 || number === focus) return;
    if (!folded.delete(number)) folded.add(number);
    redraw();
    focusOn(number);
  }
  function focusOn(number) {
    const found = byId("graph").querySelector(`[data-function="${number}"]`);
    if (found) { found.focus(); select(number); }
  }
  function step(number, key) {
    const here = shownAt.get(number);
    if (!here) return;
    const linked = new Set(key === "ArrowRight" ? callees[number] : callers[number]);
    const others = [...shownAt].filter(([other]) => other !== number);
    const near = ([, one]) => Math.abs(one.y - here.y);
    let candidates;
    if (key === "ArrowUp" || key === "ArrowDown") {
      const sign = key === "ArrowUp" ? -1 : 1;
      candidates = others.filter(([, one]) => one.column === here.column && (one.row - here.row) * sign > 0);
    } else {
      const sign = key === "ArrowLeft" ? -1 : 1;
      candidates = others.filter(([, one]) => (one.column - here.column) * sign > 0);
      const direct = candidates.filter(([other]) => linked.has(other));
      if (direct.length) candidates = direct;
      const closest = Math.min(...candidates.map(([, one]) => Math.abs(one.column - here.column)));
      candidates = candidates.filter(([, one]) => Math.abs(one.column - here.column) === closest);
    }
    if (candidates.length) focusOn(candidates.sort((a, b) => near(a) - near(b))[0][0]);
  }

  // ---- search ----------------------------------------------------------------------------------------------

  let chosen = 0, matches = [];
  function search() {
    const wanted = byId("search").value.trim().toLowerCase(), list = byId("matches");
    const rank = name => name === wanted ? 0 : name.startsWith(wanted) ? 1 : 2;
    matches = wanted ? names.map((name, number) => [name.toLowerCase(), number]).filter(one => one[0].includes(wanted))
      .sort((a, b) => rank(a[0]) - rank(b[0]) || a[0].length - b[0].length || a[1] - b[1]).map(one => one[1]) : [];
    chosen = 0;
    list.replaceChildren(...matches.slice(0, FOUND).map((number, i) =>
      element("li", cut(names[number], 200), {role: "option", id: `match-${i}`, "data-function": number, "aria-selected": i === chosen})));
    if (wanted && !matches.length) list.append(element("li", "no function has such a name", {class: "rest"}));
    if (matches.length > FOUND) list.append(element("li", `and ${count(matches.length - FOUND, "other", "others")}: type more of the name`, {class: "rest"}));
    list.hidden = !wanted;
    byId("search").setAttribute("aria-expanded", Boolean(wanted));
    point();
    if (!byId("levels").hidden) mark();
  }
  function point() {
    const items = byId("matches").querySelectorAll("[role=option]");
    items.forEach((item, i) => item.setAttribute("aria-selected", i === chosen));
    if (items[chosen]) { items[chosen].scrollIntoView({block: "nearest"}); byId("search").setAttribute("aria-activedescendant", `match-${chosen}`); }
    else byId("search").removeAttribute("aria-activedescendant");
  }
  function endSearch() {
    byId("search").value = "";
    search();
  }

  byId("search").addEventListener("input", search);
  byId("search").addEventListener("keydown", event => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const last = Math.min(matches.length, FOUND) - 1;
      chosen = Math.min(Math.max(chosen + (event.key === "ArrowDown" ? 1 : -1), 0), Math.max(last, 0));
      point();
      event.preventDefault();
    } else if (event.key === "Enter" && matches.length) {
      const number = matches[chosen];
      endSearch();
      show(number);
      focusOn(number);
      event.preventDefault();
    } else if (event.key === "Escape") {
      endSearch();
      byId("search").blur();
    }
    event.stopPropagation();
  });

  // ---- legend and changes ----------------------------------------------------------------------------------

  function legend() {
    const items = [];
    for (const what of ["new", "changed", "renamed"]) {
      const number = changed.filter(one => changeOf(one)[0] === what).length;
      if (!number) continue;
      const item = element("li"), swatch = element("span", "", {class: `swatch ${what}`});
      item.append(swatch, element("span", `${what} (${number.toLocaleString("en-US")})`));
      items.push(item);
    }
    if (focus >= 0) {
      const meaning = {direct: "call", tail: "jump (tail call)", plt: "through the linkage table", indirect: "through a pointer", dynamic: "recorded only"};
      for (const kind of new Set(kindOf.values())) {
        const item = element("li"), sample = node("svg", {id: "", viewBox: "0 0 36 12"});
        const path = node("path", {d: "M0 6H36", class: kind});
        path.setAttribute("style", "fill:none;stroke:currentColor;stroke-width:1.5px");
        if (kind !== "direct" && kind !== "plt") path.style.strokeDasharray = {tail: "6 3", indirect: "2 3", dynamic: "10 3 2 3"}[kind];
        sample.removeAttribute("id");
        sample.append(path);
        item.append(sample, element("span", meaning[kind]));
        items.push(item);
      }
    }
    byId("legend").replaceChildren(...items);
  }

  const table = byId("changes");
  table.hidden = !data.baseline;
  byId("only").hidden = !data.baseline || !changed.length;
  if (data.baseline) {
    byId("changes-title").textContent = `Changes since ${data.baseline}: ${count(changed.length + data.removed.length, "function", "functions")}`;
    byId("rows").append(...changed.map(number => {
      const row = element("tr"), change = changeOf(number), name = element("td");
      name.append(cell(number));
      row.append(element("td", change[0] === "new" ? "new" : `${change[0]}: ${visible(change[1])}`), name);
      return row;
    }), ...data.removed.map(name => {
      const row = element("tr");
      row.append(element("td", "removed"), element("td", visible(name)));
      return row;
    }));
  }

  // ---- events ----------------------------------------------------------------------------------------------

  const functionOf = event => {
    const found = event.target.closest("[data-function]");
    return found ? Number(found.dataset.function) : -1;
  };
  document.addEventListener("click", event => {
    const column = event.target.closest("[data-column]");
    if (column) { unfolded.add(Number(column.dataset.column)); redraw(); return; }
    const number = functionOf(event);
    if (number < 0) return;
    if (event.target.closest("#matches")) endSearch();
    show(number);
    focusOn(number);
  });
  byId("graph").addEventListener("focusin", event => { const number = functionOf(event); if (number >= 0) select(number); });
  byId("levels").addEventListener("focusin", event => { const number = functionOf(event); if (number >= 0) select(number); });
  byId("show-levels").addEventListener("click", () => show(-1));
  byId("show-around").addEventListener("click", () => show(selected >= 0 ? selected : Math.max(data.entry, 0)));
  byId("fewer").addEventListener("click", () => deeper(-1));
  byId("more").addEventListener("click", () => deeper(1));
  byId("back").addEventListener("click", goBack);
  byId("only-changes").addEventListener("change", () => { if (focus >= 0 && !isShown(focus)) show(-1); else redraw(); });
  document.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input")) return;
    const number = functionOf(event), inGraph = event.target.closest("#graph");
    if (inGraph && event.key.startsWith("Arrow") && number >= 0) step(number, event.key);
    else if (inGraph && (event.key === "Enter" || event.key === " ")) event.target.dispatchEvent(new MouseEvent("click", {bubbles: true}));
    else if (event.key === "/") byId("search").focus();
    else if (event.key === "+" || event.key === "=") deeper(1);
    else if (event.key === "-") deeper(-1);
    else if (event.key === "b") goBack();
    else if (event.key === "l") show(-1);
    else if (event.key === "f") byId("show-around").click();
    else if (event.key === "c") fold(inGraph ? number : selected);
    else return;
    event.preventDefault();
  });

  show(total ? focus : -1, {remember: false});
  document.documentElement.dataset.drawn = "";
})();
