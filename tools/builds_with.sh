#!/usr/bin/env bash
# Say what Perun is built with on this machine: a line for each, with its path where it is there. Perun leaves out what it
# lacks something for, so that it is to be installed anew where this changes.
#
# Usage: tools/builds_with.sh PYTHON
set -euo pipefail

for tool in cc clang; do
  echo "$tool: $(command -v "$tool" | xargs -r readlink -f || true)"
done
headers=$("$1" -c 'import sysconfig; print(sysconfig.get_path("include"))')
echo "Python.h: $(ls "$headers/Python.h" 2>/dev/null || true)"
for header in bpf/libbpf.h libelf.h zlib.h; do # each comes with its library
  echo "$header: $(echo "#include <$header>" | cc -E -x c - 2>/dev/null | grep -m 1 -o "\"/[^\"]*/$header\"" || true)"
done
