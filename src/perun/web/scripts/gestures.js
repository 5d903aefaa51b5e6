// How a LineChart is used: the pointer, the wheel, two fingers, keys.
function listenToChart(chart) {
  const {canvas} = chart,
    pointers = new Map();
  let moved = 0;
  const local = event => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const commits = pixels => (pixels * (chart.view.to - chart.view.from)) / chart.inner;
  canvas.addEventListener("pointerdown", event => {
    if (event.button) return;
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, local(event));
    if (pointers.size === 1) moved = 0;
  });
  canvas.addEventListener("pointermove", event => {
    const here = local(event),
      before = pointers.get(event.pointerId);
    if (!before) {
      const point = chart.nearest(...here);
      chart.setCursor(point);
      chart.does.hover(point);
      return;
    }
    pointers.set(event.pointerId, here);
    moved += Math.abs(here[0] - before[0]) + Math.abs(here[1] - before[1]);
    if (moved < 5) return;
    canvas.classList.add("dragging");
    chart.does.hover(null);
    if (pointers.size === 1) chart.pan(-commits(here[0] - before[0]));
    else pinch(chart, pointers, event.pointerId, before, here);
  });
  const end = event => {
    if (!pointers.delete(event.pointerId)) return;
    canvas.classList.remove("dragging");
    if (event.type !== "pointerup" || moved >= 5 || pointers.size) return;
    const point = chart.nearest(...local(event));
    chart.setCursor(point);
    if (!point) chart.does.hover(null);
    else if (event.shiftKey) chart.does.pick(point);
    else if (event.pointerType === "touch") chart.does.hover(point, true);
    else chart.does.open(point, event);
  };
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
  canvas.addEventListener("pointerleave", () => {
    if (pointers.size || document.activeElement === canvas) return;
    chart.setCursor(null);
    chart.does.hover(null);
  });
  canvas.addEventListener(
    "wheel",
    event => {
      // A plain wheel scrolls the page; two fingers on a touchpad arrive as a wheel with Ctrl.
      const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey;
      if (!event.ctrlKey && !event.metaKey && !sideways) return;
      event.preventDefault();
      if (sideways && !event.ctrlKey) chart.pan(commits(event.deltaX || event.deltaY));
      else
        chart.zoom(
          Math.exp(Math.max(-60, Math.min(60, event.deltaY)) / 120),
          chart.commitAt(local(event)[0]),
        );
      chart.does.hover(null);
    },
    {passive: false},
  );
  canvas.addEventListener("dblclick", () => chart.whole());
  canvas.addEventListener("blur", () => {
    chart.setCursor(null);
    chart.does.hover(null);
  });
  canvas.addEventListener("keydown", event => chartKey(chart, event));
}

function pinch(chart, pointers, id, before, here) {
  const other = [...pointers].find(([one]) => one !== id)[1];
  const was = Math.max(20, Math.abs(before[0] - other[0])),
    is = Math.max(20, Math.abs(here[0] - other[0]));
  chart.zoom(was / is, chart.commitAt((here[0] + other[0]) / 2));
}

function chartKey(chart, event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const width = chart.view.to - chart.view.from;
  const go = by => {
    const point = chart.step(by);
    chart.setCursor(point);
    requestAnimationFrame(() => chart.does.hover(point));
  };
  const actions = {
    ArrowLeft: () => (event.shiftKey ? chart.pan(-width / 10) : go(-1)),
    ArrowRight: () => (event.shiftKey ? chart.pan(width / 10) : go(1)),
    Home: () => chart.look(chart.full.from - 0.5, chart.full.from - 0.5 + width),
    End: () => chart.look(chart.full.to + 0.5 - width, chart.full.to + 0.5),
    "+": () => chart.zoom(0.6),
    "=": () => chart.zoom(0.6),
    "-": () => chart.zoom(1 / 0.6),
    0: () => chart.whole(),
    Escape: () => {
      chart.setCursor(null);
      chart.does.hover(null);
    },
    Enter: () =>
      chart.cursor && (event.shiftKey ? chart.does.pick(chart.cursor) : chart.does.open(chart.cursor, event)),
    " ": () => chart.cursor && chart.does.pick(chart.cursor),
  };
  if (!Object.hasOwn(actions, event.key)) return;
  event.preventDefault();
  event.stopPropagation();
  actions[event.key]();
}

// The strip below: drag the window, or draw another one.
function listenToMap(chart) {
  const {map} = chart;
  let held = null;
  const at = event => {
    const box = map.getBoundingClientRect(),
      inner = box.width - MARGIN.left - MARGIN.right;
    return (
      chart.full.from -
      0.5 +
      ((event.clientX - box.left - MARGIN.left) / inner) * (chart.full.to - chart.full.from + 1)
    );
  };
  map.addEventListener("pointerdown", event => {
    map.setPointerCapture(event.pointerId);
    const place = at(event),
      {from, to} = chart.view;
    const inside = place >= from && place <= to && to - from < (chart.full.to - chart.full.from) * 0.98;
    held = inside ? {offset: place - from, width: to - from} : {start: place};
  });
  map.addEventListener("pointermove", event => {
    if (!held) return;
    const place = at(event);
    if (held.start === undefined) chart.look(place - held.offset, place - held.offset + held.width);
    else if (Math.abs(place - held.start) > 1)
      chart.look(Math.min(place, held.start), Math.max(place, held.start));
  });
  map.addEventListener("pointerup", () => {
    held = null;
  });
  map.addEventListener("pointercancel", () => {
    held = null;
  });
  map.addEventListener("dblclick", () => chart.whole());
}
