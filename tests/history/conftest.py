"""Histories to search."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from costs import History, make_history

from shared import conftest_of

_cli = conftest_of("cli")
command, environment, perun = _cli.command, _cli.environment, _cli.perun


@pytest.fixture
def make(tmp_path: Path, perun: Callable[..., Any]) -> Callable[..., History]:
    """Make a history of costs: `make([1, 1, 2])`; see :func:`costs.make_history`."""
    return partial(make_history, tmp_path, perun)
