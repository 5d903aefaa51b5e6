"""The rules that make a new input from another one, and which of them are for a file (manual 9.2, 9.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Literal, NamedTuple

from perun.errors import PluginError
from perun.fuzz import plugins
from perun.fuzz.filetype import file_type
from perun.fuzz.methods import binary, json, splicing, textfile, xml
from perun.fuzz.methods import dictionary as words
from perun.fuzz.regex_rules import read_rules

Kind = Literal["text", "binary", "domain", "regex", "dictionary", "splice"]
Mutation = Callable[[bytes, Random, Sequence[bytes]], bytes | None]
OfLines = Callable[[Sequence[bytes], Random], list[bytes] | None]
OfBytes = Callable[[bytes, Random], bytes | None]


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
    :raises PluginError: if rules of an installed package cannot be used.
    """
    kind = file_type(seed, path)
    rules = list(BINARY if kind.binary else TEXT)
    rules += XML if kind.format == "xml" else JSON if kind.format == "json" else ()
    rules += SPLICING
    rules += _of_plugins(seed, path)
    if dictionary is not None:
        rules += _of_words(dictionary)
    if regex_rules is not None:
        rules += _of_user(regex_rules, seed)
    labels = [rule.label for rule in rules]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise PluginError(
            f"two rules for {path} have the label {twice!r}", "remove one of the packages that bring them"
        )
    return rules


def mutate(rule: Rule, data: bytes, random: Random, corpus: Sequence[bytes], limit: int) -> bytes | None:
    """A new input of at most `limit` bytes; what is longer is cut. None if the rule changes nothing."""
    made = rule.apply(data, random, corpus)
    if made is None:
        return None
    made = made[:limit]
    return None if made == data else made


def _apply_to_lines(function: OfLines, data: bytes, random: Random, corpus: Sequence[bytes]) -> bytes | None:
    made = function(data.splitlines(keepends=True) or [b""], random)
    return None if made is None else b"".join(made)


def _apply_to_bytes(function: OfBytes, data: bytes, random: Random, corpus: Sequence[bytes]) -> bytes | None:
    return function(data, random)


def _apply_words(
    function: Callable[[bytes, Random, Sequence[bytes]], bytes | None], words: Sequence[bytes],
    data: bytes, random: Random, corpus: Sequence[bytes],
) -> bytes | None:  # fmt: skip
    return function(data, random, words)


def _rule(label: str, function: Callable[..., object], kind: Kind, apply: Mutation) -> Rule:
    """The rule of a function, whose docstring begins with `Rule LABEL: ` and what it does."""
    first_line = (function.__doc__ or "").partition("\n")[0]
    return Rule(label, function.__name__, first_line.removeprefix(f"Rule {label}: "), kind, apply)


def _of_lines(kind: Kind, functions: Iterable[tuple[str, OfLines]]) -> tuple[Rule, ...]:
    return tuple(_rule(label, one, kind, partial(_apply_to_lines, one)) for label, one in functions)


def _of_bytes(kind: Kind, functions: Iterable[tuple[str, OfBytes]]) -> tuple[Rule, ...]:
    return tuple(_rule(label, one, kind, partial(_apply_to_bytes, one)) for label, one in functions)


TEXT = _of_lines("text", textfile.RULES)
"""T.1 to T.15."""
BINARY = _of_bytes("binary", binary.RULES)
"""B.1 to B.6."""
XML = _of_lines("domain", xml.RULES)
"""D.1 to D.4."""
JSON = _of_bytes("domain", json.RULES)
"""J.1 to J.6."""
SPLICING = tuple(_rule(label, one, "splice", one) for label, one in splicing.RULES)
"""S.1 to S.4, for all files."""


def _of_words(path: Path) -> list[Rule]:
    found = words.read_words(path)
    return [
        _rule(label, one, "dictionary", partial(_apply_words, one, found)) for label, one in words.RULES
    ]


def _of_user(path: Path, seed: bytes) -> list[Rule]:
    return [
        Rule(f"R.{number}", f"regex_{number}", rule.description, "regex", rule.apply)
        for number, rule in enumerate(read_rules(path, seed), 1)
    ]


def _of_plugins(seed: bytes, path: Path) -> list[Rule]:
    return [
        Rule(rule.label, name, rule.description, "domain", rule.apply)
        for name, rule in plugins.installed(seed, path)
    ]
