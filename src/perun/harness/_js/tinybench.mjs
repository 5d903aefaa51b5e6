// Bench of tinybench, 2 to 6, whose runs do what Perun asks.
import { SAMPLES, WARMUP, asked, found, isWanted, measureWanted } from './asked.mjs';

/** The options of a run of so many calls, or of so many seconds where that is 0. */
export function options(iterations, seconds) {
  const warmup = { warmup: true, warmupTime: WARMUP, warmupIterations: 1, throws: false };
  return { ...warmup, time: iterations ? 0 : 1000 * seconds, iterations: iterations || 1 };
}

/** Warm a task up and run it some times: each run is a sample, the mean of its calls. */
export async function sample(task) {
  await task.warmup();
  const samples = [];
  let calls = 0;
  for (let run = 0; run < SAMPLES; run++) {
    task.reset(); // one that has run does not run again in some versions
    await task.run();
    const result = task.result;
    if (result?.error) throw result.error;
    const latency = result.latency ?? result;
    samples.push(latency.mean / 1000);
    calls += latency.samplesCount ?? latency.samples?.length ?? result.samples.length;
  }
  return { samples, iterations: Math.round(calls / SAMPLES) };
}

export function around(real) {
  class Bench extends real.Bench {
    #labels = new Map();

    constructor(given = {}) {
      const [iterations] = Object.values(asked.wanted);
      super({ ...given, ...options(iterations, asked.seconds / SAMPLES), concurrency: null });
    }

    add(name, ...rest) {
      super.add(name, ...rest);
      this.#labels.set(name, found([this.name, name].filter(Boolean).join('/')));
      return this;
    }

    async run() {
      for (const task of this.tasks) {
        const label = this.#labels.get(task.name);
        if (isWanted(label)) await measureWanted(label, () => sample(task));
      }
      return this.tasks;
    }

    runSync() {
      throw new Error('runSync of tinybench is not supported: use run');
    }

    async warmup() {}
  }
  return { Bench };
}
