"""Connections that are cut, or slow: what was under way is tried again, and an answer is never made up."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest
from servers import Line, line_to

from perun.errors import RemoteError
from perun.remote.contract import Remote
from perun.remote.opening import opened

CONTENT = bytes(range(256)) * 1200
MIDDLE = 100_000


@pytest.fixture
def line(s3: str) -> Iterator[Line]:
    port = urlsplit(s3).port
    assert port
    with line_to(port) as made:
        yield made


@pytest.fixture
def remotes(s3: str, line: Line, new_url: Callable[[str], str]) -> tuple[Remote, Remote]:
    """The same remote, once by the line and once without."""
    url = new_url("s3")
    direct = opened(url, environ=os.environ)
    return opened(url.replace(s3, f"http://127.0.0.1:{line.port}"), environ=os.environ), direct


def test_a_piece_is_put_where_the_line_is_cut_in_the_middle(
    remotes: tuple[Remote, Remote], line: Line
) -> None:
    by_line, direct = remotes
    line.sent = [MIDDLE, MIDDLE]
    assert by_line.put("packs/aa", CONTENT)
    assert direct.get("packs/aa") == CONTENT
    assert line.connections >= 3


def test_a_piece_is_fetched_where_the_line_is_cut_in_the_middle(
    remotes: tuple[Remote, Remote], line: Line
) -> None:
    by_line, direct = remotes
    direct.put("packs/aa", CONTENT)
    line.received = [MIDDLE, MIDDLE]
    assert by_line.get("packs/aa") == CONTENT
    assert line.connections >= 3


def test_a_lost_answer_makes_no_second_piece(remotes: tuple[Remote, Remote], line: Line) -> None:
    by_line, direct = remotes
    line.received = [0]
    by_line.put("packs/aa", CONTENT)
    assert [one.key for one in direct.list("packs/")] == ["packs/aa"]
    assert direct.get("packs/aa") == CONTENT


@pytest.mark.parametrize("before", [None, b"1"])
def test_a_lost_answer_to_a_change_is_no_answer(
    remotes: tuple[Remote, Remote], line: Line, before: bytes | None
) -> None:
    """Whether the head changed, the server knows; that it did not would be a lie."""
    by_line, direct = remotes
    if before is not None:
        direct.replace("heads/gc", before, None)
        line.received.append(None)  # it is read first
    line.received.append(0)
    with pytest.raises(RemoteError, match="heads/gc cannot be written"):
        by_line.replace("heads/gc", b"2", before)
    sent_once = line.connections
    assert sent_once == (1 if before is None else 2)
    assert direct.get("heads/gc") == b"2"


def test_a_line_that_stays_cut_is_named(remotes: tuple[Remote, Remote], line: Line) -> None:
    by_line, direct = remotes
    line.left = MIDDLE
    with pytest.raises(RemoteError, match="packs/aa cannot be written"):
        by_line.put("packs/aa", CONTENT)
    assert list(direct.list("packs/")) == []


def test_a_slow_line_is_enough(remotes: tuple[Remote, Remote], line: Line) -> None:
    by_line, _direct = remotes
    line.slow = True
    assert by_line.put("packs/aa", CONTENT[:60_000])
    assert by_line.get("packs/aa") == CONTENT[:60_000]
    assert line.passed[0] > 60_000 and line.passed[1] > 60_000
