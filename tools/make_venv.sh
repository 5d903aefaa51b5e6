#!/usr/bin/env bash
# Make a virtual environment with pip in it, and see that the compiler and git are there.
#
# Usage: [PYTHON=python3.12] tools/make_venv.sh FOLDER
set -euo pipefail

venv=$1
wanted="3.11"

die() {
  printf '%s\n' "$@" >&2
  exit 1
}

for tool in git gcc; do
  command -v "$tool" >/dev/null || die "$tool is not installed" "install it: apt-get install git build-essential"
done

# The first Python that is new enough: the one asked for, else any.
python=
for candidate in "${PYTHON:-python3}" python3 python3.14 python3.13 python3.12 python3.11; do
  if "$candidate" -c "import sys; sys.exit(sys.version_info < (${wanted/./, }))" 2>/dev/null; then
    python=$candidate
    break
  fi
done
[ -n "$python" ] || die "Python $wanted or newer is not installed" "install one, or name it: make PYTHON=/path/to/python3"

echo "making a virtual environment in $venv with $("$python" --version)"
make_venv() {
  rm -rf "$venv"
  "$python" -m venv "$venv" 2>&1
}

# Debian keeps the part of venv that brings pip in a package of its own.
if ! output=$(make_venv); then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "this Python cannot make one; installing the Debian package python3-venv"
    apt-get update --quiet --quiet
    DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet --quiet python3-venv >/dev/null
    output=$(make_venv) || die "$output"
  elif "$python" -m virtualenv --version >/dev/null 2>&1; then
    rm -rf "$venv"
    "$python" -m virtualenv --quiet "$venv"
  else
    rm -rf "$venv"
    die "$output" "a virtual environment cannot be made" "install what is missing: apt-get install python3-venv"
  fi
fi
