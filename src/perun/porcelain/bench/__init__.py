"""Commands measured at once, without any configuration: `perun bench`.

The main path is `bench`: plan, measure in turns, compare with what was measured before, store. In the order
of the work:

- what: `options`, `plan` (the commands with the values of their parameters), `matrix` (what `--save` would
  write);
- measuring: `measuring` (one run; rounds of runs until the intervals are narrow);
- the answer: `results` (values, ratios, differences), `notes` (what is odd about a series).
"""
