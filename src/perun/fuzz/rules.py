"""The rules that make a new input from another one, and which of them are for a file (manual 9.2, 9.4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Literal, NamedTuple

Kind = Literal["text", "binary", "domain", "regex", "dictionary", "splice"]
Mutation = Callable[[bytes, Random, Sequence[bytes]], bytes | None]


class Rule(NamedTuple):
    """One way to change an input.

    :ivar label: what the manual calls it, e.g. `T.1`; unique among the rules of a file.
    :ivar name: that of its function.
    :ivar description: one line, shown after fuzzing.
    :ivar apply: `apply(data, random, corpus)` returns the new input, None if there is nothing to change in
        this one; the same for the same state of `random`.
    """

    label: str
    name: str
    description: str
    kind: Kind
    apply: Mutation


def for_seed(
    seed: bytes, path: Path, regex_rules: Path | None = None, *, dictionary: Path | None = None
) -> list[Rule]:
    """The rules for inputs like a seed: by its content, and by its name where the content says little.

    :param regex_rules: a YAML file of patterns and replacements.
    :param dictionary: a file of words that mean something to the program, one per line.
    :raises UsageError: if one of the files is wrong; names its line.
    """
    return []


def mutate(rule: Rule, data: bytes, random: Random, corpus: Sequence[bytes], limit: int) -> bytes | None:
    """A new input of at most `limit` bytes; what is longer is cut. None if the rule changes nothing."""
    made = rule.apply(data, random, corpus)
    if made is None:
        return None
    made = made[:limit]
    return None if made == data else made
