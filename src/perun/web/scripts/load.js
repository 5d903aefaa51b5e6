// Pieces of data by their names: from the server, or, in a site that opens from disk, as scripts.
const live = document.documentElement.dataset.live === "yes";
const pieces = new Map(),
  arrived = new Map();

// What a piece could not be had for, as people are told it.
class NoPiece extends Error {
  constructor(name, message, hint = "", status = 0) {
    super(message);
    Object.assign(this, {piece: name, hint, status});
  }
}

// A piece of the interface, e.g. "overview" or "series/0a1b2c3d4e5f"; asked for once, until `forget`.
function load(name) {
  if (!pieces.has(name)) {
    const asked = (live ? fetched : included)(name);
    pieces.set(name, asked);
    asked.catch(() => pieces.delete(name));
  }
  return pieces.get(name);
}
const forget = () => pieces.clear();
const addressOf = name => name.split("/").map(encodeURIComponent).join("/");

async function fetched(name) {
  let answer;
  try {
    answer = await fetch(`api/${addressOf(name)}`, {headers: {Accept: "application/json"}});
  } catch {
    throw new NoPiece(name, "The server does not answer.", "Start it again: perun web serve");
  }
  let data = null;
  try {
    data = await answer.json();
  } catch {
    /* said below */
  }
  if (answer.ok && data) return data;
  throw new NoPiece(
    name,
    data?.error || `The server answered ${answer.status}.`,
    data?.hint || "",
    answer.status,
  );
}

// Scripts that lie beside the page call this with the name of their piece and its JSON.
function perunPiece(name, text) {
  arrived.get(name)?.(text);
}

function included(name) {
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    arrived.set(name, text => {
      try {
        resolve(JSON.parse(text));
      } catch {
        reject(new NoPiece(name, "A file of this site is damaged.", "Build it again: perun web build"));
      }
    });
    const end = () => {
      script.remove();
      arrived.delete(name);
      reject(new NoPiece(name, "This is not part of the site.", "perun web serve shows all", 404));
    };
    script.addEventListener("load", end);
    script.addEventListener("error", end);
    script.src = `data/${addressOf(name)}.js`;
    document.head.append(script);
  });
}

// ---- what pieces hold, as arrays -----------------------------------------------------------------------------

// [first, difference, ...] as numbers.
function summed(differences) {
  const found = new Float64Array(differences.length);
  let sum = 0;
  for (let i = 0; i < differences.length; i++) found[i] = sum += differences[i];
  return found;
}

// The history: the date and the first 8 digits of the checksum of each known commit, oldest first.
async function loadHistory() {
  const data = await load("history");
  const dates = summed(data.dates);
  return {
    dates,
    line: data.line,
    measured: data.measured,
    count: dates.length,
    short: at => data.checksums.slice(8 * at, 8 * at + 8),
    find(prefix) {
      const wanted = prefix.slice(0, 8).toLowerCase();
      for (
        let from = data.checksums.indexOf(wanted);
        from >= 0;
        from = data.checksums.indexOf(wanted, from + 1)
      )
        if (from % 8 === 0) return from / 8;
      return -1;
    },
  };
}

// The commit at a position, with all that is known of it; null where there is none.
async function loadCommit(at) {
  const {chunk} = await load("site");
  if (!(at >= 0)) return null;
  const data = await load(`commits/${Math.floor(at / chunk)}`);
  const found = data.commits[at - data.first];
  return found ? {...found, at} : null;
}

// The position of a checksum (or the first digits of one), a tag or a branch; -1 where there is none.
async function positionOf(revision) {
  const name = revision.trim();
  if (!name) return -1;
  const [site, history] = await Promise.all([load("site"), loadHistory()]);
  const named = [...site.tags, ...site.branches].find(one => one.name === name);
  if (named) return named.at ?? -1;
  if (name === "HEAD") return site.head ? history.find(site.head) : -1;
  return /^[0-9a-f]{4,}$/i.test(name) ? history.find(name) : -1;
}

// Half the width of an interval, which pieces give in millionths of the value.
const halfOf = (parts, value) => (parts ?? 0) * (value ? Math.abs(value) / 1e6 : 1);

// What a piece with lines holds, as arrays: positions, values and bounds of their intervals.
function linesOf(lines) {
  return lines.map(line => {
    const at = summed(line.at),
      value = Float64Array.from(line.value, one => one ?? NaN),
      count = at.length;
    const low = new Float64Array(count),
      high = new Float64Array(count),
      n = new Float64Array(count);
    for (let i = 0; i < count; i++) {
      const half = halfOf(line.half?.[i], value[i]);
      low[i] = value[i] > 0 ? Math.max(0, value[i] - half) : value[i] - half;
      high[i] = value[i] + half;
      n[i] = (Array.isArray(line.n) ? line.n[i] : line.n) ?? 1;
    }
    return {machine: line.machine, branch: line.branch, at, value, low, high, n};
  });
}

// A series; `more` is told of its lines again as parts of a long one come.
async function loadSeries(id, more) {
  const data = await load(`series/${id}`);
  const parts = new Map([[Infinity, linesOf(data.lines)]]);
  const whole = () => joined([...parts].sort((a, b) => a[0] - b[0]).map(part => part[1]));
  await Promise.all(
    (data.chunks || []).map(async number => {
      parts.set(number, linesOf((await load(`series/${id}/${number}`)).lines));
      more?.(data, whole);
    }),
  );
  return {...data, lines: whole()};
}

function joined(parts) {
  const lines = new Map();
  for (const line of parts.flat()) {
    const key = `${line.machine}/${line.branch}`;
    lines.set(key, [...(lines.get(key) || []), line]);
  }
  return [...lines.values()].map(same =>
    same.length === 1
      ? same[0]
      : {
          ...same[0],
          ...Object.fromEntries(
            ["at", "value", "low", "high", "n"].map(name => [name, concatenated(same.map(one => one[name]))]),
          ),
        },
  );
}
function concatenated(arrays) {
  const all = new Float64Array(arrays.reduce((sum, one) => sum + one.length, 0));
  let place = 0;
  for (const one of arrays) {
    all.set(one, place);
    place += one.length;
  }
  return all;
}
