// Axes: from values to pixels, and where ticks are.
function linearScale(low, high, start, end) {
  const factor = (end - start) / (high - low || 1);
  return {
    end: start,
    at: value => start + (value - low) * factor,
    ticks(most) {
      const step = niceStep((high - low) / Math.max(most, 1)),
        found = [];
      for (let value = Math.ceil(low / step - 1e-9) * step; value <= high + step * 1e-9; value += step)
        found.push(Math.abs(value) < step * 1e-9 ? 0 : value);
      return found;
    },
  };
}
function logScale(low, high, start, end) {
  const inner = linearScale(Math.log(low), Math.log(high), start, end);
  return {
    end: start,
    at: value => inner.at(Math.log(Math.max(value, low * 1e-9))),
    ticks(most) {
      // Decades, or 1, 2 and 5 of them, or the ticks of a linear axis where there is less than one.
      for (const digits of [[1, 2, 5], [1, 3], [1]]) {
        const found = [];
        for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++)
          for (const digit of digits) {
            const value = digit * 10 ** power;
            if (value >= low && value <= high) found.push(value);
          }
        if (found.length > 1 && found.length <= most * 1.5) return found;
        if (found.length <= 1) return linearScale(low, high, start, end).ticks(most);
      }
      return [low, high];
    },
  };
}
// What stands at a tick: all in one unit, with the digits that tell them apart.
const tickText = (tick, ticks, unit) =>
  ticks.length > 1 ? perunTick(tick, ticks, unit) : perunNumber(tick, unit, 4);
// 1, 2 or 5 times a power of ten that is at least `size`.
function niceStep(size) {
  if (!(size > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(size)),
    rest = size / power;
  return power * (rest <= 1.0001 ? 1 : rest <= 2.0001 ? 2 : rest <= 5.0001 ? 5 : 10);
}
