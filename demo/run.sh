#!/usr/bin/env bash
# The tour: measure the history of a small C++ project, let Perun name the commits that changed how fast it is,
# compare a change that is not committed with what it is based on, and have a hook find out about it once it is.
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

# The user's shared configuration is left alone, and so are hooks that all repositories of the user share.
PERUN_CONFIG_DIR=$(mktemp -d)
trap 'rm -rf "$PERUN_CONFIG_DIR"' EXIT
unset "${!GIT_@}"
export PERUN_CONFIG_DIR PAGER=cat GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null

echo "A C++ project with $(git rev-list --count HEAD) commits is in $1."

run "perun init --vcs-type git"
run "perun config set cmds '[./list_bench]'"
echo
echo "Lists of four lengths, how long they take, and the steps that the program says it took:"
run "perun config set generators.workload '[{id: lengths, type: integer, min_range: 4000, max_range: 10000, step: 2000}]'"
run "perun config set workloads '[lengths]'"
run "perun config set collectors '[{name: time, params: {warmup: 1, repeat: 5}}, {name: regex, params: {metric: {steps: \"(?P<value>[0-9]+) steps\"}}}]'"
run "perun config set postprocessors '[{name: regression_analysis, params: {method: full, depending_on: workload}}]'"
run "perun config set execute.pre_run '[make]'"
run "perun config set profiles.register_after_run true"

echo
echo "The newest twelve commits:"
run "perun run matrix --since HEAD~12 --dry-run | tail -n 4"
run "perun run matrix --since HEAD~12 --budget 4"
run "perun run matrix --since HEAD~12 --missing"
run "perun check all"
run "perun changes"
run "perun log --short"
run "perun show HEAD~1:0@i tableof models --headers subtype --headers model --headers explained --sort-by explained"

echo
python3 "$here/verify.py" history

echo
echo "A change that is not committed yet makes searching slower. Perun builds both sides, and measures them in turns:"
run "git apply '$here/regression.patch'"
found=0
run "perun compare -c ./list_bench -w 10000 --fail-on degradation" || found=$?
if [ "$found" -ne 1 ]; then
  echo "perun compare ended with $found, not with 1, the code of a degradation" >&2
  exit 1
fi

echo
echo "From now on a hook measures each commit; this change is the next one:"
run "perun hooks install"
run "git commit --all --quiet --message 'Let search ask first whether the value is there'"
run "perun hooks status --wait"
run "tail -n 12 .perun/logs/\$(git rev-parse HEAD)-hook.log"
run "perun status --short"

echo
python3 "$here/verify.py" hook

echo
echo "All of it as pages for a browser:"
run "perun web build dashboard"
python3 "$here/verify.py" dashboard
echo
echo "The dashboard is in $1/dashboard/index.html"
