"""Rules of the user: a YAML file of regular expressions and what replaces their matches (manual 9.2)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from perun.errors import UsageError
from perun.regular import read_regular

if TYPE_CHECKING:
    from ruamel.yaml.nodes import Node

LARGEST: Final = 1 << 20
"""Most bytes of a file of rules."""


class RegexRule(NamedTuple):
    """One pair of the file; `apply` is that of a rule."""

    pattern: re.Pattern[str]
    replacement: str

    @property
    def description(self) -> str:
        """The pair as the user wrote it."""
        return f"Replace /{self.pattern.pattern}/ by {self.replacement!r}."

    def apply(self, data: bytes, random: Random, corpus: Sequence[bytes]) -> bytes | None:
        """Replace one match at a random place, or all of them. Bytes that are no UTF-8 are kept."""
        text = data.decode("utf-8", "surrogateescape")
        matches = list(self.pattern.finditer(text))
        if not matches:
            return None
        chosen = matches if random.random() < 0.25 else [random.choice(matches)]
        parts, end = [], 0
        for match in chosen:
            parts += [text[end : match.start()], match.expand(self.replacement)]
            end = match.end()
        return "".join([*parts, text[end:]]).encode("utf-8", "surrogateescape")


def read_rules(path: Path, seed: bytes) -> list[RegexRule]:
    """The rules of a file; each is tried on the seed.

    :raises UsageError: if the file cannot be read, is no YAML, or a rule of it is wrong; the message names
        file and line.
    """
    rules = [_rule(path, line, pattern, replacement) for line, pattern, replacement in _pairs(path)]
    for rule in rules:
        rule.apply(seed, Random(0), ())
    return rules


def _rule(path: Path, line: int, pattern: str, replacement: str) -> RegexRule:
    try:
        compiled = re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as problem:
        raise UsageError(
            f"{path}:{line}: the regular expression {pattern!r} is wrong: {problem}",
            "write it as for Python's re module, in single quotes if YAML reads it otherwise",
        ) from None
    try:
        compiled.sub(replacement, "")
        _try_groups(compiled, replacement)
    except (re.error, IndexError) as problem:
        raise UsageError(
            f"{path}:{line}: the replacement {replacement!r} of {pattern!r} is wrong: {problem}",
            r"\1 is the first group in parentheses; write \\ for a backslash",
        ) from None
    return RegexRule(compiled, replacement)


def _try_groups(pattern: re.Pattern[str], replacement: str) -> None:
    """Apply the replacement to a match of as many groups: a file is read before there is a real one."""
    groups = "".join(f"(?P<{name}>)" if name else "()" for name in _group_names(pattern))
    match = re.match(groups, "")
    assert match is not None
    match.expand(replacement)


def _group_names(pattern: re.Pattern[str]) -> list[str]:
    names = [""] * pattern.groups
    for name, index in pattern.groupindex.items():
        names[index - 1] = name
    return names


def _pairs(path: Path) -> Iterator[tuple[int, str, str]]:
    """Line, pattern and replacement of each pair: the file is a mapping, or a list of mappings."""
    root = _compose(path)
    if root is None:
        raise UsageError(f"{path} has no rule", "write `pattern: replacement` on each line")
    for mapping in root.value if root.id == "sequence" else [root]:
        if mapping.id != "mapping":
            raise _wrong(path, mapping)
        for key, value in mapping.value:
            if key.id != "scalar" or value.id != "scalar":
                raise _wrong(path, key)
            yield key.start_mark.line + 1, key.value, value.value


def _wrong(path: Path, node: Node) -> UsageError:
    return UsageError(
        f"{path}:{node.start_mark.line + 1}: this is no rule", "write `pattern: replacement` on each line"
    )


def _compose(path: Path) -> Any:
    """The tree of the file, scalars as they are written."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        text = read_regular(path, LARGEST).decode()
        return YAML(typ="safe", pure=True).compose(text)
    except OSError as problem:
        raise UsageError(f"cannot read the rules {path}: {problem.strerror}") from None
    except UnicodeDecodeError as problem:
        raise UsageError(f"cannot read the rules {path}: byte {problem.start} is no UTF-8") from None
    except (YAMLError, RecursionError, ValueError) as problem:
        mark = getattr(problem, "problem_mark", None)
        place = f":{mark.line + 1}" if mark is not None else ""
        what = getattr(problem, "problem", None) or problem
        raise UsageError(f"{path}{place}: it is no YAML: {what}", "put patterns into single quotes") from None
