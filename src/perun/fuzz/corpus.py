"""The inputs that are mutated: the seeds, and what raised a count."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

from perun.fuzz.compass import Compass
from perun.fuzz.intervals import choose
from perun.fuzz.results import Confirmation
from perun.fuzz.score import score
from perun.fuzz.storage import Stored

MOST: Final = 2000
"""Members from which on those are dropped that hold no count and have a low score."""
_KEPT: Final = 500
"""Members that stay for their score alone."""
_BY_SCORE: Final = 0.5
"""Share of parents that are chosen by score; the others hold a largest count."""
_STEM: Final = 80


@dataclass(eq=False)
class Member:
    """An input and what it did.

    :ivar number: in order of finding. :ivar name: of its file. :ivar content: its bytes, or where they are;
        :attr:`data` reads them. :ivar parent: the name of what it was mutated
        from, empty for a seed. :ivar seed: the name of the seed that it comes from.
    :ivar rules: labels of all rules since the seed. :ivar lines: executed lines, 0 where it did not end.
    :ivar icov: `lines` to those of the seeds. :ivar at: seconds since the beginning.
    :ivar hot: the edge that rose most against the seeds, -1 for none.
    :ivar interesting: it exceeded the threshold when it was found, so that it is to be measured.
    """

    number: int
    name: str
    content: bytes | Stored
    parent: str
    seed: str
    rules: tuple[str, ...]
    lines: int = 0
    icov: float = 0.0
    seconds: float = 0.0
    at: float = 0.0
    execution: int = 0
    hot: int = -1
    hot_ratio: float = 0.0
    interesting: bool = False
    pcr: float = 0.0
    confirmation: Confirmation | None = None
    ending: str = ""

    @property
    def data(self) -> bytes:
        """Its bytes.

        :raises OSError: if they cannot be read from where they are stored.
        """
        return self.content if isinstance(self.content, bytes) else self.content.read()

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return len(self.content) if isinstance(self.content, bytes) else self.content.size

    @property
    def score(self) -> float:
        """The fitness (manual 9.6)."""
        return score(self.icov, self.pcr)


def name_of(path: Path, data: bytes) -> str:
    """The name of the file of an input that comes from the seed `path`: `words-<32 digits>.txt` (manual 9.8).

    The digits are those of its content, so that the same input has the same name in each campaign.
    """
    digits = hashlib.blake2b(data, digest_size=16).hexdigest()
    return f"{plain(path.stem)[:_STEM] or 'seed'}-{digits}{plain(path.suffix)[:_STEM // 4]}"


def plain(name: str) -> str:
    """`name` as a part of the name of a file that can be written, and shown, everywhere."""
    text = os.fsencode(name).decode("utf-8", "replace")
    return "".join(char if char.isprintable() and char not in '/\\"' else "_" for char in text).lstrip("-")


class Corpus:
    """The members, and the choice of the next parent."""

    def __init__(self, compass: Compass) -> None:
        self._compass = compass
        self._members: dict[int, Member] = {}

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[Member]:
        return iter(self._members.values())

    def add(self, member: Member) -> None:
        """Another member, which may be chosen from now on."""
        self._members[member.number] = member
        if len(self._members) > MOST:
            self._prune()

    def choose(self, random: Random) -> Member:
        """The next parent: by its score (manual 9.7), or as often one that holds the largest count of an
        edge."""
        favoured = [number for number in self._compass.favoured if number in self._members]
        if favoured and random.random() >= _BY_SCORE:
            return self._members[random.choice(favoured)]
        return choose(list(self._members.values()), lambda one: one.score, random)

    def others(self, random: Random, count: int) -> list[bytes]:
        """Contents of some members, for rules that take parts of others."""
        members = list(self._members.values())
        return [one.data for one in random.sample(members, min(count, len(members)))]

    def _prune(self) -> None:
        kept = set(self._compass.favoured)
        best = sorted(self._members.values(), key=lambda one: (-one.score, one.number))
        kept.update(one.number for one in best[:_KEPT])
        self._members = {
            number: one for number, one in self._members.items() if number in kept or not one.parent
        }
