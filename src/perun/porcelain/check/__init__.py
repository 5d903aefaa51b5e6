"""Finding changes of performance: `perun check` (manual 3.2.13-3.2.16, chapter 8).

In the order of the work: `precollect` (profiles that are missing), `history`, `baselines` and `check` (which
pairs), `rules` (which methods), `compare`, `parallel` and `workers` (the comparing itself), `report` (the
answer).
"""
