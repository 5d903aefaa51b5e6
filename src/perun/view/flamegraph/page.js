// The page of a flame graph: drawing, zoom, search, keyboard. A node is a call stack in the tree of graph.js, node 0
// the root; view is the part of the x axis that is visible, in the unit of the profile.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const canvas = byId("graph"), viewport = byId("viewport"), tip = byId("tip");
  const search = byId("search"), found = byId("found"), resetButton = byId("reset");
  const pen = canvas.getContext("2d");
  let mode = data.modes.find(one => one.of === data.of);
  data.amounts = mode.amounts;
  const compares = data.amounts.length > 1;
  const rowHeight = data.frameHeight;
  const fontSize = Math.max(8, Math.min(13, rowHeight - 5));
  const MAX_MODULES = 7;

  const colourings = compares
    ? [["change", "change"], ["effect", "effect on the whole"], ["module", "module"], ["name", "function"]]
    : [["module", "module"], ["name", "function"], ["share", "share"]];
  const options = {byLine: data.byLine, reversed: false, widths: "larger", shares: false};
  let colouring = data.colour, icicle = data.icicle;
  let tree, sums, matches = null, view = [0, 1], zoomed = 0, selected = -1, hovered = -1, roles = {}, fills = [];
  let size = {width: 0, height: 0, all: 0};

  // ---- texts ----------------------------------------------------------------------------------------------

  const nameOf = node => node ? tree.groups[tree.group[node]].name : "all";
  const placeOf = node => {
    if (!node) return "";
    const group = tree.groups[tree.group[node]];
    const lines = [...new Set(group.lines)].sort((a, b) => a - b);
    const shown = lines.length > 6 ? lines.slice(0, 6).join(", ") + " \u2026" : lines.join(", ");
    return [group.source, shown].filter(part => part).join(":");
  };
  const number = amount => perunNumber(amount, mode.unit);
  const percent = share => {
    if (!Number.isFinite(share)) return "\u2013";
    const value = share * 100;
    if (!value) return "0 %";
    return (Math.abs(value) < 0.01 ? "<0.01" : value.toFixed(Math.abs(value) < 10 ? 2 : 1)) + " %";
  };
  const change = (now, before) => {
    const sign = now > before ? "+" : now < before ? "\u2212" : "\u00b1";
    const rate = before ? percent(Math.abs(now - before) / before) : now ? "new" : "0 %";
    return `${sign}${number(Math.abs(now - before))} (${before ? sign : ""}${rate})`;
  };
  // The facts about a node: rows of a label and a text.
  const facts = node => {
    const parent = tree.parent[node];
    const rows = [];
    const place = placeOf(node);
    if (place) rows.push(["Source", visible(place)]);
    tree.total.forEach((total, side) => {
      const which = compares ? (side ? " in the baseline" : " now") : "";
      let text = `${number(total[node])}, ${percent(total[node] / total[0])} of all`;
      if (parent > 0) text += `, ${percent(total[node] / total[parent])} of its ${options.reversed ? "callee" : "caller"}`;
      rows.push([`Total${which}`, text]);
      rows.push([`Itself${which}`, `${number(tree.own[side][node])}, ${percent(tree.own[side][node] / total[0])} of all`]);
    });
    if (compares) rows.push(["Change", change(tree.total[0][node], tree.total[1][node])]);
    const group = tree.group[node];
    if (node && sums.calls[group] > 1) {
      const sum = sums.total[0][group];
      const share = percent(sum / tree.total[0][0]);
      rows.push(["Everywhere", `${number(sum)}, ${share} of all, in ${sums.calls[group]} places`]);
    }
    return rows;
  };
  // ---- colours --------------------------------------------------------------------------------------------

  const textColours = new Map();
  const textColourOn = colour => {
    if (!textColours.has(colour)) {
      const [r, g, b] = channels(colour).map(part => part / 255)
        .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
      textColours.set(colour, 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000000" : "#ffffff");
    }
    return textColours.get(colour);
  };
  const hash = text => {
    let value = 2166136261;
    for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 16777619);
    return value >>> 0;
  };
  // Frames of one module differ in shade, so that neighbours can be distinguished.
  const shades = new Map();
  const shaded = (colour, name) => {
    if (!shades.has(colour)) shades.set(colour, [0, 1, 2, 3, 4].map(step => mixed(colour, "#ffffff", 0.12 + step * 0.09)));
    return shades.get(colour)[hash(name) % 5];
  };
  const SAME = "#d9d9d9", GREW = data.palette[1], SHRANK = data.palette[0];
  const diverging = value => mixed(SAME, value > 0 ? GREW : SHRANK, Math.min(Math.abs(value), 1));

  function modules() {
    const amounts = new Map();
    tree.groups.forEach(({source}, group) => {
      const own = sums.own.reduce((sum, amounts) => sum + amounts[group], 0);
      amounts.set(source, (amounts.get(source) || 0) + own);
    });
    return [...amounts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  }

  function assignColours() {
    const all = tree.total.map(total => total[0]);
    const widest = tree.width[0] || 1;
    const legend = [];
    fills = new Array(tree.size);
    if (colouring === "module") {
      const whole = all.reduce((a, b) => a + b, 0) || 1;
      const colours = new Map();
      let rest = 0, others = 0;
      for (const [source, amount] of modules()) {
        const known = source && colours.size < MAX_MODULES;
        if (known) {
          const colour = data.palette[DISTINCT[colours.size]];
          colours.set(source, colour);
          legend.push([colour, source, percent(amount / whole)]);
        } else { rest += amount; others++; }
      }
      if (others) legend.push([data.palette[OTHERS], colours.size ? "other and unknown modules" : "unknown module", percent(rest / whole)]);
      const perGroup = tree.groups.map(group => shaded(colours.get(group.source) || data.palette[OTHERS], group.name));
      for (let node = 1; node < tree.size; node++) fills[node] = perGroup[tree.group[node]];
    } else if (colouring === "name") {
      const perGroup = tree.groups.map(group => shaded(data.palette[hash(group.name) % 8], group.name + group.source));
      for (let node = 1; node < tree.size; node++) fills[node] = perGroup[tree.group[node]];
    } else if (colouring === "share") {
      // Shares span several powers of ten, so that the scale is logarithmic: 1 % is in the middle.
      const steps = rampSteps(data.ramp);
      for (let node = 1; node < tree.size; node++) {
        const share = tree.width[node] / widest;
        fills[node] = steps[Math.round(64 * Math.min(Math.max(1 + Math.log10(share || 1e-9) / 4, 0), 1))];
      }
      legend.push([gradient(data.ramp), "share of all: 0.01 %, 1 %, 100 %", ""]);
    } else {
      const steps = Array.from({length: 129}, (_, i) => diverging((i - 64) / 64));
      const largest = colouring === "effect"
        ? tree.total[0].reduce((most, now, node) => node ? Math.max(most, Math.abs(now - tree.total[1][node])) : most, 0) : 0;
      for (let node = 1; node < tree.size; node++) {
        const now = tree.total[0][node], before = tree.total[1][node];
        const by = colouring === "effect" ? largest : Math.max(now, before);
        fills[node] = steps[64 + Math.round(64 * (by ? (now - before) / by : 0))];
      }
      const text = colouring === "effect"
        ? `less, the same, more by up to ${number(largest)}` : "gone, half, the same, twice, new";
      legend.push([gradient([-1, 0, 1].map(diverging)), text, ""]);
    }
    fills[0] = SAME;
    // Frames are paler than the palette, and so is the legend.
    byId("legend").replaceChildren(...legend.map(([colour, text, share]) =>
      legendEntry(colour.startsWith("#") ? mixed(colour, "#ffffff", 0.2) : colour,
        [visible(text), share].filter(part => part).join(" \u2013 "), {title: visible(cut(text, 500))})));
  }

  // ---- drawing --------------------------------------------------------------------------------------------

  const rowOf = node => icicle ? tree.depth[node] : tree.levels - 1 - tree.depth[node];
  const left = node => (tree.x[node] - view[0]) / (view[1] - view[0]) * size.width;
  const right = node => (tree.x[node] + tree.width[node] - view[0]) / (view[1] - view[0]) * size.width;

  function fit() {
    const most = Math.max(240, Math.round(window.innerHeight * 0.68));
    size.all = tree.levels * rowHeight + 2;
    size.height = Math.min(size.all, most);
    viewport.style.height = size.height + 2 + "px";
    size.width = viewport.clientWidth;
    // The sheet has the height of all rows and scrolls; the canvas has the height of the viewport, and draws only
    // the rows in it, so that its memory does not grow with the depth of the stacks.
    byId("sheet").style.height = size.all + "px";
    sharpen(canvas, size.width, size.height);
    roles = themeColours();
  }

  function draw() {
    const {width, height} = size;
    const top = viewport.scrollTop;
    const scale = width / (view[1] - view[0]);
    pen.fillStyle = roles.background;
    pen.fillRect(0, 0, width, height);
    pen.font = `${fontSize}px ${roles.mono}`;
    pen.textBaseline = "middle";
    const letter = pen.measureText("M").width;
    // Millions of frames may be narrower than a pixel: of these, one is drawn in each column of each row, and a match
    // of the search wins. column and matchColumn hold, for each depth, the last column that was drawn.
    const column = new Int32Array(tree.levels).fill(-1), matchColumn = new Int32Array(tree.levels).fill(-1);
    for (let node = 0; node < tree.size; node++) {
      const start = (tree.x[node] - view[0]) * scale;
      const stop = start + tree.width[node] * scale;
      if (stop <= 0 || start >= width || !tree.width[node]) { node = tree.end[node] - 1; continue; }  // a whole subtree is out of sight
      const depth = tree.depth[node];
      const y = (icicle ? depth : tree.levels - 1 - depth) * rowHeight - top + 1;
      if (y + rowHeight < 0 || y > height) continue;
      const from = Math.max(start, 0), to = Math.min(stop, width);
      const match = matches && node && matches[tree.group[node]];
      if (to - from < 1.2) {
        const here = Math.floor(from);
        if (matchColumn[depth] === here || (column[depth] === here && !match)) continue;
        column[depth] = here;
        if (match) matchColumn[depth] = here;
        pen.fillStyle = matches && !match ? roles.line : fills[node];
        pen.fillRect(here, y, 1, rowHeight - 1);
        continue;
      }
      const fill = matches && !match ? roles.line : node < zoomed && tree.end[node] > zoomed ? mixed(fills[node], roles.background, 0.45) : fills[node];
      pen.fillStyle = fill;
      pen.fillRect(from, y, Math.max(to - from - 0.6, 0.6), rowHeight - 1);
      const letters = Math.floor((to - from - 7) / letter);
      if (letters >= 2) {
        pen.fillStyle = textColourOn(fill);
        pen.fillText(cut(visible(nameOf(node).slice(0, letters + 1)), letters), from + 3, y + rowHeight / 2, to - from - 6);
      }
    }
    for (const [node, colour, thick] of [[hovered, roles.text, 1], [selected, roles.mark, 2]]) {
      if (node < 0 || node >= tree.size) continue;
      const start = Math.max(left(node), 0), stop = Math.min(right(node), width);
      if (stop < 0 || start > width) continue;
      pen.strokeStyle = colour;
      pen.lineWidth = thick;
      pen.strokeRect(start + thick / 2, rowOf(node) * rowHeight - top + 1 + thick / 2, Math.max(stop - start - thick, 1), rowHeight - 1 - thick);
    }
  }

  const redraw = oncePerFrame(draw);

  // ---- state -----------------------------------------------------------------------------------------------

  function rebuild() {
    const path = [];  // the numbers of nodes change, so that the zoom is restored by the names of frames
    if (tree) for (let node = zoomed; node > 0; node = tree.parent[node]) path.unshift(nameOf(node));
    tree = perunTree(data, options);
    sums = perunSums(tree);
    zoomed = 0;
    for (const name of path) {
      let child = zoomed + 1;
      while (child < tree.end[zoomed] && nameOf(child) !== name) child = tree.end[child];
      if (child >= tree.end[zoomed]) break;
      zoomed = child;
    }
    selected = hovered = -1;
    const of = data.modes.length > 1 ? `${mode.name.toLowerCase()}: ` : "";
    byId("total").textContent = compares
      ? ` \u2013 ${of}${number(tree.total[0][0])} now, ${number(tree.total[1][0])} in the baseline: ${change(tree.total[0][0], tree.total[1][0])}`
      : ` \u2013 ${of}${number(tree.total[0][0])} in all`;
    fit();
    assignColours();
    listHeaviest();
    searchFrames();
    zoom(zoomed, false);
    showDetails(-1);
  }

  function zoom(node, scroll = true) {
    zoomed = node;
    view = [tree.x[node], tree.x[node] + (tree.width[node] || 1)];
    resetButton.disabled = view[0] <= 0 && view[1] >= tree.width[0];
    showPath();
    if (scroll) reveal(node);
    showMatches();
    saveState();
    redraw();
  }

  // Shows a part of the x axis; the innermost call that covers it all becomes the one zoomed to.
  function showRange(from, to) {
    const all = tree.width[0];
    const wide = Math.min(Math.max(to - from, all * 1e-9), all);
    const start = Math.min(Math.max(from, 0), all - wide);
    view = [start, start + wide];
    zoomed = 0;
    for (let child = 1; child < tree.end[zoomed];) {
      if (tree.x[child] <= view[0] && tree.x[child] + tree.width[child] >= view[1]) zoomed = child++;
      else child = tree.end[child];
    }
    resetButton.disabled = wide >= all;
    showPath();
    showMatches();
    redraw();
  }

  function reveal(node) {
    const y = rowOf(node) * rowHeight;
    const last = viewport.scrollTop + size.height - rowHeight;
    if (y < viewport.scrollTop) viewport.scrollTop = y - (icicle ? rowHeight : size.height / 2);
    else if (y > last) viewport.scrollTop = y - size.height + rowHeight * 2 + (icicle ? size.height / 2 : 0);
  }

  function showPath() {
    const nodes = [];
    for (let node = zoomed; node >= 0; node = tree.parent[node]) nodes.unshift(node);
    const shown = nodes.length > 9 ? [nodes[0], -1, ...nodes.slice(-7)] : nodes;
    byId("path").replaceChildren(...shown.flatMap((node, i) => {
      const separator = i ? [element("span", "\u203a", {"aria-hidden": "true"})] : [];
      if (node < 0) return [...separator, element("span", `${nodes.length - 8} more`)];
      const button = element("button", visible(cut(nameOf(node), 200)), {type: "button"});
      if (node === zoomed) button.setAttribute("aria-current", "location");
      button.addEventListener("click", () => { zoom(node); select(node); canvas.focus(); });
      return [...separator, button];
    }));
  }

  function select(node, scroll = true) {
    selected = node;
    if (node >= 0 && scroll) {
      if (left(node) < -0.5 || right(node) > size.width + 0.5 || right(node) - left(node) < 0.5) zoomFor(node);
      reveal(node);
    }
    showDetails(node);
    redraw();
  }

  // Zooms out until the node is in sight, or in if it is narrower than half a pixel.
  function zoomFor(node) {
    let target = zoomed;
    while (target > 0 && !(target <= node && node < tree.end[target])) target = tree.parent[target];
    if (tree.width[node] / tree.width[target] * size.width < 0.5) {
      target = node;
      while (tree.parent[target] > 0 && tree.width[node] / tree.width[tree.parent[target]] * size.width > 20) target = tree.parent[target];
    }
    zoom(target, false);
  }

  function showDetails(node) {
    const shown = node >= 0 ? node : zoomed;
    const list = element("dl");
    for (const [label, text] of facts(shown)) list.append(element("dt", label), element("dd", text));
    byId("details").replaceChildren(element("h2", visible(nameOf(shown))), list);
  }

  // ---- search ---------------------------------------------------------------------------------------------

  function expression() {
    const text = search.value;
    if (!text) return null;
    // Smart case, as in editors: only an expression with a capital letter is case-sensitive.
    return new RegExp(text, text === text.toLowerCase() ? "iu" : "u");
  }

  function searchFrames() {
    search.removeAttribute("aria-invalid");
    let wanted = null;
    try {
      wanted = expression();
    } catch (problem) {
      matches = null;
      search.setAttribute("aria-invalid", "true");
      found.textContent = "not a regular expression";
      saveState();
      redraw();
      return;
    }
    matches = wanted && Uint8Array.from(tree.groups, group => wanted.test(group.name) ? 1 : 0);
    showMatches();
    saveState();
    redraw();
  }

  function showMatches() {
    if (search.getAttribute("aria-invalid")) return;
    if (!matches) { found.textContent = ""; return; }
    const all = perunMatched(tree, matches);
    let text = all.nodes
      ? `${all.nodes} ${all.nodes === 1 ? "match" : "matches"}, ${percent(all.width / tree.width[0])}`
      : "no match";
    if (all.nodes && zoomed) {
      const here = perunMatched(tree, matches, zoomed);
      text += ` (${percent(here.width / tree.width[zoomed])} of the zoomed call)`;
    }
    found.textContent = text;
  }

  function nextMatch(step) {
    if (!matches) return;
    let node = selected < 0 ? (step > 0 ? 0 : tree.size) : selected;
    for (let tried = 0; tried < tree.size; tried++) {
      node = (node + step + tree.size) % tree.size;
      if (node && tree.width[node] && matches[tree.group[node]]) { select(node); return; }
    }
  }

  // ---- the list -------------------------------------------------------------------------------------------

  function listHeaviest() {
    if (!byId("heaviest").open) return;  // built when it is opened
    const heads = compares ? ["itself", "change", "total", "change", "function"] : ["itself", "", "total", "", "function"];
    byId("heaviest-head").replaceChildren(...heads.map(text => element("th", text, {scope: "col"})));
    const [now, before] = sums.own;
    const weight = compares ? now.map((amount, group) => Math.abs(amount - before[group])) : now;
    const order = tree.groups.map((_, group) => group).sort((a, b) => weight[b] - weight[a]).slice(0, 30);
    const all = tree.total[0][0];
    byId("heaviest-rows").replaceChildren(...order.map(group => {
      const row = element("tr");
      for (const [amounts, baseline] of [sums.own, sums.total]) {
        row.append(element("td", number(amounts[group])));
        row.append(element("td", compares ? change(amounts[group], baseline[group]) : percent(amounts[group] / all)));
      }
      const cell = element("td");
      const button = element("button", visible(cut(tree.groups[group].name, 300)), {type: "button", title: "Search for it"});
      button.addEventListener("click", () => {
        search.value = "^" + tree.groups[group].name.slice(0, 1000).replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&") +
          (tree.groups[group].name.length > 1000 ? "" : "$");
        selected = -1;
        searchFrames();
        nextMatch(1);
        canvas.scrollIntoView({block: "nearest"});
      });
      cell.append(button);
      row.append(cell);
      return row;
    }));
  }

  // ---- mouse ----------------------------------------------------------------------------------------------

  const nodeAt = event => {
    const box = canvas.getBoundingClientRect();
    const row = Math.floor((event.clientY - box.top + viewport.scrollTop - 1) / rowHeight);
    const depth = icicle ? row : tree.levels - 1 - row;
    if (depth < 0 || depth >= tree.levels) return -1;
    return perunAt(tree, depth, view[0] + (event.clientX - box.left) / size.width * (view[1] - view[0]));
  };
  let dragged = null;

  function hover(event) {
    const node = nodeAt(event);
    if (node !== hovered) {
      hovered = node;
      redraw();
      if (node >= 0) {
        tip.replaceChildren(element("b", visible(cut(nameOf(node), 300))));
        for (const [label, text] of facts(node)) tip.append(element("div", `${label}: ${cut(text, 200)}`));
      }
      if (selected < 0) showDetails(node);
    }
    tip.hidden = node < 0;
    if (node < 0) return;
    placeTip(tip, event);
  }
  function leave() {
    tip.hidden = true;
    hovered = -1;
    if (selected < 0) showDetails(-1);
    redraw();
  }
  canvas.addEventListener("pointermove", event => {
    if (dragged && event.buttons & 1) {
      const way = event.clientX - dragged.x;
      if (Math.abs(way) > 4) dragged.moved = true;
      if (dragged.moved) {
        const by = way / size.width * (dragged.view[1] - dragged.view[0]);
        tip.hidden = true;
        showRange(dragged.view[0] - by, dragged.view[1] - by);
        return;
      }
    }
    hover(event);
  });
  canvas.addEventListener("pointerleave", leave);
  canvas.addEventListener("pointerdown", event => { dragged = {x: event.clientX, view: view.slice(), moved: false}; });
  canvas.addEventListener("click", event => {
    const moved = dragged && dragged.moved;
    dragged = null;
    if (moved) return;
    const node = nodeAt(event);
    if (node < 0) return;
    zoom(node);
    select(node, false);
    hover(event);
  });
  viewport.addEventListener("wheel", event => {
    const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      const box = canvas.getBoundingClientRect();
      const place = view[0] + (event.clientX - box.left) / size.width * (view[1] - view[0]);
      const factor = Math.exp(Math.max(-80, Math.min(80, event.deltaY)) / 160);
      showRange(place - (place - view[0]) * factor, place + (view[1] - place) * factor);
    } else if (sideways && Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) {
      event.preventDefault();
      const by = sideways / size.width * (view[1] - view[0]);
      showRange(view[0] + by, view[1] + by);
    }
  }, {passive: false});
  viewport.addEventListener("scroll", redraw);

  // ---- keyboard -------------------------------------------------------------------------------------------

  function neighbour(node, step) {
    // The next node at the same depth, of any caller.
    const depth = tree.depth[node];
    for (let other = step > 0 ? tree.end[node] : node - 1; other > 0 && other < tree.size; other += step)
      if (tree.depth[other] === depth && tree.width[other]) return other;
    return node;
  }
  function heaviestCallee(node) {
    return node + 1 < tree.end[node] && tree.width[node + 1] ? node + 1 : node;
  }
  function moveSelection(key) {
    const deeper = icicle ? "ArrowDown" : "ArrowUp";
    if (selected < 0) { select(zoomed); return; }
    if (key === "ArrowLeft") select(neighbour(selected, -1));
    else if (key === "ArrowRight") select(neighbour(selected, 1));
    else if (key === deeper) select(heaviestCallee(selected));
    else if (tree.parent[selected] >= 0) select(tree.parent[selected]);
  }
  canvas.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key.startsWith("Arrow")) moveSelection(event.key);
    else if (event.key === "Enter" || event.key === " ") { if (selected >= 0) zoom(selected); }
    else return;
    event.preventDefault();
  });
  search.addEventListener("input", () => { selected = -1; searchFrames(); });
  search.addEventListener("keydown", event => {
    if (event.key === "Enter") { event.preventDefault(); nextMatch(event.shiftKey ? -1 : 1); }
  });
  document.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") {
      event.preventDefault();
      if (search.value) { search.value = ""; searchFrames(); canvas.focus(); }
      else if (document.activeElement === search) canvas.focus();
      else if (zoomed) zoom(tree.parent[zoomed]);
      else { selected = -1; zoom(0); showDetails(-1); }
      return;
    }
    if (event.target.closest("input:not([type=checkbox]), select")) return;
    if (event.key === "/") { search.focus(); search.select(); }
    else if (event.key === "0") reset();
    else if (event.key === "i") toggleIcicle();
    else if (event.key === "c") {
      const names = colourings.map(one => one[0]);
      recolour(names[(names.indexOf(colouring) + 1) % names.length]);
    } else return;
    event.preventDefault();
  });

  // ---- controls -------------------------------------------------------------------------------------------

  function reset() { zoom(0); selected = -1; showDetails(-1); }
  function toggleIcicle() {
    icicle = !icicle;
    byId("icicle").setAttribute("aria-pressed", String(icicle));
    viewport.scrollTop = icicle ? 0 : size.all;
    reveal(selected >= 0 ? selected : zoomed);
    saveState();
    redraw();
  }
  function recolour(name) {
    colouring = name;
    byId("colour").value = name;
    assignColours();
    saveState();
    redraw();
  }
  // A tab for each number that the profile has, with its total; one alone needs none.
  const tabs = data.modes.length > 1 ? data.modes.map(one => {
    const total = one.amounts[0].reduce((sum, amount) => sum + amount, 0);
    const tab = element("button", `${one.name} ${perunNumber(total, one.unit)}`, {type: "button", "data-of": one.of});
    tab.disabled = !one.amounts.some(amounts => amounts.some(amount => amount));
    tab.addEventListener("click", () => choose(one));
    return tab;
  }) : [];
  byId("modes").replaceChildren(...tabs);
  byId("modes").hidden = !tabs.length;
  byId("notes").replaceChildren(...data.notes.map(text => element("li", visible(text))));
  function markTab() {
    for (const tab of tabs) tab.setAttribute("aria-pressed", String(tab.dataset.of === mode.of));
  }
  function choose(one) {
    mode = one;
    data.amounts = one.amounts;
    markTab();
    rebuild();
  }
  for (const [name, text] of colourings) byId("colour").append(element("option", text, {value: name}));
  byId("colour").addEventListener("change", event => recolour(event.target.value));
  byId("heaviest").addEventListener("toggle", listHeaviest);
  resetButton.addEventListener("click", reset);
  byId("icicle").addEventListener("click", toggleIcicle);
  for (const [id, key] of [["by-line", "byLine"], ["reversed", "reversed"], ["shares", "shares"]])
    byId(id).addEventListener("change", event => { options[key] = event.target.checked; rebuild(); });
  byId("widths").addEventListener("change", event => { options.widths = event.target.value; rebuild(); });
  byId("widths-label").hidden = byId("shares-label").hidden = !compares;

  // The state is in the address of the page, so that it survives a reload and can be shared as a link.
  let savesState = false;
  function saveState() {
    if (!savesState) return;
    const state = new URLSearchParams();
    if (mode.of !== data.of) state.set("of", mode.of);
    if (search.value) state.set("search", search.value);
    if (zoomed) state.set("zoom", String(zoomed));
    if (icicle !== data.icicle) state.set("icicle", String(icicle));
    if (colouring !== data.colour) state.set("colour", colouring);
    if (options.byLine !== data.byLine) state.set("lines", String(options.byLine));
    if (options.reversed) state.set("reversed", "true");
    try { history.replaceState(null, "", "#" + state); } catch { /* too often, or not allowed here */ }
  }
  function restoreState() {
    const state = new URLSearchParams(location.hash.slice(1));
    mode = data.modes.find(one => one.of === state.get("of")) || mode;
    data.amounts = mode.amounts;
    markTab();
    search.value = state.get("search") || "";
    if (state.has("icicle")) icicle = state.get("icicle") === "true";
    if (colourings.some(one => one[0] === state.get("colour"))) colouring = state.get("colour");
    if (state.has("lines")) options.byLine = state.get("lines") === "true";
    options.reversed = state.get("reversed") === "true";
    byId("by-line").checked = options.byLine;
    byId("reversed").checked = options.reversed;
    byId("icicle").setAttribute("aria-pressed", String(icicle));
    byId("colour").value = colouring;
    return Number(state.get("zoom")) || 0;
  }

  const start = restoreState();
  rebuild();
  if (start > 0 && start < tree.size) zoom(start);
  viewport.scrollTop = icicle ? 0 : size.all;
  reveal(zoomed);
  draw();
  savesState = true;
  new ResizeObserver(() => { fit(); draw(); }).observe(viewport);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { fit(); draw(); });
  window.addEventListener("resize", () => { fit(); redraw(); });
  document.documentElement.dataset.drawn = String(Math.round(performance.now()));
})();
