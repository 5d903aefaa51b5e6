#!/usr/bin/env bash
# See that programs are there that some tests need; install Debian's where that may be.
#
# Usage: tools/install_tools.sh chromium|tracers|strange|arm64|servers|harnesses|linters
# Never fails: without them these tests are skipped, and say so.
set -euo pipefail

any() {
  for name in "$@"; do
    if command -v "$name" >/dev/null; then return 0; fi
  done
  return 1
}

any_file() {
  for path in "$@"; do
    if [ -e "$path" ]; then return 0; fi
  done
  return 1
}

# Whether there is such a package.
available() {
  [ -n "$1" ] && any apt-cache && apt-cache show "$1" >/dev/null 2>&1
}

wanted="" # a package that is installed too, where it exists
better="" # one that takes the place of the first, where it exists
case "${1-}" in
chromium)
  purpose="the tests that open pages in a browser"
  packages=(chromium fonts-dejavu-core)
  better=chromium-headless-shell # the same browser without windows: smaller, and quicker to open a page
  found() { any "$better" chromium chromium-browser google-chrome; }
  ;;
tracers)
  purpose="the tests that trace functions and count instructions"
  packages=(uftrace systemtap systemtap-sdt-dev binutils clang libbpf-dev libelf-dev zlib1g-dev valgrind)
  # SystemTap traces by a module that it builds, for which it needs the headers of the kernel. Kernels that load no
  # modules have no use for them, and for many kernels, as those of virtual machines, there is no package.
  if [ -e /proc/modules ] && ! [ -e "/lib/modules/$(uname -r)/build" ]; then
    wanted="linux-headers-$(uname -r)"
  fi
  found() {
    any uftrace && any stap && any clang && any objdump && any valgrind && [ -e /usr/include/bpf/libbpf.h ] &&
      any_file /usr/include/sys/sdt.h /usr/include/*/sys/sdt.h && ! available "$wanted"
  }
  ;;
strange)
  purpose="the tests of programs with another allocator or C library"
  packages=(libjemalloc2 libtcmalloc-minimal4 libmimalloc2.0 musl-tools)
  found() {
    any musl-gcc && any_file /usr/lib/*/libjemalloc.so.2 && any_file /usr/lib/*/libtcmalloc_minimal.so.4 &&
      any_file /usr/lib/*/libmimalloc.so.2*
  }
  ;;
harnesses)
  purpose="the tests of harnesses of Go, C++ and Rust, and of files that other tools write"
  packages=(
    golang-go libbenchmark-dev catch2 librust-criterion-dev hyperfine heaptrack linux-perf nodejs protobuf-compiler
  )
  found() {
    any hyperfine && any heaptrack && any perf && any node && any protoc && any go &&
      any_file /usr/include/benchmark/benchmark.h && any_file /usr/share/cargo/registry/criterion-*/Cargo.toml &&
      any_file /usr/include/catch2/catch.hpp /usr/include/catch2/catch_all.hpp
  }
  ;;
servers)
  purpose="the tests of remotes in a database"
  packages=(postgresql)
  found() { any_file /usr/lib/postgresql/*/bin/pg_ctl; }
  ;;
linters)
  purpose="the tests of the scripts of the action for continuous integration"
  packages=(shellcheck)
  found() { any shellcheck; }
  ;;
arm64)
  purpose="the tests of the native libraries for 64-bit ARM"
  packages=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user)
  found() { any aarch64-linux-gnu-gcc && any qemu-aarch64; }
  ;;
*)
  echo "usage: $0 chromium|tracers|strange|arm64|servers|harnesses|linters" >&2
  exit 2
  ;;
esac

if found; then
  exit 0
fi
if [ "$(id -u)" = 0 ] && any apt-get; then
  echo "installing Debian packages for $purpose: ${packages[*]}"
  export DEBIAN_FRONTEND=noninteractive
  # Another apt may be at work: its lock is waited for.
  apt=(apt-get -o DPkg::Lock::Timeout=300 --yes --quiet --quiet)
  if "${apt[@]}" update; then
    if available "$wanted"; then packages+=("$wanted"); fi
    if available "$better"; then packages[0]=$better; fi
    if "${apt[@]}" install --no-install-recommends "${packages[@]}" >/dev/null; then exit 0; fi
  fi
  echo "they cannot be installed: $purpose are skipped" >&2
else
  echo "$purpose are skipped where something is missing (apt-get install ${packages[*]})" >&2
fi
