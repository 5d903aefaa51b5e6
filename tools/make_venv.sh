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

suitable() {
  [ -n "$1" ] && "$1" -c "import sys; sys.exit(sys.version_info < (${wanted/./, }))" 2>/dev/null
}

# The one asked for, also where it is not on the path; where none is asked for, the newest.
python=${PYTHON:-python3}
if ! suitable "$python"; then
  case "$python" in
  python3) python=$(tools/pythons.sh | tail -n 1) ;;
  python3.*) python=$(tools/pythons.sh "${python#python}") ;;
  *) die "$python is no Python $wanted or newer" "name one: make PYTHON=/path/to/python3" ;;
  esac
  python=${python#* }
  suitable "$python" || die "${PYTHON:-Python $wanted or newer} is not installed" \
    "install it, or name another one: make PYTHON=/path/to/python3"
fi

# Where the folder is the environment that is active, its Python goes with it: the one that made it stays.
python=$("$python" -c "import sys; print(sys._base_executable)")

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
