"""The rules that make a new input from another one, and which of them are for a file (manual 9.2, 9.4)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from perun.core.errors import PluginError, Terminated, UsageError
from perun.core.regular import read_regular
from perun.fuzz.methods import binary, textfile
from perun.fuzz.methods import json as json_rules
from perun.plugin.api import FuzzRule
from perun.plugin.loading import failure

if TYPE_CHECKING:
    from ruamel.yaml.nodes import Node


# Rules of installed packages: entry points of the group `perun.fuzz_rules`, one for each type of files.

GROUP: Final = "perun.fuzz_rules"


def installed(seed: bytes, path: Path) -> list[tuple[str, FuzzRule]]:
    """The rules of all packages for a file, each with the name of its entry point.

    :raises PluginError: if a package cannot be loaded, or breaks its contract.
    """
    from importlib.metadata import entry_points

    return [
        (point.name, rule)
        for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value))
        for rule in _rules(point.name, point.load, seed, path)
    ]


def _rules(name: str, load: Callable[[], Any], seed: bytes, path: Path) -> list[FuzzRule]:
    on = f"the fuzzing rules {name!r}"
    try:
        loaded = load()
        plugin = loaded() if isinstance(loaded, type) else loaded
        rules = list(plugin.rules()) if plugin.accepts(seed, path) else []
    except Terminated:
        raise
    except (Exception, SystemExit) as problem:
        raise failure(on, PluginError, problem) from problem
    for rule in rules:
        if not isinstance(rule, FuzzRule) or not callable(rule.apply) or not rule.label:
            raise PluginError(
                f"{on} are not as they should be: {rule!r} is no perun.plugin.api.FuzzRule",
                "repair the plugin or remove it",
            )
    return [rule._replace(apply=_guarded(on, rule)) for rule in rules]


def _guarded(on: str, rule: FuzzRule) -> Callable[[bytes, Random, Sequence[bytes]], bytes | None]:
    """The rule's function, whose exceptions and results of other types are errors of the plugin."""

    def apply(data: bytes, random: Random, corpus: Sequence[bytes]) -> bytes | None:
        try:
            made = rule.apply(data, random, corpus)
        except Exception as problem:
            raise failure(f"{on}: {rule.label}", PluginError, problem) from problem
        if made is not None and not isinstance(made, bytes):
            raise PluginError(
                f"{on}: {rule.label} returned {type(made).__name__} instead of bytes", "repair the plugin"
            )
        return made

    return apply


# Rules of the user: a YAML file of regular expressions and what replaces their matches (manual 9.2).

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
    rules = [_regex_rule(path, line, pattern, replacement) for line, pattern, replacement in _pairs(path)]
    for rule in rules:
        rule.apply(seed, Random(0), ())
    return rules


def _regex_rule(path: Path, line: int, pattern: str, replacement: str) -> RegexRule:
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


# What kind of file a seed is, and so which rules are for it (manual 9.4).

Format = Literal["", "xml", "json"]

_XML_NAMES: Final = frozenset((".xml", ".svg", ".xhtml", ".xul", ".html", ".htm"))
_XML_BEGINNINGS: Final = (b"<?xml", b"<!doctype", b"<html", b"<svg", b"<!--")
_CONTROL: Final = frozenset(range(32)) - frozenset(b"\t\n\v\f\r\b\x1b")
_LOOKED_AT: Final = 64 * 1024
_SURE: Final = 0.5
"""Confidence of puremagic above which a file that might be text is what it says."""
_STRANGE: Final = 0.05
"""The share of control characters above which bytes in no known encoding are not text."""


class FileType(NamedTuple):
    """The kind of a file.

    :ivar mime: its MIME type, as far as it can be told.
    :ivar binary: whether the rules for binary files are for it; otherwise those for text.
    :ivar format: the format that has rules of its own.
    """

    mime: str
    binary: bool
    format: Format


def file_type(data: bytes, path: Path) -> FileType:
    """The kind of a file with this content; its name decides only what the content leaves open."""
    mime = _mime(data, path)
    if not _is_text(data):
        return FileType(mime or "application/octet-stream", True, "")
    if _is_xml(data, path, mime):
        return FileType(mime if "xml" in mime or "html" in mime else "application/xml", False, "xml")
    if _is_json(data, path):
        return FileType("application/json", False, "json")
    return FileType(mime if mime.startswith("text/") else "text/plain", False, "")


