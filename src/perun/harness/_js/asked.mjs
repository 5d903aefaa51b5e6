// What Perun asks of a program with benchmarks, and how it is answered.
import { writeFileSync } from 'node:fs';

/** `list`: whether to tell the names only. `wanted`: operations of a sample by the key of a benchmark, 0 to find
 * them. `seconds`: of all samples of a benchmark. */
export const asked = JSON.parse(process.env.PERUN_HARNESS_ASKED);

/** How many samples a benchmark gets; one cold one, or one with a pause, does not count. */
export const SAMPLES = 5;

/** Milliseconds that a benchmark runs before it is measured, at least: until then it is compiled anew. */
export const WARMUP = Math.max(1000 * asked.seconds, 100);

const listed = [];
const measured = {};

/** Answer with what there is up to now; the program may still fail. */
function answer() {
  writeFileSync(asked.answer, JSON.stringify({ listed, measured }));
}

/** Note one more benchmark, and return the name by which it is told from others. */
export function found(name, parameters = '') {
  const before = listed.filter(one => one.plain === name && one.parameters === parameters).length;
  const label = before ? `${name}#${before + 1}` : name;
  listed.push({ plain: name, name: label, parameters });
  answer();
  return label;
}

/** Whether this benchmark is measured now, and not before. */
export function isWanted(key) {
  return !asked.list && Object.hasOwn(asked.wanted, key) && !Object.hasOwn(measured, key);
}

/** Measure a benchmark: `measure(iterations, seconds)` gives `{ samples, iterations }`, seconds each. */
export async function measureWanted(key, measure) {
  try {
    measured[key] = await measure(asked.wanted[key], asked.seconds / SAMPLES);
  } catch (error) {
    measured[key] = { failure: String(error?.message ?? error) };
  }
  answer();
}
