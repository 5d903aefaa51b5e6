"""What of an input can be repeated: patterns, and how people read them.

A pattern makes inputs of any length: something of it is there once, twice, a thousand times. Candidates come
from the input itself (what it repeats already, what is nested in brackets, its characters, words and lines),
and from its words, which may matter by their number, their order or by being different.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, Literal, NamedTuple

Kind = Literal["repeated", "nested", "different", "ascending", "descending"]

LONGEST_UNIT: Final = 64
"""Bytes of a part whose repetition is looked for."""
_SEARCHED: Final = 8192
"""Bytes of an input in which repetitions are looked for."""
_MOST: Final = 38
"""Candidates at most."""
_ALONE: Final = 3
"""Repeated parts of the input that are tried without what is around them, too."""
_SHOWN: Final = 40
"""Characters of a part that are shown."""
_NAMES: Final = {
    b" ": ("space", "spaces"),
    b"\t": ("tab", "tabs"),
    b"\n": ("empty line", "empty lines"),
    b"\r": ("carriage return", "carriage returns"),
    b"\r\n": ("empty line", "empty lines"),
    b"\0": ("zero byte", "zero bytes"),
    b"\xc2\xa0": ("no-break space", "no-break spaces"),
    b"\xe2\x80\x8c": ("zero-width non-joiner", "zero-width non-joiners"),
}
_OPENING: Final = re.compile(rb"[(\[{]|<[A-Za-z_][\w.:-]*>")
_CLOSING: Final = {b"(": b")", b"[": b"]", b"{": b"}"}
_WORD: Final = re.compile(rb"[^\s]+")
_GAP: Final = re.compile(rb"\s+")
_MARK: Final = re.compile(rb"(?<=\w)[^\w\s](?=\w)", re.ASCII)


class InputPattern(NamedTuple):
    """Inputs of any length.

    :param kind: whether `unit` is repeated; nested, with `close` behind `middle` as often; or words, of which
        each is different, or that are in ascending or descending order.
    :param before: what comes first, once; :param after: last.
    :param unit: what is repeated; of words one of them, which tells how long they are.
    :param gap: between words.
    :param times: how often it is in the input that the pattern comes from.
    """

    kind: Kind
    before: bytes
    unit: bytes
    after: bytes
    middle: bytes = b""
    close: bytes = b""
    gap: bytes = b""
    times: int = 1

    def input(self, times: int) -> bytes:
        """The input with so many repetitions."""
        if self.kind == "repeated":
            return self.before + self.unit * times + self.after
        if self.kind == "nested":
            return self.before + self.unit * times + self.middle + self.close * times + self.after
        return self.before + self.gap.join(self._words(times)) + self.after

    def _words(self, times: int) -> Iterator[bytes]:
        numbers = range(times - 1, -1, -1) if self.kind == "descending" else range(times)
        if self.unit.isdigit():
            # No zeros in front, which some programs take for the mark of an octal number.
            return (str(10 ** (len(self.unit) - 1) + number).encode() for number in numbers)
        return (_word(self.unit, number) for number in numbers)

    def size(self, times: int) -> int:
        """Bytes of :meth:`input`, about where words become longer."""
        if self.kind in ("repeated", "nested"):
            part = len(self.unit) + len(self.close)
        else:
            part = len(self.unit) + len(self.gap)
        return len(self.before) + len(self.middle) + len(self.after) + part * times

    def largest(self, size: int) -> int:
        """The number of repetitions for which the input has at most `size` bytes."""
        part = self.size(1) - self.size(0)
        return max(0, (size - self.size(0)) // part) if part else 0

    @property
    def text(self) -> str:
        """What is counted, in words: `spaces`, `letters "a"`, `different words`, `different lines`,
        `different words between ";"`, `nested "("`, `"a" and "b", as many of each`."""
        if self.kind in ("repeated", "nested"):
            if self.kind == "repeated":
                return name_of(self.unit)
            if _OPENING.fullmatch(self.unit):
                return f"nested {quoted(self.unit)}"
            return f"{quoted(self.unit)} and {quoted(self.close)}, as many of each"
        if self.kind == "different" and self.gap == b"\n":
            return "different lines"
        kind = "numbers" if self.unit.isdigit() else "words"
        said = f"different {kind}" if self.kind == "different" else f"{kind} in {self.kind} order"
        between = {b" ": "", b"\n": ", one a line"}
        return said + between.get(self.gap, f" between {quoted(self.gap)}")


def _word(like: bytes, number: int) -> bytes:
    """A word of the same letters at the beginning and as long, where that is long enough, whose end counts in
    letters: words sort as their numbers do."""
    width = max(4, len(like))
    letters = bytearray()
    for _ in range(4):
        number, digit = divmod(number, 26)
        letters.append(ord("a") + digit)
    letters.reverse()
    return like[: width - 4].ljust(width - 4, b"a") + bytes(letters)


def name_of(unit: bytes) -> str:
    """The plural of what is repeated: `spaces`, `letters "a"`, `bytes 0xff`, `repetitions of "ab"`."""
    if unit in _NAMES:
        return _NAMES[unit][1]
    if len(unit) > 1 and (inner := smallest_period(unit)) < len(unit):
        return f"{name_of(unit[:inner])}, {len(unit) // inner} at a time"
    if len(unit) == 1:
        character = chr(unit[0])
        if character.isascii() and character.isalpha():
            return f'letters "{character}"'
        if character.isascii() and character.isdigit():
            return f'digits "{character}"'
        if character.isascii() and character.isprintable():
            return f'characters "{character}"'
        return f"bytes 0x{unit[0]:02x}"
    if unit.endswith(b"\n") and unit.count(b"\n") == 1:
        return f"lines {quoted(unit[:-1])}"
    return f"repetitions of {quoted(unit)}"


def quoted(unit: bytes) -> str:
    """The part in double quotes, if it is text; else its bytes in hexadecimal. A long one is shortened."""
    try:
        text = unit.decode("utf-8")
        shown = "".join(char if char.isprintable() else _escaped(char) for char in text[: _SHOWN + 1])
    except UnicodeDecodeError:
        return f"bytes {unit[: _SHOWN // 4].hex(' ')}{' …' if len(unit) > _SHOWN // 4 else ''}"
    shown = shown.replace('"', '\\"')
    return f'"{shown[:_SHOWN]}…"' if len(shown) > _SHOWN else f'"{shown}"'


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def smallest_period(data: bytes) -> int:
    """The length of the smallest part whose repetition is `data`; its own length if there is none."""
    return (data + data).find(data, 1) if data else 0


class Repetition(NamedTuple):
    """A part of an input that is repeated: where it begins, its bytes, and how often it is there."""

    start: int
    period: int
    times: int

    @property
    def covered(self) -> int:
        """Bytes that it takes."""
        return self.period * self.times


def runs(data: bytes) -> list[Repetition]:
    """What the input repeats, what covers most of it first; only its first 8 KiB are looked at."""
    import numpy as np

    view = np.frombuffer(data[:_SEARCHED], np.uint8)
    found: dict[tuple[int, int], Repetition] = {}
    for period in range(1, min(LONGEST_UNIT, len(view) // 2) + 1):
        same = np.concatenate([[False], view[period:] == view[:-period], [False]])
        edges = np.flatnonzero(same[1:] != same[:-1])
        for start, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            times = (end - start) // period + 1
            # Two equal letters are no repetition, as those of a word.
            if times < (3 if period == 1 else 2) or smallest_period(data[start : start + period]) < period:
                continue
            run = Repetition(start, period, times)
            inside = next((one for one in found.values() if _is_inside(run, one)), None)
            if inside is None:
                found[start, period] = run
    return sorted(found.values(), key=lambda run: (-run.covered, run.period, run.start))


def _is_inside(run: Repetition, other: Repetition) -> bool:
    return other.start <= run.start and run.start + run.covered <= other.start + other.covered


def candidates(data: bytes) -> list[InputPattern]:
    """What of the input may raise the cost if it is there more often, the simplest first.

    :param data: an input, minimised if possible.
    """
    found: dict[tuple[int, int], InputPattern] = {}
    for pattern in map(_with_smallest_unit, _candidates(data)):
        key = hash(pattern.input(3)), hash(pattern.input(4))
        if pattern.unit and key not in found:
            found[key] = pattern
            if len(found) == _MOST:
                break
    return list(found.values())


def _candidates(data: bytes) -> Iterator[InputPattern]:
    repeated = runs(data)
    for run in repeated[:8]:
        yield _of_run(data, run)
    for run in repeated[:_ALONE]:
        # What is around it may cost more than all repetitions for which there is room.
        whole = _of_run(data, run)
        yield whole._replace(after=b"")
        yield whole._replace(before=b"", after=b"")
    yield from _nested(data, repeated[:6])
    yield from _of_words(data)
    yield from _once(data)


def _with_smallest_unit(pattern: InputPattern) -> InputPattern:
    if pattern.kind != "repeated" or not pattern.unit:
        return pattern
    period = smallest_period(pattern.unit)
    times = pattern.times * len(pattern.unit) // period
    return pattern._replace(unit=pattern.unit[:period], times=times)


def _of_run(data: bytes, run: Repetition) -> InputPattern:
    end = run.start + run.covered
    unit = data[run.start : run.start + run.period]
    return InputPattern("repeated", data[: run.start], unit, data[end:], times=run.times)


def _nested(data: bytes, repeated: Iterable[Repetition]) -> Iterator[InputPattern]:
    """Two parts repeated as often as each other, and each kind of bracket with its closing one."""
    ordered = sorted(repeated, key=lambda run: run.start)
    for number, one in enumerate(ordered):
        for other in ordered[number + 1 :]:
            end = one.start + one.covered
            if other.start >= end and min(one.times, other.times) * 2 > max(one.times, other.times):
                unit = data[one.start : one.start + one.period]
                close = data[other.start : other.start + other.period]
                if unit == close:
                    continue  # each of them alone says the same
                after = data[other.start + other.covered :]
                middle = data[end : other.start]
                yield InputPattern("nested", data[: one.start], unit, after, middle, close, times=one.times)
    for unit in dict.fromkeys(_OPENING.findall(data)):
        start = data.index(unit)
        yield InputPattern("nested", data[:start], unit, b"", b"", _CLOSING.get(unit, b"</" + unit[1:]))
        yield InputPattern("repeated", data[:start], unit, b"")


def _of_words(data: bytes) -> Iterator[InputPattern]:
    """Words instead of the first to the last word: different ones, in both orders, and all the same; those
    between blanks, in lines, and those between the two marks that are most often between them."""
    gaps = Counter(gap[:1] for gap in _GAP.findall(data))
    marks = Counter(_MARK.findall(data))
    lines = [b"\n"] if b"\n" in data[:-1] else []
    frequent = [gap for gap, _ in (*gaps.most_common(1), *marks.most_common(2))]
    for gap in dict.fromkeys([*frequent, *lines]):
        word = _WORD if gap.isspace() else re.compile(rb"[^\s" + re.escape(gap) + rb"]+")
        yield from _separated(data, gap, word)


def _separated(data: bytes, gap: bytes, word: re.Pattern[bytes]) -> Iterator[InputPattern]:
    words = list(word.finditer(data))
    if len(words) < 3:
        return
    texts = sorted((word.group() for word in words), key=len)
    like = texts[len(texts) // 2]
    if sum(text.isdigit() for text in texts) * 2 > len(texts):
        like = b"0" * max(4, len(like))
    before, after = data[: words[0].start()], data[words[-1].end() :]
    yield InputPattern("repeated", before, like + gap, after)
    for kind in ("different", "ascending", "descending"):
        if kind != "different" or not like.isdigit():
            yield InputPattern(kind, before, like, after, gap=gap, times=len(words))


def _once(data: bytes) -> Iterator[InputPattern]:
    """The whole input, its lines, words and characters, each where it is first."""
    yield InputPattern("repeated", b"", data, b"")
    parts = [data.splitlines(keepends=True)[:4], re.findall(rb"\w+|\s+", data)[:6]]
    parts.append([bytes((one,)) for one in dict.fromkeys(data)][:12])
    for unit in dict.fromkeys(part for some in parts for part in some):
        start = data.index(unit)
        yield InputPattern("repeated", data[:start], unit, data[start + len(unit) :])
