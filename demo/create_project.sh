#!/usr/bin/env bash
# Create the demo project, a small C++ library with a git history, in an empty folder.
#
# The history is kept as one patch for each commit in `history`. Authors, dates and therefore checksums are
# always the same; nothing is read from the user's git configuration.
#
# Usage: demo/create_project.sh FOLDER
set -euo pipefail

if [ $# -ne 1 ]; then
  echo "usage: $0 FOLDER" >&2
  exit 2
fi
history=$(cd "$(dirname "${BASH_SOURCE[0]}")/history" && pwd)
project=$1

mkdir -p "$project"
if [ -n "$(ls -A "$project")" ]; then
  echo "$0: $project is not empty; name a new folder" >&2
  exit 1
fi

# A surrounding repository or hook may have set any of these.
unset "${!GIT_@}"
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null

git -C "$project" init --quiet --initial-branch=main
git -C "$project" config user.name "Ada Lindqvist"
git -C "$project" config user.email "ada@example.org"
git -C "$project" am --quiet --keep --committer-date-is-author-date "$history"/*.patch
