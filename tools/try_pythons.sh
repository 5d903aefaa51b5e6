#!/usr/bin/env bash
# Run `make demo` and `make test` in a clean clone with each Python of this machine, then with the newest and the lowest
# versions of what Perun needs; print a table of exit codes and seconds. It takes about ten minutes for each.
#
# Usage: tools/try_pythons.sh [VERSION]...
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p build

try() { # NAME TARGET OPTION...
  local name=$1 started=$SECONDS code=0
  shift
  make --no-print-directory -C "$folder/clone" "$@" </dev/null >"build/try-$name-$1.log" 2>&1 || code=$?
  printf '%-8s %-12s %4d %6d s\n' "$name" "$1" "$code" $((SECONDS - started))
}

git clone --quiet . "$folder/clone"
while read -r version python; do
  for target in demo test; do
    try "$version" "$target" PYTHON="$python" VENV=".venv-$version"
  done
done < <(tools/pythons.sh "$@")
try latest test-latest
try oldest test-oldest
echo "what was printed is in build/try-*.log"
