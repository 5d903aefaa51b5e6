// Starts vitest with the runner beside this file: `vitest bench` takes none from its command line.
import { fileURLToPath } from 'node:url';
import { startVitest } from 'vitest/node';

const runner = fileURLToPath(new URL('./vitest.mjs', import.meta.url));
const vitest = await startVitest('benchmark', process.argv.slice(2), { watch: false, runner });
await vitest?.close();
