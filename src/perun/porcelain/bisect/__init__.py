"""The version that changed what a program costs, found by measuring few of them: `perun bisect`.

The main path is `bisect`: plan, judge the ends, search, confirm, follow a merge. In the order of the work:

- what: `asking` (the ends, the command and the metric), `path` (the versions between the ends);
- which version next: `choosing`, on positions alone;
- judging one: `judging` (by what is stored, by measuring, by a script), `quantity` (the one number that is
  measured), `measuring` (runs, working copies, what is stored of them), `journal` (what was measured so far).
"""
