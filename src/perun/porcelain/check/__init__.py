"""Finding changes of performance: `perun check` (manual 3.2.13-3.2.16, chapter 8).

The main path is `check`: plan the pairs, compare them, report. In the order of the work:

- pairs: `precollect` (measures missing profiles), `history`, `baselines`, `pairing`;
- comparing: `rules` (which methods), `pools` (which profiles), `compare` (one pair), `parallel` and `workers`
  (many pairs);
- the answer: `storing` (keeps the changes), `report`.
"""
