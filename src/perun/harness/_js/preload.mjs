// Loaded before the script of a user: what it imports of its library of benchmarks is changed.
import { register } from 'node:module';

register('./hooks.mjs', import.meta.url);
