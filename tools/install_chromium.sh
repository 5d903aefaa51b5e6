#!/usr/bin/env bash
# See that there is a chromium for the tests that open pages in a browser; install Debian's where that may be.
#
# Never fails: without one these tests are skipped.
set -euo pipefail

for name in chromium chromium-browser google-chrome; do
  if command -v "$name" >/dev/null; then
    exit 0
  fi
done
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "installing the Debian package chromium, for the tests that open pages in a browser"
  export DEBIAN_FRONTEND=noninteractive
  if apt-get update --quiet --quiet &&
    apt-get install --yes --quiet --quiet --no-install-recommends chromium fonts-dejavu-core >/dev/null; then
    exit 0
  fi
  echo "chromium cannot be installed; the tests that open pages in a browser are skipped" >&2
else
  echo "no chromium is installed; the tests that open pages in a browser are skipped (apt-get install chromium)" >&2
fi
