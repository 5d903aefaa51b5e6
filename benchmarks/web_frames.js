// How smoothly a page of the dashboard moves: `page.evaluate` of this with a number of seconds gives the frames that
// were drawn, the seconds they took, and the longest and the 95 % time of one in milliseconds. On the page of a series
// it pans and zooms between the whole history and a twentieth of it, and so draws each way of drawing a line. On the
// grid, which shows all of its history at once, it moves over the cells: of each of them a frame and a tooltip are drawn.
seconds => new Promise(resolve => {
  const chart = perunChart, canvas = chart?.canvas ?? document.querySelector(".heat canvas"), times = [];
  const box = canvas.getBoundingClientRect(), whole = chart ? chart.full.to - chart.full.from + 1 : 0;
  const move = share => {
    if (chart) {
      const width = whole * (0.525 + 0.475 * Math.cos(6 * Math.PI * share));
      const middle = whole * (0.5 + 0.3 * Math.sin(4 * Math.PI * share));
      chart.look(middle - width / 2, middle + width / 2);
      return;
    }
    const clientX = box.left + box.width * (0.5 + 0.49 * Math.sin(20 * Math.PI * share));
    const clientY = box.top + box.height * (0.5 + 0.49 * Math.cos(6 * Math.PI * share));
    canvas.dispatchEvent(new PointerEvent("pointermove", {clientX, clientY, bubbles: true}));
  };
  const started = performance.now(), before = Number(canvas.dataset.drawn);
  let last = started;
  const step = now => {
    times.push(now - last);
    last = now;
    const share = (now - started) / 1000 / seconds;
    if (share >= 1) {
      const sorted = times.slice(1).sort((a, b) => a - b);
      resolve({frames: chart ? Number(canvas.dataset.drawn) - before : times.length, seconds: (now - started) / 1000,
        longest: sorted.at(-1), slow: sorted[Math.floor(sorted.length * 0.95)]});
      return;
    }
    move(share);
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})
