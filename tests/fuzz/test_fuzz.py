"""Whatever bytes a reader gets: a value or the documented error, in bounded memory and time, nothing else."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from readers import CORPUS_OF, READERS

from perun.core.errors import PerunError

CORPUS = Path(__file__).parents[1] / "data" / "corpus"
QUICK = 25
THOROUGH = 100_000 // len(READERS) + 1
"""Inputs for each reader, in `make test` and in `make test-all`."""
TOKENS = [
    b"", b"\0", b"\n", b" ", b"null", b"NaN", b"Infinity", b"-1", b"0", b"1e999", b"9" * 400, b"true", b'"',
    b"{", b"}", b"[", b"]", b"[" * 3000, b'{"a":' * 3000, b"\\ud800", b"\xff", b"\xed\xa0\x80",
    b"\xef\xbb\xbf", b"\x7f\xff\xff\xff", b"\xff" * 8, b"\x00" * 64, b"..", b"/", b"../" * 8, b"&a [*a]",
    b"*a", b"!!python/object:os.system", b"%0A", b"~" * 70
]  # fmt: skip
"""What parsers stumble over."""


def seeds(name: str) -> list[bytes]:
    """The corpus of a reader."""
    folder = CORPUS / CORPUS_OF.get(name, name)
    return [path.read_bytes() for path in sorted(folder.iterdir())]


def edited(data: bytes, edits: list[tuple[str, float, float, bytes]]) -> bytes:
    """`data` after some edits, each at a place from 0 to 1."""
    for how, place, length, token in edits:
        at = int(place * len(data))
        end = min(len(data), at + 1 + int(length * 16))
        if how == "cut":
            data = data[:at]
        elif how == "drop":
            data = data[:at] + data[end:]
        elif how == "insert":
            data = data[:at] + token + data[at:]
        elif how == "overwrite":
            data = data[:at] + token + data[at + len(token) :]
        elif how == "flip" and data:
            at = min(at, len(data) - 1)
            data = data[:at] + bytes([data[at] ^ (1 << int(length * 7.99))]) + data[at + 1 :]
        elif how == "repeat":
            data = data[:end] + data[at:end] * 3 + data[end:]
    return data


def mutated(name: str) -> st.SearchStrategy[bytes]:
    """Seeds of the corpus with a few edits; now and then any bytes at all."""
    part = st.floats(0, 1, exclude_max=True)
    token = st.sampled_from(TOKENS) | st.binary(max_size=8)
    hows = st.sampled_from(["flip", "overwrite", "insert", "drop", "cut", "repeat"])
    edits = st.lists(st.tuples(hows, part, part, token), min_size=1, max_size=6)
    return st.builds(edited, st.sampled_from(seeds(name)), edits) | st.binary(max_size=200)


def test_every_reader_has_a_corpus() -> None:
    assert {CORPUS_OF.get(name, name) for name in READERS} == {path.name for path in CORPUS.iterdir()}
    assert sum(path.stat().st_size for path in CORPUS.rglob("*")) < 1 << 20


@pytest.mark.parametrize("name", READERS)
def test_the_corpus(name: str, read: Callable[[str, bytes], object]) -> None:
    answers = [read(name, data) for data in seeds(name)]
    # Were everything refused, edits of it would not get far either.
    assert name == "object" or any(not isinstance(answer, PerunError) for answer in answers)


def check(name: str, read: Callable[[str, bytes], object], count: int, *, always_the_same: bool) -> None:
    """Give mutated inputs to a reader."""
    limits = settings(
        max_examples=count, deadline=None, derandomize=always_the_same, database=None, print_blob=True,
        suppress_health_check=list(HealthCheck)
    )  # fmt: skip

    @limits
    @given(data=mutated(name))
    def attempt(data: bytes) -> None:
        read(name, data)

    attempt()


@pytest.mark.parametrize("name", READERS)
def test_some_mutated_inputs(name: str, read: Callable[[str, bytes], object]) -> None:
    check(name, read, QUICK, always_the_same=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_many_mutated_inputs(name: str, read: Callable[[str, bytes], object]) -> None:
    check(name, read, THOROUGH, always_the_same=False)
