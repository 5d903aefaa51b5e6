// Numbers as people read them; what perun.view._common.numbers does in the program.
"use strict";
function perunFamily(unit) {
  const times = {h: 3600, min: 60, s: 1, seconds: 1, second: 1, sec: 1, ms: 1e-3, us: 1e-6,
                 "\u00b5s": 1e-6, "\u03bcs": 1e-6, ns: 1e-9};
  const sizes = {B: 1, b: 1, byte: 1, bytes: 1, kB: 1024, KB: 1024, KiB: 1024, MB: 1048576, MiB: 1048576,
                 GB: 1073741824, GiB: 1073741824};
  if (Object.hasOwn(times, unit)) return [times[unit], [[1, "s"], [1e-3, "ms"], [1e-6, "\u00b5s"],
    [1e-9, "ns"]], ""];
  if (Object.hasOwn(sizes, unit)) return [sizes[unit], [[2 ** 50, "PiB"], [2 ** 40, "TiB"], [2 ** 30, "GiB"],
    [2 ** 20, "MiB"], [1024, "KiB"], [1, "B"]], ""];
  return [1, [[1e18, "E"], [1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]], unit];
}
function perunEnd(steps) {
  return steps[0][0] * (steps[0][1] === "s" ? 1e6 : 1e3);
}
function perunScientific(value, digits) {
  const [mantissa, exponent] = value.toExponential(digits - 1).split("e");
  const raised = String(Number(exponent)).replace(/[-0-9]/g, c =>
    "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"["-0123456789".indexOf(c)]);
  return (mantissa.includes(".") ? mantissa.replace(/\.?0+$/, "") : mantissa) + "\u00d710" + raised;
}
// One number with its unit, as readable() of the program writes it.
function perunNumber(value, unit = "", digits = 3) {
  if (typeof value !== "number" || Number.isNaN(value)) return "no number";
  const [factor, steps, rest] = perunFamily(unit);
  value *= factor;
  const base = steps.find(step => step[0] === 1);
  const last = steps[steps.length - 1];
  const end = perunEnd(steps);
  const size = Math.abs(value);
  let text, name;
  if (!Number.isFinite(value)) {
    [text, name] = [value > 0 ? "\u221e" : "-\u221e", base[1]];
  } else if (!size) {
    [text, name] = ["0", base[1]];
  } else if (!(last[0] * 1e-3 <= size && size < end)) {
    [text, name] = [perunScientific(value, digits), base[1]];
  } else {
    const step = steps.find(one => Number((size / one[0]).toPrecision(digits)) >= 1) || last;
    const scaled = value / step[0];
    const places = Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(scaled))));
    text = scaled.toLocaleString("en-US", {maximumFractionDigits: Math.min(places, 12)});
    name = step[1];
  }
  return [text, name, rest].filter(part => part).join(" ");
}
// A number on an axis: all ticks in the same unit, with as many digits as tell them apart.
function perunTick(tick, ticks, unit = "") {
  const [factor, steps, rest] = perunFamily(unit);
  const known = ticks.map(Number).filter(Number.isFinite).sort((a, b) => a - b);
  const largest = Math.max(...known.map(Math.abs)) * factor;
  const last = steps[steps.length - 1];
  if (!largest || !(last[0] * 1e-3 <= largest && largest < perunEnd(steps))) return perunNumber(tick, unit);
  const step = steps.find(one => largest >= one[0] * (1 - 1e-9)) || last;
  let gap = Infinity;
  for (let i = 1; i < known.length; i++)
    if (known[i] > known[i - 1]) gap = Math.min(gap, known[i] - known[i - 1]);
  gap = Number.isFinite(gap) ? gap * factor / step[0] : 1;
  let places = 0;
  const uneven = number => Math.abs(number - Math.round(number)) > 1e-6 * number;
  while (places < 9 && uneven(gap * 10 ** places)) places++;
  const text = (tick * factor / step[0]).toLocaleString("en-US",
    {minimumFractionDigits: tick ? places : 0, maximumFractionDigits: places});
  if (!Number(tick) && !last[1]) return "0";
  return [text === "-0" ? "0" : text, step[1]].filter(part => part).join(" ");
}