def _mime(data: bytes, path: Path) -> str:
    import puremagic

    try:
        found = puremagic.magic_string(data[:_LOOKED_AT], filename=path.name)
    except (puremagic.PureError, ValueError):
        return ""
    return next((str(one.mime_type) for one in found if one.mime_type and one.confidence >= _SURE), "")


def _is_text(data: bytes) -> bool:
    """Whether it is UTF-8 without zero bytes, or in an encoding of one byte, with few control characters."""
    start = data[:_LOOKED_AT]
    if b"\0" in start:
        return False
    try:
        start.decode()
        return True
    except UnicodeDecodeError as problem:
        if problem.start > len(start) - 4 and len(data) > len(start):  # a character was cut in two
            return True
    return sum(byte in _CONTROL for byte in start) <= _STRANGE * len(start)


def _is_xml(data: bytes, path: Path, mime: str) -> bool:
    start = data.removeprefix(b"\xef\xbb\xbf").lstrip()[:64].lower()
    if start.startswith(_XML_BEGINNINGS) or (mime.endswith("xml") and start.startswith(b"<")):
        return True
    return path.suffix.lower() in _XML_NAMES


def _is_json(data: bytes, path: Path) -> bool:
    if path.suffix.lower() == ".json":
        return True
    if data.lstrip()[:1] not in (b"{", b"["):
        return False
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True


Kind = Literal["text", "binary", "domain", "regex", "dictionary", "splice"]
Mutation = Callable[[bytes, Random, Sequence[bytes]], bytes | None]
OfLines = Callable[[Sequence[bytes], Random], list[bytes] | None]
OfBytes = Callable[[bytes, Random], bytes | None]


class MutationRule(NamedTuple):
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
) -> list[MutationRule]:
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


def mutate(
    rule: MutationRule, data: bytes, random: Random, corpus: Sequence[bytes], limit: int
) -> bytes | None:
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


def _rule(label: str, function: Callable[..., object], kind: Kind, apply: Mutation) -> MutationRule:
    """The rule of a function, whose docstring begins with `Rule LABEL: ` and what it does."""
    first_line = (function.__doc__ or "").partition("\n")[0]
    return MutationRule(label, function.__name__, first_line.removeprefix(f"Rule {label}: "), kind, apply)


def _of_lines(kind: Kind, functions: Iterable[tuple[str, OfLines]]) -> tuple[MutationRule, ...]:
    return tuple(_rule(label, one, kind, partial(_apply_to_lines, one)) for label, one in functions)


def _of_bytes(kind: Kind, functions: Iterable[tuple[str, OfBytes]]) -> tuple[MutationRule, ...]:
    return tuple(_rule(label, one, kind, partial(_apply_to_bytes, one)) for label, one in functions)


TEXT = _of_lines("text", textfile.RULES)
"""T.1 to T.15."""
BINARY = _of_bytes("binary", binary.RULES)
"""B.1 to B.6."""
XML = _of_lines("domain", textfile.XML)
"""D.1 to D.4."""
JSON = _of_bytes("domain", json_rules.RULES)
"""J.1 to J.6."""
SPLICING = tuple(_rule(label, one, "splice", one) for label, one in binary.SPLICING)
"""S.1 to S.5, for all files."""


def _of_words(path: Path) -> list[MutationRule]:
    found = binary.read_words(path)
    return [_rule(label, one, "dictionary", partial(_apply_words, one, found)) for label, one in binary.WORDS]


def _of_user(path: Path, seed: bytes) -> list[MutationRule]:
    return [
        MutationRule(f"R.{number}", f"regex_{number}", rule.description, "regex", rule.apply)
        for number, rule in enumerate(read_rules(path, seed), 1)
    ]


def _of_plugins(seed: bytes, path: Path) -> list[MutationRule]:
    return [
        MutationRule(rule.label, name, rule.description, "domain", rule.apply)
        for name, rule in installed(seed, path)
    ]
