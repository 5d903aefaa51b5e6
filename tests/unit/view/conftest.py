"""Profiles that views are tried with, and what a page holds."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import profiles
from perun.profile.factory import Profile


@pytest.fixture
def profile_of() -> Callable[..., Profile]:
    """A profile with the given resources: `profile_of([{"uid": "f", "amount": 1}], models=[...])`."""

    def make(resources: list[dict[str, Any]], **regions: Any) -> Profile:
        named = {"args": "-v", "workload": "in.txt", "collector": "trace"}
        return profiles.profile_of(resources, "mixed", "us", **named, **regions)

    return make


@pytest.fixture
def charts_in() -> Callable[[Path], list[dict[str, Any]]]:
    """The charts that a page holds, with their Bokeh documents."""

    def read(path: Path) -> list[dict[str, Any]]:
        text = path.read_text("utf-8")
        (block,) = re.findall(r'<script type="application/json" id="charts">(.*?)</script>', text)
        found: list[dict[str, Any]] = json.loads(block)
        return found

    return read
