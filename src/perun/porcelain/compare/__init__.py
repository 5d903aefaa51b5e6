"""Two versions measured side by side: `perun compare`.

The main path is `compare`: plan, prepare the sides, measure and decide, store. In the order of the work:

- what: `options`, `plan` (versions, configurations), `metrics` (who measures what);
- where: `sides` (a working copy of each side), `identical` (whether there is anything to compare);
- measuring: `instruments` (one run), `pairs` (the runs of a pair, their order, disturbance), `trial` (pairs
  until they decide); `decide` is the mathematics of that, on numbers alone;
- the answer: `storing` (profiles of both sides), `report` (what `check` answers with, too).
"""
