"""What was measured and how: what lists, indexes and file names say of a profile without its resources.

Nothing heavy is imported here, as listing profiles must start at once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

HARNESSES: Final = frozenset({
    "asv", "cargo", "catch2", "go", "google_benchmark", "jmh", "mitata", "pyperf", "pytest_benchmark",
    "tinybench", "vitest",
})  # fmt: skip
"""The collectors of profiles of named benchmarks, and what their names begin with before a dot. What
`perun compare -c COMMAND -a NAME` gets of a harness that is not among them, it takes for a benchmark, too."""


class Configuration(NamedTuple):
    """What was measured and how; profiles of equal configurations may be compared (manual 8.1).

    In names of units a dash is an underscore, as both spellings mean the same plugin.
    """

    collector: str
    cmd: str
    args: str
    workload: str
    postprocessors: tuple[str, ...]

    @classmethod
    def of(
        cls, collector: str, cmd: str, args: str, workload: str, postprocessors: Iterable[str]
    ) -> Configuration:
        """The configuration with names of units in either spelling."""
        return cls(_plain(collector), cmd, args, workload, tuple(map(_plain, postprocessors)))

    @property
    def benchmark(self) -> str:
        """The name with its parameters, where it is a benchmark of a suite; else empty."""
        is_benchmark = self.collector.partition(".")[0] in HARNESSES and self.args
        return f"{self.args} {self.workload}".rstrip() if is_benchmark else ""

    @property
    def options(self) -> list[str]:
        """Those of a command that measures the same: `["-c", "./app", "-w", "in.txt"]`."""
        if self.benchmark:
            return ["--benchmark", self.benchmark]
        named = (("-c", self.cmd), ("-a", self.args), ("-w", self.workload))
        return [word for option, value in named if value for word in (option, value)]


def shortest(configurations: Iterable[Configuration]) -> dict[Configuration, str]:
    """The shortest names that tell benchmarks which are seen together apart: the program, and those words of
    its arguments and workload that not all of its benchmarks have, as `./app --fast` and `./app 1000`.

    Where words are not enough, as where one is once an argument and once a workload, what it is is named.
    """
    programs: dict[str, list[tuple[Configuration, list[str]]]] = {}
    found: dict[Configuration, str] = {}
    for one in dict.fromkeys(configurations):
        if one.benchmark:
            found[one] = one.benchmark
            continue
        program, words = _program(one)
        programs.setdefault(program, []).append((one, words))
    short = Counter(_file_name(program) for program in programs)
    for program, own in programs.items():
        name = _file_name(program) if short[_file_name(program)] == 1 else program
        common = set[str].intersection(*(set(words) for _, words in own))
        found.update({one: " ".join((name, *_differing(words, common))) for one, words in own})
    titles = Counter((one.collector, one.postprocessors, name) for one, name in found.items())
    for one, name in found.items():
        if titles[one.collector, one.postprocessors, name] > 1:
            named = (("arguments", one.args), ("workload", one.workload))
            parts = ", ".join(f"{what} {text}" for what, text in named if text)
            found[one] = f"{one.cmd} ({parts})" if parts else one.cmd
    return found


def _program(one: Configuration) -> tuple[str, list[str]]:
    """The program, of an interpreter its script, and the words behind it."""
    program, *words = f"{one.cmd} {one.args} {one.workload}".split() or [one.collector]
    if _INTERPRETER.fullmatch(program) and words and not words[0].startswith("-"):
        program, *words = words
    return program, words


def _file_name(program: str) -> str:
    """The name without its folder; `./app` is left as it is typed."""
    name = program.rpartition("/")[2]
    return program if program == f"./{name}" else name or program


def _differing(words: Sequence[str], common: Container[str]) -> Iterator[str]:
    """The words that are not common to all, each after the option that it is a value of."""
    for place, word in enumerate(words):
        following = words[place + 1] if place + 1 < len(words) else word
        is_name = word.startswith("-") and not following.startswith("-") and following not in common
        if word not in common or is_name:
            yield word


_INTERPRETER: Final = re.compile(r"(?:\S*/)?(?:python|pypy|node|ruby|perl|bash|sh)[\d.]*")


class ProfileHeader(NamedTuple):
    """The head of a profile; an empty text if the profile does not say.

    The postprocessors are in the order of their use, spelled as in the file.
    """

    type: str = ""
    cmd: str = ""
    args: str = ""
    workload: str = ""
    collector: str = ""
    postprocessors: tuple[str, ...] = ()

    @classmethod
    def of(cls, profile: Mapping[str, Any]) -> ProfileHeader:
        """The head of a profile in memory, or of its regions `header`, `collector_info`, `postprocessors`."""
        header = profile.get("header", {})
        return cls(
            type=header.get("type", ""),
            cmd=header.get("cmd", ""),
            args=header.get("args", ""),
            workload=header.get("workload", ""),
            collector=profile.get("collector_info", {}).get("name", ""),
            postprocessors=tuple(unit.get("name", "") for unit in profile.get("postprocessors", ())),
        )

    @property
    def configuration(self) -> Configuration:
        """What must be equal if two profiles are compared: everything but the type."""
        return Configuration.of(self.collector, self.cmd, self.args, self.workload, self.postprocessors)


def _plain(name: str) -> str:
    return name.replace("-", "_")
