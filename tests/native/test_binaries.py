"""Functions and sizes of programs that compilers write in unusual ways: split debug information, Rust, Go."""

import shutil
import subprocess
from pathlib import Path

import pytest

from perun.collect._calls.sizes import find_size, size_of
from perun.core.errors import UsageError
from perun.native.binary import Binary

LISTS = "struct list { long size; void *items; };\n"
SOURCES = {
    "one.c": LISTS
    + "long search(struct list *l);\nlong insert(struct list *l) { return ++l->size; }\n"
    + "int main(void) { struct list l = {0}; insert(&l); return search(&l) != 1; }\n",
    "two.c": LISTS + "long search(struct list *l) { return l->size; }\n",
}
RUST = """
use std::collections::HashMap;
#[inline(never)]
fn fill(n: usize) -> Vec<u64> { let mut v = Vec::new(); for i in 0..n { v.push(i as u64 * 3); } v }
pub struct Bag { items: Vec<u64> }
impl Bag {
    #[inline(never)]
    pub fn add(&mut self, x: u64) { self.items.push(x) }
}
fn main() {
    let mut m = HashMap::new();
    let mut b = Bag { items: vec![] };
    for i in 0..20 { let v = fill(i * 10); b.add(v.len() as u64); m.insert(i, v); }
    println!("{} {}", b.items.len(), m.len());
}
"""


def sizes_of(program: Path, cache: Path | None = None) -> dict[str, str]:
    """The expression of the size of each function; empty where it has none."""
    with Binary(program, cache) as binary:
        found = {one.name: find_size(binary, one) for one in binary.own_functions}
    return {name: size.text if size else "" for name, size in found.items()}


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_debug_information_in_files_of_its_own(tmp_path: Path, compiler: str) -> None:
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    build = tmp_path / "build"
    build.mkdir()
    for name, text in SOURCES.items():
        (build / name).write_text(text)
        command = [compiler, "-gdwarf-5", "-gsplit-dwarf", "-O1", "-fno-inline", "-c", name]
        subprocess.run(command, cwd=build, check=True)
    subprocess.run([compiler, "-Wl,--build-id", "-o", "program", "one.o", "two.o"], cwd=build, check=True)
    cache = tmp_path / "cache"
    expected = {"insert": "l->size", "search": "l->size", "main": ""}
    assert sizes_of(build / "program", cache) == expected
    # Moved together with the program they are found, too.
    moved = tmp_path / "moved"
    build.rename(moved)
    assert sizes_of(moved / "program", cache) == expected
    (moved / "two.dwo").unlink()
    assert sizes_of(moved / "program", cache) == expected | {"search": ""}
    with Binary(moved / "program", cache) as binary:
        (note,) = binary.notes
    assert "cannot read two.dwo" in note and "one.dwo" not in note


def test_what_strip_took_away_is_not_taken_from_the_cache(tmp_path: Path) -> None:
    """The build-id, which the cache goes by, stays."""
    for name, text in SOURCES.items():
        (tmp_path / name).write_text(text)
    command = ["gcc", "-g", "-O1", "-fno-inline", "-Wl,--build-id", "-o", "program", *SOURCES]
    subprocess.run(command, cwd=tmp_path, check=True)
    program, cache = tmp_path / "program", tmp_path / "cache"
    expected = {"insert": "l->size", "search": "l->size", "main": ""}
    assert sizes_of(program, cache) == expected
    subprocess.run(["objcopy", "--only-keep-debug", program, tmp_path / "program.debug"], check=True)
    subprocess.run(["strip", "-g", program], check=True)
    assert sizes_of(program, cache) == dict.fromkeys(expected, "")
    subprocess.run(["strip", program], check=True)
    assert sizes_of(program, cache) == {}
    # From the file that keeps it, what was taken away is known again.
    subprocess.run(["objcopy", f"--add-gnu-debuglink={tmp_path / 'program.debug'}", program], check=True)
    assert sizes_of(program, cache) == expected


def test_debug_information_of_an_older_kind_is_named(tmp_path: Path) -> None:
    (tmp_path / "two.c").write_text(SOURCES["two.c"])
    command = ["gcc", "-gdwarf-4", "-gsplit-dwarf", "-O1", "-shared", "-fPIC", "-o", "two.so", "two.c"]
    subprocess.run(command, cwd=tmp_path, check=True)
    with Binary(tmp_path / "two.so") as binary:
        assert [one.name for one in binary.own_functions] == ["search"]
        (note,) = binary.notes
    assert "-gsplit-dwarf" in note and ".dwo" in note


@pytest.mark.parametrize("names", [(), ("-C", "symbol-mangling-version=v0")], ids=["usual", "v0"])
def test_rust(tmp_path: Path, names: tuple[str, ...]) -> None:
    rustc = shutil.which("rustc")
    if not rustc or subprocess.run([rustc, "--version"], capture_output=True, check=False).returncode:
        pytest.skip("no Rust compiler works here (rustc)")
    (tmp_path / "bag.rs").write_text(RUST)
    subprocess.run([rustc, "-g", "-C", "opt-level=1", *names, "bag.rs"], cwd=tmp_path, check=True)
    assert sizes_of(tmp_path / "bag") == {"bag::Bag::add": "", "bag::fill": "", "bag::main": "", "main": ""}
    with Binary(tmp_path / "bag") as binary:
        assert binary.throws  # a panic passes frames as an exception does
        assert [one.name for one in binary.find("Bag::add")] == ["bag::Bag::add"]
        (note,) = binary.notes
        assert "Rust" in note
        with pytest.raises(UsageError, match="Rust"):
            size_of(binary, binary.find("fill")[0], "n")
        with pytest.raises(UsageError) as problem:
            binary.find("Bag::ad")
        assert "bag::Bag::add" in problem.value.hint


def test_an_error_lists_ten_names_at_most(tmp_path: Path) -> None:
    functions = "".join(f"int f{number}(void) {{ return {number}; }}\n" for number in range(200))
    (tmp_path / "many.c").write_text(functions)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", "many.so", "many.c"], cwd=tmp_path, check=True)
    with Binary(tmp_path / "many.so") as binary, pytest.raises(UsageError) as problem:
        binary.find("something_else")
    assert problem.value.hint.startswith("the nearest of its 200 names are: ")
    assert problem.value.hint.count(",") == 9
