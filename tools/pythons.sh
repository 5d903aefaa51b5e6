#!/usr/bin/env bash
# List the Pythons of this machine that Perun supports, the oldest first: a line `3.12 /path/to/python` for each version.
#
# Usage: tools/pythons.sh [VERSION]...
# Looks at the PATH, and where pyenv and uv put theirs.
set -euo pipefail
shopt -s nullglob

if [ $# = 0 ]; then
  set -- 3.11 3.12 3.13 3.14
fi
for version in "$@"; do
  for candidate in \
    "python$version" \
    {/usr/local,/usr}/bin/"python$version" \
    "${PYENV_ROOT:-${HOME-}/.pyenv}"/versions/"$version".*/bin/"python$version" \
    "${XDG_DATA_HOME:-${HOME-}/.local/share}"/uv/python/cpython-"$version".*/bin/"python$version"; do
    # A shim of pyenv is on the PATH for versions, too, that are not switched on: it fails.
    if found=$("$candidate" -c 'import os, sys; print("%d.%d" % sys.version_info[:2], os.path.realpath(sys.executable))' 2>/dev/null) &&
      [ "${found%% *}" = "$version" ]; then
      echo "$found"
      break
    fi
  done
done
