"""The page on JSON names every key that the answers have."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "json.md").read_text("utf-8")
DATA = {"profiles"}
"""Keys whose mappings have keys of the data, such as types of profiles."""


def keys_of(answer: Any) -> Iterator[str]:
    if isinstance(answer, dict):
        for key, value in answer.items():
            yield key
            if key not in DATA:
                yield from keys_of(value)
    elif isinstance(answer, list):
        for item in answer:
            yield from keys_of(item)


@pytest.mark.parametrize(
    ("verb", "schema"),
    [
        (("status", "--json"), "perun.status/2"),
        (("log", "--json"), "perun.log/2"),
        (("check", "head", "--json"), "perun.check/1"),
        (("check", "all", "--json"), "perun.check/1"),
        (("config", "get", "vcs.type", "--json"), "perun.core.config/1"),
        (("fsck", "--json"), "perun.fsck/1"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_every_key_is_documented(perun, project, verb, schema):
    perun("collect", "-c", "sleep 0.01", "time", "-r", "2", "-w", "0")
    perun("add", "0@p")
    project.commit("slower")
    perun("collect", "-c", "sleep 0.01", "time", "-r", "1", "-w", "0")
    perun("add", "0@p", "--keep-profile")
    answer = perun(*verb).json
    assert answer["schema"] == schema
    assert f"## `{schema}`" in PAGE
    missing = {key for key in keys_of(answer) if key != "schema" and f"`{key}`" not in PAGE}
    assert not missing
