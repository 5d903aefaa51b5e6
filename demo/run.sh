#!/usr/bin/env bash
# The tour: measure every version of a small C++ project and let Perun name the commit that made it slow.
#
# Usage: demo/run.sh FOLDER     the folder is made anew; `perun` must be on the PATH
set -euo pipefail

if [ $# -ne 1 ]; then
  echo "usage: $0 FOLDER" >&2
  exit 2
fi
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
for tool in perun git make g++; do
  command -v "$tool" >/dev/null || {
    echo "the demo needs $tool; install it: apt-get install git build-essential" >&2
    exit 1
  }
done

# Show a command as it would be typed, and run it.
run() {
  printf '\n$ %s\n' "$1"
  eval "$1"
}

mkdir -p "$1"
project=$(cd "$1" && pwd)
# Only ever remove what an earlier run made.
if [ -n "$(ls -A "$project")" ] && [ ! -f "$project/list.hpp" ]; then
  echo "$0: $project is not the demo project of an earlier run; name a new folder" >&2
  exit 1
fi
rm -rf "$project"
"$here/create_project.sh" "$project"
cd "$project"

# The user's shared configuration is left alone.
PERUN_CONFIG_DIR=$(mktemp -d)
trap 'rm -rf "$PERUN_CONFIG_DIR"' EXIT
export PERUN_CONFIG_DIR PAGER=cat

echo "A C++ project with $(git rev-list --count HEAD) commits is in $1."

run "perun init --vcs-type git"
run "perun config set cmds '[./list_bench]'"
run "perun config set workloads '[10000]'"
run "perun config set collectors '[{name: time, params: {warmup: 1, repeat: 5}}]'"
run "perun config set execute.pre_run '[make]'"
run "perun config set profiles.register_after_run true"
run "perun run --crawl-parents matrix"
run "perun check all"
run "perun log --short"
run "perun show 0@i tableof resources"

echo
perun check all --json | python3 "$here/verify.py"
