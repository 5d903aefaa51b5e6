"""Profiles that views are tried with, and what a page holds."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perun.profile.factory import Profile


@pytest.fixture
def profile_of() -> Callable[..., Profile]:
    """A profile with the given resources: `profile_of([{"uid": "f", "amount": 1}], models=[...])`."""

    def make(resources: list[dict[str, Any]], **regions: Any) -> Profile:
        made = Profile(
            {
                "header": {
                    "type": "mixed",
                    "cmd": "./app",
                    "args": "-v",
                    "workload": "in.txt",
                    "units": {"mixed": "us"},
                },
                "collector_info": {"name": "trace", "params": {}},
                "postprocessors": [],
                **regions,
            }
        )
        made.update_resources({"type": "mixed", **resource} for resource in resources)
        return made

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
