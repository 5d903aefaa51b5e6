"""Measuring versions: `perun run`, `collect` and the hooks (manual 3.2.10-12 and chapter 7).

The main path is `execute.run_jobs`; every other module does one part of it. In the order of the work:

- what is measured: `jobs`, `workloads`, `versions`; in which order and how long: `schedule`, `forecast`;
- entering a version: `prepared`, by `checkouts` and `in_place` (its files), `pre_run` (its build) and
  `preparations` (the record of earlier builds);
- measuring: `collecting` (one job), `execute` (all jobs), `events` (what happens, and its tally);
- many versions, resumable: `matrix`, `journal`; after a commit: `background`.
"""
