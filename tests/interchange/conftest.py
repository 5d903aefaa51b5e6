"""A reader of files, and a program to be profiled."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from exchanged import Reader, needed

PROGRAM = """
#include <stdlib.h>
static volatile long sink;
__attribute__((noinline)) long work(int n) {
    long s = 0;
    for (int i = 0; i < n * 1000; i++) s += i ^ (s >> 3);
    return s;
}
__attribute__((noinline)) long light(void) { return work(200) + 1; }
__attribute__((noinline)) long heavy(void) { return work(600) + 1; }
int main(void) {
    for (int i = 0; i < 40; i++) {
        char *p = malloc(1000);
        sink += heavy() + light() + (long)p % 7;
        if (i % 2) free(p);
    }
    return 0;
}
"""


@pytest.fixture
def read(tmp_path: Path) -> Reader:
    """Reads files with an importer."""
    return Reader(tmp_path)


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Compiles a program that works, with these options."""
    folder = tmp_path_factory.mktemp("program")

    def build(*options: str) -> Path:
        compiler = needed("cc")
        (folder / "prog.c").write_text(PROGRAM)
        path = folder / ("prog" + "".join(options))
        subprocess.run(
            [compiler, "-g", "-O1", "-fno-omit-frame-pointer", *options, "prog.c", "-o", str(path)],
            cwd=folder, check=True,
        )  # fmt: skip
        return path

    return build
