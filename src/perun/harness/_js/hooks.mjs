// Puts a module around the library of benchmarks that a script imports: it has all that the library has, and
// other functions for what measures.
const OURS = '?perun=';
const CHANGED = {
  tinybench: ['Bench'],
  mitata: ['run', 'measure'],
  'mitata/lib': ['measure'],
};

export async function resolve(specifier, context, next) {
  const found = await next(specifier, context);
  let name = Object.hasOwn(CHANGED, specifier) ? specifier : '';
  if (specifier === './lib.mjs' && /\/mitata\/src\/main\.mjs$/.test(context.parentURL ?? '')) name = 'mitata/lib';
  if (!name || found.format !== 'module' || context.parentURL?.includes(OURS)) return found;
  return { ...found, url: found.url + OURS + name, shortCircuit: true };
}

export async function load(url, context, next) {
  const [real, name] = url.split(OURS);
  if (!name) return next(url, context);
  const ours = new URL(`./${name.split('/')[0]}.mjs`, import.meta.url);
  const source = [
    `import * as real from ${JSON.stringify(real)};`,
    `import { around } from ${JSON.stringify(ours.href)};`,
    `export * from ${JSON.stringify(real)};`,
    `const ours = around(real);`,
    ...CHANGED[name].map(one => `export const ${one} = ours.${one};`),
  ];
  return { format: 'module', source: source.join('\n'), shortCircuit: true };
}
