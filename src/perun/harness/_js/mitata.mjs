// Functions of mitata 1 that do what Perun asks. A benchmark is the n-th that is measured: that is its key.
import { SAMPLES, WARMUP, found, isWanted, measureWanted } from './asked.mjs';

const FASTER = 100; // of a first call that is cold little can be told
const SHORTEST = 0.1; // nanoseconds: what takes less is no operation
const NOT_MEASURED = Object.freeze({
  kind: 'fn', debug: '', ticks: 1, samples: [1], min: 1, max: 1, avg: 1, p25: 1, p50: 1, p75: 1, p99: 1, p999: 1,
});

let running = false;
let count = 0;

async function sampled(real, f, given, iterations) {
  const options = {
    ...given, heap: null, $counters: false, min_cpu_time: 0, min_samples: SAMPLES, max_samples: SAMPLES,
    batch_unroll: 1, batch_samples: iterations, batch_threshold: Infinity, warmup_threshold: Infinity,
    samples_threshold: Infinity,
  };
  const stats = await real.measure(f, { ...options });
  if (iterations === 1 || stats.ticks !== stats.samples.length) return stats.p50;
  // One that measures itself: each call is a sample.
  return (await real.measure(f, { ...options, min_samples: iterations, max_samples: iterations })).avg;
}

/** Warmed up: seconds of an operation, the middle sample, as mitata has sorted them. */
async function measured(real, f, given, asks, seconds) {
  const aim = 1e9 * seconds;
  const most = Math.ceil(aim / SHORTEST);
  let iterations = asks || 1;
  const start = performance.now();
  let took = await sampled(real, f, given, iterations);
  while (!asks && iterations * took < aim / 2 && iterations < most) {
    iterations = Math.min(most, Math.ceil(iterations * Math.min(FASTER, aim / (iterations * took))));
    took = await sampled(real, f, given, iterations);
  }
  do took = await sampled(real, f, given, iterations); while (performance.now() - start < WARMUP);
  return { samples: [took / 1e9], iterations };
}

export function around(real) {
  async function measure(f, options = {}) {
    if (!running) return real.measure(f, options);
    if (!Object.hasOwn(options, '$counters')) return NOT_MEASURED; // of the loop alone
    const key = String(count++);
    if (isWanted(key)) await measureWanted(key, (asks, seconds) => measured(real, f, options, asks, seconds));
    return NOT_MEASURED;
  }

  async function run(options = {}) {
    running = true;
    const result = await real.run({ ...options, format: 'quiet', throw: false });
    running = false;
    for (const { alias, group, runs } of result.benchmarks) {
      const name = [result.layout[group]?.name, alias].filter(Boolean).join('/');
      for (const { args } of runs) found(name, Object.entries(args).map(([k, v]) => `${k}=${v}`).join(' '));
    }
    return result;
  }

  return { measure, run };
}
