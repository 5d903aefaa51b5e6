// Numbers, dates and changes in the words of the dashboard.
const plural = (count, noun) =>
  `${count.toLocaleString("en-US")} ${count === 1 ? noun : noun.endsWith("s") ? noun : noun + "s"}`;
const short = checksum => checksum.slice(0, 7);
const firstLine = text => text.split("\n", 1)[0];
const known = value => typeof value === "number" && Number.isFinite(value);
const amount = (value, unit) => (known(value) ? perunNumber(value, unit) : "–");

// A value with half the width of its interval, as perun.measurement.present.value writes it: `208 ms ± 3`.
function measured(value, half, unit) {
  const text = amount(value, unit);
  if (!(half > 0) || !known(value)) return text;
  if (value > 0 && half >= value) return `${text} ± >100 %`;
  const spread = withSpread(text, value, half, unit);
  return /[1-9∞]/.test(spread.slice(spread.lastIndexOf("±"))) ? spread : text;
}
// The port of perun.profile.amounts.readable_spread. :text is the value alone.
function withSpread(text, value, half, unit) {
  const [factor, steps, rest, end] = perunScale(unit),
    words = text.split(" ");
  const prefix = (rest && words.at(-1) === rest ? words.slice(1, -1) : words.slice(1)).join(" ");
  const step = steps.find(one => one[1] === prefix);
  if (!step || text.includes("×") || Math.max(Math.abs(value), half) * factor >= end)
    return `${text} ± ${perunNumber(half, unit)}`;
  const [scaled, own] = [value, half].map(one => (one * factor) / step[0]);
  const places = (number, digits) =>
    number ? Math.min(Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(number)))), 12) : 0;
  const usual = places(scaled, 3),
    // One digit of the spread is to be seen, two where it is as small as 1.x.
    count = Math.max(usual, Math.min(places(own, own.toExponential(6)[0] === "1" ? 2 : 1), usual + 2));
  const [shown, spread] = [scaled, own].map(one => perunFixed(one, count));
  return `${[shown, prefix, rest].filter(Boolean).join(" ")} ± ${spread}`;
}
// A multiple on a scale: 0.5x, 2x.
const times = ratio => `${Number(ratio.toPrecision(2))}x`;

const DAY = 86400;
function ago(seconds) {
  const passed = Date.now() / 1000 - seconds;
  if (passed < 90) return "just now";
  for (const [size, noun] of [
    [365.25 * DAY, "year"],
    [30.44 * DAY, "month"],
    [7 * DAY, "week"],
    [DAY, "day"],
    [3600, "hour"],
    [60, "minute"],
  ])
    if (passed >= size * (noun === "week" ? 2 : 1)) return `${plural(Math.floor(passed / size), noun)} ago`;
  return "just now";
}
const dayFormat = new Intl.DateTimeFormat("en-GB", {day: "numeric", month: "short", year: "numeric"});
const monthFormat = new Intl.DateTimeFormat("en-GB", {month: "short", year: "numeric"});
const momentFormat = new Intl.DateTimeFormat("en-GB", {
  day: "numeric",
  month: "short",
  year: "numeric",
  hour: "2-digit",
  minute: "2-digit",
});
const day = seconds => dayFormat.format(seconds * 1000);
const month = seconds => monthFormat.format(seconds * 1000);
const moment = seconds => momentFormat.format(seconds * 1000);
// A date as people remember it, with the exact one as the title.
const when = seconds =>
  h("time", {datetime: new Date(seconds * 1000).toISOString(), title: moment(seconds)}, ago(seconds));

// Below the short name of a series: its command, where that is not told yet.
const commandBelow = one => (one.name.includes(one.command) ? "" : one.command);
const machineName = (site, number) => (known(number) ? (site.machines[number] ?? "") : "");
// As few words of its name as tell it from the other machines; empty where there is one.
function shortMachine(site, number) {
  const name = machineName(site, number),
    words = name.split(/[\s,]+/);
  if (!name || site.machines.length < 2) return "";
  for (let count = Math.min(2, words.length); count < words.length; count++) {
    const start = words.slice(0, count).join(" ");
    if (
      site.machines.filter(
        other =>
          other
            .split(/[\s,]+/)
            .slice(0, count)
            .join(" ") === start,
      ).length === 1
    )
      return start;
  }
  return name;
}
// What measures something where nothing is measured.
const hintOf = site => site.hint || "perun run matrix";

// The median of those that are numbers; null where there is none.
const middleOf = values => (values.some(known) ? median(values.filter(known)) : null);
// The median of numbers, of which there is one at least.
function median(values) {
  const sorted = Float64Array.from(values).sort(),
    middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
