"""Measuring versions: `perun run`, `collect` and the hooks (manual 3.2.10-12 and chapter 7).

In the order of the work: `jobs` and `workloads` (what is measured), `schedule` and `forecast` (in which
order, how long), `versions` and `preparations` (where), `execute` (the measuring itself), `matrix` and
`journal` (many versions, resumable), `background` (after a commit).
"""
