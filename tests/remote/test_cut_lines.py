"""Connections that are cut, or slow: what was under way is tried again, and an answer is never made up."""

import os
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from members import here, measure, member
from servers import Line, git, git_server, line_to

from perun.core.errors import RemoteError
from perun.sharing import transfer
from perun.store.remote.contract import Remote
from perun.store.remote.opening import opened
from perun.store.remote.reading import RemoteReader

CONTENT = random.Random(1).randbytes(307_200)
MIDDLE = 100_000


class Lined(NamedTuple):
    """The same remote, once by a line and once without."""

    by_line: Remote
    direct: Remote


SLOW = [pytest.param(one, marks=pytest.mark.slow) for one in ("postgresql", "git")]


@pytest.fixture(params=["s3", *SLOW])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


@pytest.fixture
def url(kind: str, new_url: Callable[[str], str]) -> str:
    return new_url(kind)


@pytest.fixture
def line(kind: str, url: str, tmp_path: Path, stack: ExitStack) -> Line:
    """A line to the server of the remote."""
    parts = urlsplit(url)
    if kind == "git":
        git("-C", str(tmp_path / "server.git"), "config", "receive.unpackLimit", "1")
        return stack.enter_context(line_to(stack.enter_context(git_server(tmp_path))))
    if kind == "postgresql":
        return stack.enter_context(line_to(f"{parse_qs(parts.query)['host'][0]}/.s.PGSQL.5432"))
    port = urlsplit(parse_qs(parts.query)["endpoint"][0]).port
    assert port
    return stack.enter_context(line_to(port))


@pytest.fixture
def remotes(kind: str, url: str, line: Line, tmp_path: Path, stack: ExitStack, monkeypatch) -> Lined:
    for module in ("cloud", "git", "sql"):
        monkeypatch.setattr(f"perun.store.remote.{module}._PAUSE", 0.01)
    by_line = url
    if kind == "git":
        git("-C", str(tmp_path), "remote", "add", "line", f"git://127.0.0.1:{line.port}/server.git")
        by_line = "git:line"
    elif kind == "postgresql":
        options = parse_qs(urlsplit(url).query)
        found = f"options={quote(options['options'][0])}&user={options['user'][0]}"
        by_line = f"postgresql://127.0.0.1:{line.port}/postgres?{found}"
    else:
        endpoint = parse_qs(urlsplit(url).query)["endpoint"][0]
        by_line = url.replace(endpoint, f"http://127.0.0.1:{line.port}")
    made = [opened(one, folder=tmp_path, environ=os.environ) for one in (by_line, url)]
    for one in made:
        stack.callback(one.close)
    return Lined(*made)


def test_a_piece_is_put_where_the_line_is_cut_in_the_middle(remotes: Lined, line: Line) -> None:
    by_line, direct = remotes
    line.sent = [MIDDLE, MIDDLE]
    assert by_line.put("packs/aa", CONTENT) and direct.get("packs/aa") == CONTENT
    assert line.connections >= 3


def test_a_piece_is_fetched_where_the_line_is_cut_in_the_middle(remotes: Lined, line: Line) -> None:
    by_line, direct = remotes
    direct.put("packs/aa", CONTENT)
    line.received = [MIDDLE, MIDDLE]
    assert by_line.get("packs/aa") == CONTENT and line.connections >= 3


def test_a_lost_answer_makes_no_second_piece(remotes: Lined, line: Line) -> None:
    """Wherever the answer is cut: at first, while it connects, or behind all that it says."""
    by_line, direct = remotes
    for number, received in enumerate((0, 100, 400, 700, 1000, 1500)):
        by_line.close()
        line.received = [received]
        by_line.put(f"packs/{number}", CONTENT)
        assert direct.get(f"packs/{number}") == CONTENT
    assert [one.key for one in direct.list("packs/")] == [f"packs/{number}" for number in range(6)]


def test_a_lost_answer_to_a_change_is_never_a_no(remotes: Lined, line: Line) -> None:
    """Whether the head changed, the server knows; that it did not would be a lie."""
    by_line, direct = remotes
    before: bytes | None = None
    for number, received in enumerate((0, 100, 400, 700, 1000, 1500)):
        by_line.close()
        line.received = [received]
        after = b"%d" % number
        try:
            answer = by_line.replace("heads/gc", after, before)
        except RemoteError:
            answer = None
        now = direct.get("heads/gc") if list(direct.list("heads/")) else None
        assert now == after or (answer is None and now == before)
        assert answer is not False
        before = now


@pytest.mark.parametrize("kind", ["s3"], indirect=True)
@pytest.mark.parametrize("before", [None, b"1"])
def test_a_change_is_sent_once(remotes: Lined, line: Line, before: bytes | None) -> None:
    by_line, direct = remotes
    if before is not None:
        direct.replace("heads/gc", before, None)
        line.received.append(None)  # it is read first
    line.received.append(0)
    with pytest.raises(RemoteError, match="heads/gc cannot be written"):
        by_line.replace("heads/gc", b"2", before)
    assert line.connections == (1 if before is None else 2) and direct.get("heads/gc") == b"2"


def test_a_line_that_stays_cut_is_named(remotes: Lined, line: Line) -> None:
    by_line, direct = remotes
    line.left = MIDDLE
    with pytest.raises(RemoteError, match="packs/aa"):
        by_line.put("packs/aa", CONTENT)
    assert list(direct.list("packs/")) == []


@pytest.mark.slow
def test_a_push_and_a_pull_go_on_where_the_line_was_cut(remotes, line, tmp_path: Path, monkeypatch) -> None:
    """Each attempt sends one pack or two, of ten; each fetches as much as fits."""
    by_line, direct = remotes
    monkeypatch.setattr("perun.store.remote.pack.TARGET", 30_000)
    writer, reader = member(tmp_path / "writer"), member(tmp_path / "reader")
    rng = random.Random(2)
    for number in range(30):
        measure(writer, number, rng.randbytes(10_000).hex().encode())
    attempts = 0
    for verb, who, way in (("push", writer, 0), ("pull", reader, 1)):
        assert attempts < 50
        while True:
            attempts += 1
            by_line.close()
            before = line.passed[way]
            line.left = 100_000 if way == 0 else None
            line.received = [] if way == 0 else [None if number % 3 else 50_000 for number in range(40)]
            with suppress(RemoteError):
                getattr(transfer, verb)(who, by_line)
                break
            assert line.passed[way] > before
        line.left, line.received = None, []
    assert attempts > 3 and here(reader) == here(writer)
    needed = RemoteReader(direct).refresh().needed()
    assert {f"packs/{name}" for name in needed} == {one.key for one in direct.list("packs/")}


def test_a_slow_line_is_enough(remotes: Lined, line: Line) -> None:
    by_line, _direct = remotes
    line.slow = True
    assert by_line.put("packs/aa", CONTENT[:60_000])
    assert by_line.get("packs/aa") == CONTENT[:60_000]
    assert line.passed[0] > 60_000 and line.passed[1] > 60_000
