"""Histories to search."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from costs import History, make_history


@pytest.fixture
def make(tmp_path: Path, isolated_environment: Path) -> Callable[..., History]:
    """Make a history of costs: `make([1, 1, 2])`; see :func:`costs.make_history`."""
    return partial(make_history, tmp_path)
