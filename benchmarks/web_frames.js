// How smoothly the chart of a series page moves: `page.evaluate` of this with a number of seconds gives the frames that
// were drawn, the seconds they took, and the longest and the 95 % time of one in milliseconds. It pans and zooms between
// the whole history and a twentieth of it, and so draws each way of drawing a line.
seconds => new Promise(resolve => {
  const chart = perunChart, started = performance.now(), times = [], before = Number(chart.canvas.dataset.drawn);
  const whole = chart.full.to - chart.full.from + 1;
  let last = started;
  const step = now => {
    times.push(now - last);
    last = now;
    const share = (now - started) / 1000 / seconds;
    if (share >= 1) {
      const sorted = times.slice(1).sort((a, b) => a - b);
      resolve({frames: Number(chart.canvas.dataset.drawn) - before, seconds: (now - started) / 1000,
        longest: sorted.at(-1), slow: sorted[Math.floor(sorted.length * 0.95)]});
      return;
    }
    const width = whole * (0.525 + 0.475 * Math.cos(6 * Math.PI * share)), middle = whole * (0.5 + 0.3 * Math.sin(4 * Math.PI * share));
    chart.look(middle - width / 2, middle + width / 2);
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})
