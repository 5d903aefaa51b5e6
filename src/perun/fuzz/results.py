"""The folder of a fuzzing campaign, as data: `results.json`, which pages, `--keep` and `--replay` read.

The folder is that of the manual, section 9.8. All paths in here are relative to it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from perun.core import atomic
from perun.core.errors import ProfileError
from perun.core.regular import read_regular

FILE: Final = "results.json"
FORMAT: Final = 1
MAX_BYTES: Final = 256 * 1024 * 1024

SLOW: Final = "slow"
FAULT: Final = "fault"
HANG: Final = "hang"
KINDS: Final = (SLOW, FAULT, HANG)
FOLDERS: Final[Mapping[str, str]] = {SLOW: "", FAULT: "faults", HANG: "hangs"}
"""Where in the folder the inputs of each kind lie (manual 9.8)."""
MINIMIZED: Final = "minimized"
SEEDS: Final = "seeds"
DIFFS: Final = "diffs"
GRAPHS: Final = "graphs"
LOGS: Final = "logs"


@dataclass(frozen=True)
class Rule:
    """A rule of mutation and what it did in the campaign.

    :ivar label: as `T.10`. :ivar name: of its function. :ivar applied: mutations that it made.
    :ivar increases: those that raised the coverage. :ivar degradations: those that a test confirmed.
    """

    label: str
    name: str
    description: str
    applied: int = 0
    increases: int = 0
    degradations: int = 0


@dataclass(frozen=True)
class Confirmation:
    """What measuring a result beside its seed says.

    :ivar change: the verdict as `perun check` calls it, such as `Degradation`. :ivar ratio: of the result to
        the seed. :ivar low: and :ivar high: bounds of its confidence interval, where the method has one.
    :ivar rate: share of degradations among all changes that were found (`pcr`, manual 9.6).
    :ivar method: of check, and :ivar metric: what was measured. :ivar pairs: how many; 1 for a profile each.
    :ivar baseline: and :ivar target: seconds or what was measured, medians.
    """

    change: str
    rate: float
    method: str
    metric: str = ""
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    pairs: int = 1
    baseline: float | None = None
    target: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class Result:
    """An input that was found.

    :ivar file: its path in the folder. :ivar kind: one of :data:`KINDS`.
    :ivar parent: the file that it was mutated from: a name in the campaign, or that of the seed.
    :ivar seed: the name of the seed that it comes from. :ivar rules: labels of all rules between, in order.
    :ivar size: in bytes. :ivar lines: executed lines; None where the run did not end by itself.
    :ivar ratio: `lines` to those of the seeds (`icov`); None as `lines`.
    :ivar seconds: of one run, instrumented.
    :ivar ending: how the run ended, in words, where it was a fault or a hang.
    :ivar at: seconds since the campaign began, and :ivar execution: the number of the run that found it.
    :ivar diff: the path of its difference to the seed, as HTML. :ivar score: fitness (manual 9.6).
    :ivar hot: the edge that rose most against the seeds, and :ivar hot_ratio: by how much.
    :ivar confirmation: None where it was not measured.
    :ivar minimized: the path of its smallest form that is as slow. :ivar growth: how its cost grows with
        which pattern, as written by :mod:`perun.fuzz.growth`.
    """

    file: str
    kind: str
    parent: str
    seed: str
    rules: tuple[str, ...]
    size: int
    lines: int | None
    ratio: float | None
    seconds: float
    at: float
    execution: int
    score: float = 0.0
    ending: str = ""
    diff: str = ""
    hot: str = ""
    hot_ratio: float | None = None
    confirmation: Confirmation | None = None
    minimized: str = ""
    growth: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Point:
    """A step of a time series: seconds since the beginning, executions by then, the value from then on."""

    seconds: float
    executions: int
    value: float


@dataclass(frozen=True)
class TimeSeries:
    """A value that only rises during the campaign, by its steps."""

    points: tuple[Point, ...] = ()

    def quartiles(self) -> tuple[Point, ...]:
        """The first points at which a quarter, half and three quarters of the way from the first to the last
        value are done (manual 9.8: when each portion of the result was there)."""
        if not self.points:
            return ()
        first, last = self.points[0].value, self.points[-1].value
        limits = [first + share * (last - first) for share in (0.25, 0.5, 0.75)]
        return tuple(next(one for one in self.points if one.value >= limit) for limit in limits)


@dataclass(frozen=True)
class Seed:
    """An input that the user gave.

    :ivar name: its path as it was given. :ivar path: of its copy in the folder.
    :ivar seconds: of one run, instrumented.
    """

    name: str
    path: str
    size: int
    lines: int
    seconds: float


@dataclass(frozen=True)
class Program:
    """What was fuzzed: the command with its arguments, where it ran, and the version of the project."""

    cmd: str
    args: str
    cwd: str
    version: str = ""
    uncommitted: bool = False
    build: str = ""
    backend: str = ""


@dataclass(frozen=True)
class Campaign:
    """All that a campaign did.

    :ivar settings: every option by its long name without dashes. :ivar random_seed: repeats it.
    :ivar coverage: the best ratio so far, and :ivar degradations: how many results there were.
    :ivar results: best score first, then hangs and faults. :ivar seconds: in all, those of earlier parts of a
        resumed campaign included. :ivar ended: why it ended. :ivar base: executed lines of the seeds.
    """

    program: Program
    settings: Mapping[str, Any]
    random_seed: int
    seeds: tuple[Seed, ...]
    base: int
    results: tuple[Result, ...] = ()
    rules: tuple[Rule, ...] = ()
    coverage: TimeSeries = field(default_factory=TimeSeries)
    degradations: TimeSeries = field(default_factory=TimeSeries)
    executions: int = 0
    iterations: int = 0
    corpus: int = 0
    seconds: float = 0.0
    threshold: float = 0.0
    ended: str = ""
    perun: str = ""

    def of_kind(self, kind: str) -> tuple[Result, ...]:
        """The results of one kind, in their order."""
        return tuple(one for one in self.results if one.kind == kind)


def as_json(campaign: Campaign) -> dict[str, Any]:
    """The campaign as JSON objects, as in the file."""
    found = {"format": FORMAT, **asdict(campaign)}
    for name, series in (("coverage", campaign.coverage), ("degradations", campaign.degradations)):
        found[name]["quartiles"] = [asdict(one) for one in series.quartiles()]
    return found


def save(folder: Path, campaign: Campaign) -> Path:
    """Write `results.json`, wholly or not at all; its path.

    :raises OSError: if that cannot be done.
    """
    path = folder / FILE
    # Names of files may be no UTF-8; they are shown only, their copies have names of their own.
    text = json.dumps(as_json(campaign), indent=1, ensure_ascii=False)
    atomic.write(path, text.encode("utf-8", "replace") + b"\n")
    return path


def load(folder: Path) -> Campaign:
    """The campaign whose results lie in `folder`.

    :raises ProfileError: if there are none, or the file is not in this format.
    """
    import msgspec

    path = folder / FILE
    hint = "give the folder that perun fuzz --output-dir wrote"
    try:
        data = read_regular(path, MAX_BYTES)
        if msgspec.json.decode(data, type=_Head).format != FORMAT:
            raise ProfileError(f"{path} is of another version of Perun", "fuzz again with this one")
        found = msgspec.json.decode(data, type=Campaign)
    except FileNotFoundError:
        raise ProfileError(f"{folder} holds no {FILE}", hint) from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
        raise ProfileError(f"{path} is no result of fuzzing: {problem}", hint) from None
    _refuse_outside(path, [one.path for one in found.seeds])
    _refuse_outside(path, [name for one in found.results for name in (one.file, one.diff, one.minimized)])
    return found


@dataclass(frozen=True)
class _Head:
    format: int


def _refuse_outside(path: Path, names: Sequence[str]) -> None:
    """Raise where a path leads out of the folder, which a stranger may have written."""
    for name in names:
        if name and (Path(name).is_absolute() or ".." in Path(name).parts):
            raise ProfileError(f"{path} names {name!r}, which lies outside of its folder")
