"""Measuring versions: `perun run`, `collect` and the hooks (manual 3.2.10-12 and chapter 7).

The main path is `execute.run_jobs`: it enters a version (`pre_run`), runs its jobs (`collecting`), and
tells what happens (`events`) in the order of `schedule`. Many versions, resumable: `matrix`, `journal`;
after a commit: `background`."""
