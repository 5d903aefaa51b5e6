"""The Python examples of the manual run, and print what the manual says they do."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(page.name for page in DOCS.glob("*.md") if ">>> " in page.read_text(encoding="utf-8"))


def test_there_are_examples() -> None:
    assert "profiles.md" in PAGES


@pytest.mark.parametrize("page", PAGES)
def test_examples(page: str) -> None:
    pytest.importorskip("pandas", reason="pandas is not installed, which an example uses")
    outcome = doctest.testfile(str(DOCS / page), module_relative=False, encoding="utf-8")
    assert outcome.attempted
    assert not outcome.failed
