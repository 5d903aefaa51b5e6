#!/usr/bin/env bash
# Perun measures itself: how long `perun --help`, `perun status` and `perun log` take at its last commits.
#
# Usage: benchmarks/self.sh [COMMITS]     in a checkout of Perun, with `perun` on the PATH; 5 commits by default
#
# The results stay in .perun of the checkout: the next call adds the newer commits to them.
set -euo pipefail
commits=${1:-5}

run() {
  printf '\n$ perun %s\n' "$*"
  perun --no-pager "$@"
}

cd "$(git rev-parse --show-toplevel)"
[ -d .perun ] || run init
# Each commit runs from its own sources, with the libraries of the installed Perun.
run config set cmds '[env -u PYTHONDONTWRITEBYTECODE PYTHONPATH=src python3 -m perun]'
run config set args '[--help, status, log --short]'
run config set collectors '[{name: time, params: {warmup: 2, repeat: 20}}]'
run config set profiles.register_after_run true
# Two thirds of these commands are the start of Python: a change by half is a large one.
run config set degradation.hodges_lehmann_ratio '{apart: 0.5}'

versions=()
while read -r version; do versions+=(-m "$version"); done < <(git rev-list -n "$commits" HEAD)
run run "${versions[@]}" matrix
run check all
run log --short | head -n $((commits + 1))
