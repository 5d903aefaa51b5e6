// Numbers as people read them, as perun.pages writes them; that module adds perunUnits.
"use strict";
// The scale of a unit: factor to the base unit, prefixes, the unit behind a prefix, and where prefixes end.
function perunScale(unit) {
  const {times, sizes, rates, bits, plain} = perunUnits;
  for (const {factors, steps, end} of [times, sizes])
    if (Object.hasOwn(factors, unit)) return [factors[unit], steps, "", end];
  const [head, ...others] = unit.split("/"), per = others.join("/");
  if (!others.length) return [1, plain.steps, unit, plain.end];
  const timed = Object.hasOwn(times.factors, per);
  const below = timed ? times.factors[per] : 1, rest = "/" + (timed ? "s" : per);
  if (Object.hasOwn(times.factors, head)) return [times.factors[head] / below, times.steps, rest, times.end];
  if (Object.hasOwn(rates, head)) return [rates[head] / below, sizes.steps, rest, sizes.end];
  if (Object.hasOwn(bits, head)) return [bits[head] / below, plain.steps, "bit" + rest, plain.end];
  return [1 / below, plain.steps, head + rest, plain.end];
}
function perunScientific(value, digits) {
  const [mantissa, exponent] = value.toExponential(digits - 1).split("e");
  const raised = String(Number(exponent)).replace(/[-0-9]/g, c =>
    "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"["-0123456789".indexOf(c)]);
  return (mantissa.includes(".") ? mantissa.replace(/\.?0+$/, "") : mantissa) + "\u00d710" + raised;
}
// A number with so many decimals; of two that are as near the even one, as the program has it.
function perunFixed(number, places) {
  const size = number * 10 ** places,
    tie = Math.abs(size % 1) === 0.5 && (number * 2 ** (places + 1)) % 1 === 0;
  const [whole, rest] = (tie ? (2 * Math.round(size / 2)) / 10 ** places : number).toFixed(places).split(".");
  return [whole.replace(/\B(?=(\d{3})+$)/g, ","), rest].filter(part => part).join(".");
}
// One number with its unit, as readable() of the program writes it.
function perunNumber(value, unit = "", digits = 3) {
  if (typeof value !== "number" || Number.isNaN(value)) return "no number";
  const [factor, steps, rest, end] = perunScale(unit);
  value *= factor;
  const base = steps.find(step => step[0] === 1);
  const last = steps[steps.length - 1];
  const size = Math.abs(value);
  let text, name;
  if (!Number.isFinite(value)) {
    [text, name] = [value > 0 ? "\u221e" : "-\u221e", base[1]];
  } else if (!size) {
    [text, name] = ["0", base[1]];
  } else if (!(last[0] * perunUnits.smallest <= size && size < end)) {
    [text, name] = [perunScientific(value, digits), base[1]];
  } else {
    const step = steps.find(one => Number((size / one[0]).toPrecision(digits)) >= 1) || last;
    const scaled = value / step[0];
    const places = Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(scaled))));
    text = perunFixed(scaled, Math.min(places, 12));
    text = text.includes(".") ? text.replace(/\.?0+$/, "") : text;
    name = step[1];
  }
  const shown = rest.startsWith("/") ? name + rest : [name, rest].filter(part => part).join(" ");
  return shown ? text + " " + shown : text;
}
// The label of a tick: all ticks of an axis have the same prefix, and enough digits to differ.
function perunTick(tick, ticks, unit = "") {
  const [factor, steps, rest, end] = perunScale(unit);
  const known = ticks.map(Number).filter(Number.isFinite).sort((a, b) => a - b);
  const largest = Math.max(...known.map(Math.abs)) * factor;
  const last = steps[steps.length - 1];
  if (!largest || !(last[0] * perunUnits.smallest <= largest && largest < end)) return perunNumber(tick, unit);
  const step = steps.find(one => largest >= one[0] * (1 - 1e-9)) || last;
  // The smallest distance of two ticks says how many decimal places they need.
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
