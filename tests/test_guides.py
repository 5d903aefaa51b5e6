"""What the guides print is what the commands print: each page is run from its first line to its last."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import guides

ROOT = Path(__file__).parents[1]
MARK = "<!-- run by the tests -->"
SLOW = {"tutorial", "howto-cpp", "howto-find-commit", "howto-find-function", "howto-memory", "howto-python"}
"""Pages that build or record for long; the tests of the commands have what they do."""
PAGES = [page for page in sorted((ROOT / "docs").glob("*.md")) if MARK in page.read_text("utf-8")]


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.slow if page.stem in SLOW else ()) for page in PAGES],
    ids=[page.stem for page in PAGES],
)
def test_commands_of_the_page_print_what_it_says(page: Path, tmp_path: Path) -> None:
    (tmp_path / "perun").symlink_to(ROOT)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    wrong = guides.run(page, tmp_path, path)
    assert not wrong, "\n\n".join(wrong)


def test_a_line_that_is_not_printed_and_a_failure_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```console\n$ echo 12 ms; echo b\n14.5 ms\n...\nb\n$ echo a\nc\n$ false\n$ echo \\\n> d\nd\n```\n"
        "<!-- setup\nexit_code=3\n-->\n```console\n$ (exit $exit_code)\n```\n"
    )
    wrong = guides.run(page, tmp_path, os.environ["PATH"])
    assert [one.partition(" it printed")[0] for one in wrong] == [
        "page.md:6: echo a: no line is like 'c';",
        "page.md:8: false: ended with 1;",
        "page.md:17: (exit $exit_code): ended with 3;",
    ]
