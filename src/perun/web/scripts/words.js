// Numbers, dates and changes in the words of the dashboard.
const plural = (count, noun) =>
  `${count.toLocaleString("en-US")} ${count === 1 ? noun : noun.endsWith("s") ? noun : noun + "s"}`;
const short = checksum => checksum.slice(0, 7);
const firstLine = text => text.split("\n", 1)[0];
const known = value => typeof value === "number" && Number.isFinite(value);
const amount = (value, unit) => (known(value) ? perunNumber(value, unit) : "–");

// 12.1 to 12.5 ms: the ends in one unit.
function amounts(interval, unit) {
  if (!interval || interval[0] === interval[1]) return "";
  // Of few values with much noise it reaches below 0, where nothing that is measured can be.
  const texts = interval.map(value => perunNumber(Math.max(value, 0), unit));
  const [one, other] = texts.map(text => text.split(" "));
  return one.slice(1).join(" ") === other.slice(1).join(" ")
    ? `${one[0]} to ${texts[1]}`
    : texts.join(" to ");
}

// A ratio as a change: +34 %, or 2.4x from the double on and below the half.
// `more`: digits beyond what is enough for one number.
function change(ratio, more = 0) {
  if (!known(ratio)) return "–";
  if (ratio >= 2 || ratio <= 0.5)
    return `${ratio >= 99.5 ? Math.round(ratio).toLocaleString("en-US") : Number(ratio.toPrecision(2 + more))}x`;
  const percents = 100 * (ratio - 1),
    size = Math.abs(percents);
  const places = more + (size < 0.095 ? 2 : size < 9.95 ? 1 : 0);
  const text = size.toFixed(places);
  return Number(text) === 0 ? "0 %" : `${percents > 0 ? "+" : "−"}${text} %`;
}

// The interval of a ratio: +31 to +37 %, 2.2x to 2.6x; empty for what is exact.
function changeInterval(interval) {
  if (!interval || interval[0] === interval[1]) return "";
  // As many digits as tell the two ends apart.
  let [low, high] = interval.map(one => change(one));
  for (let more = 1; more < 4 && low === high; more++) [low, high] = interval.map(one => change(one, more));
  return low.endsWith(" %") && high.endsWith(" %") ? `${low.slice(0, -2)} to ${high}` : `${low} to ${high}`;
}

const isWorse = (ratio, largerIsBetter) => ratio > 1 !== largerIsBetter;

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

// Whether a series is of the whole program: `real time of ./app big.txt`, not `insert in ./app big.txt`.
const isWhole = one => Boolean(one.command) && one.title.endsWith(` of ${one.command}`);
// What is measured of the whole program: `real time`.
const metricOfWhole = one => one.title.slice(0, -one.command.length - 4);
// What a series is called where its command is beside it, or below; of the whole program that is its name.
const nameOf = one =>
  isWhole(one) ? `${one.command} [${one.metric ?? metricOfWhole(one)}]` : one.location || one.title;
// Below such a name: the command, where it is not told yet.
const commandBelow = one => (isWhole(one) ? "" : one.command);
// Commands as short as tells them apart in little room: without the words that all of them begin with.
function shortCommands(rows) {
  const every = [...new Set(rows.map(one => one.command).filter(Boolean))].map(text => text.split(" "));
  let same = 0;
  while (every.length > 1 && every.every(words => words.length > same + 1 && words[same] === every[0][same])) same++;
  return text => (same ? `… ${text.split(" ").slice(same).join(" ")}` : text);
}
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
