// The runner of benchmarks of vitest, 1 to 4, that does what Perun asks. It is copied to where the packages of
// the project are found.
import { NodeBenchmarkRunner } from 'vitest/runners';
import { getBenchFn, getBenchOptions } from 'vitest/suite';

const { found, isWanted, measureWanted } = await import(process.env.PERUN_HARNESS_FOLDER + 'asked.mjs');
const { options, sample } = await import(process.env.PERUN_HARNESS_FOLDER + 'tinybench.mjs');

export default class PerunRunner extends NodeBenchmarkRunner {
  async runSuite(suite, path = []) {
    for (const task of suite.tasks) {
      const whole = [...path, task.name];
      if (task.type === 'suite') await this.runSuite(task, whole);
      else if (task.meta?.benchmark) await this.#benchmark(task, whole.join(' > '));
    }
    suite.result = { state: 'pass' };
  }

  async #benchmark(task, name) {
    const label = found(name);
    if (isWanted(label)) await measureWanted(label, async (iterations, seconds) => {
      if (task.mode !== 'run' && task.mode !== 'queued') throw new Error('is skipped');
      const { Bench, Task } = await this.importTinybench();
      const bench = new Bench({ ...getBenchOptions(task), ...options(iterations, seconds) });
      return sample(new Task(bench, task.name, getBenchFn(task)));
    });
    task.result = { state: 'pass' };
  }
}
