"""`perun fuzz --keep`: results become workloads of the job matrix, so that each later version is measured on
them.

They are copied to `.perun/workloads/fuzz`, where no checkout of another version removes them. A generator of
the type `files` gives them to the jobs, under names that are the same on each machine.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from perun.core import atomic
from perun.core.errors import UsageError
from perun.core.process.command import split
from perun.core.regular import read_regular
from perun.core.wording import listed
from perun.fuzz import results
from perun.fuzz.coverage.api import PLACE
from perun.fuzz.results import FAULT, HANG, SLOW, Campaign, Result
from perun.repository.jobs import Job, PluginConfig
from perun.repository.repository import KEPT_INPUTS, PERUN_FOLDER, Repository
from perun.running.bench import plan
from perun.running.bench.plan import Benchmark, SettingChange
from perun.running.fuzz.options import FuzzOptions, trusted

ID: Final = "fuzz"
"""The workload of the job matrix that stands for all of them."""
BEST: Final = 10
"""Results that are kept where the user names none: the best slow ones."""
_KEY: Final = "generators.workload"
_LONGEST: Final = 100
LARGEST: Final = 1 << 30


class KeptFile(NamedTuple):
    """A workload: its name, the result that it comes from, and whether it is new."""

    name: str
    result: str
    kind: str
    is_new: bool


class KeptResults(NamedTuple):
    """What was done.

    :param folder: where the files are. :param files: all that were asked for.
    :param settings: what was added to the job matrix; nothing where it was there. :param notes: for the user.
    """

    folder: Path
    files: tuple[KeptFile, ...]
    settings: tuple[SettingChange, ...]
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """As JSON objects."""
        return {
            "schema": "perun.fuzz.keep/1",
            "folder": str(self.folder),
            "files": [one._asdict() for one in self.files],
            "settings": [one._asdict() for one in self.settings],
            "notes": [*self.notes],
        }


def keep(repo: Repository, folder: Path, names: Sequence[str] = ()) -> KeptResults:
    """Make workloads of results.

    The smallest form of a result is kept where there is one. Nothing is overwritten: another content under a
    name that is taken gets a number.

    :param folder: of a campaign. :param names: of results, as paths in the folder or as names of files; the
        best slow ones where there are none.
    :raises ProfileError: if the folder holds no results.
    :raises UsageError: if there is no such result, or the job matrix cannot express the command.
    :raises ConfigError: if the configuration cannot be changed.
    :raises NotTrusted: if the user did not begin the campaign, and has not said that he trusts it.
    """
    campaign = results.load(folder)
    chosen = choose(campaign, folder, names) if names else campaign.of_kind(SLOW)[:BEST]
    if not chosen:
        raise UsageError(f"{folder} holds no slow input", "name a hang or a fault with --result NAME")
    contents = [_content(folder, one) for one in chosen]
    # What is written into the configuration is trusted there.
    options = trusted(repo, folder, campaign.settings, "making workloads of results")
    start = "< " if options.input == "stdin" else ""
    wanted = _settings(repo, options, start)
    home = repo.root / PERUN_FOLDER / KEPT_INPUTS
    with repo.store.lock():
        home.mkdir(parents=True, exist_ok=True)
        files = tuple(_copied(home, one, data) for one, data in zip(chosen, contents, strict=True))
    plan.write(repo, wanted)
    return KeptResults(home, files, tuple(wanted), tuple(_notes(chosen)))


def choose(campaign: Campaign, folder: Path, names: Sequence[str]) -> list[Result]:
    """The results that the user names, in the order of the campaign.

    :raises UsageError: where there is none of a name.
    """
    known: dict[str, Result] = {}
    for one in campaign.results:
        for name in (one.file, Path(one.file).name):
            known.setdefault(name, one)
    for name in names:
        if name not in known:
            there = listed([one.file for one in campaign.results]) or "none"
            raise UsageError(f"{folder} holds no result {name!r}", f"there are: {there}")
    wanted = {known[name].file for name in names}
    return [one for one in campaign.results if one.file in wanted]


def _content(folder: Path, one: Result) -> bytes:
    path = folder / (one.minimized or one.file)
    try:
        return read_regular(path, LARGEST)
    except OSError as problem:
        hint = "name the others with --result NAME"
        raise UsageError(f"{path} cannot be read: {problem.strerror}", hint) from None


def _copied(home: Path, one: Result, data: bytes) -> KeptFile:
    """The result as a file of `home`: the one that has its content, or a new one."""
    name = safe_name(Path(one.file).name)
    stem, dot, suffix = name.rpartition(".")
    stem, end = (stem, f".{suffix}") if dot and stem else (name, "")
    for candidate in _names(stem, end):
        path = home / candidate
        if not os.path.lexists(path):
            atomic.write(path, data)
            return KeptFile(candidate, one.file, one.kind, True)
        if _holds(path, data):
            return KeptFile(candidate, one.file, one.kind, False)
    raise AssertionError("unreachable: names do not end")


def _names(stem: str, end: str) -> Iterator[str]:
    yield stem + end
    number = 2
    while True:
        yield f"{stem}-{number}{end}"
        number += 1


def _holds(path: Path, data: bytes) -> bool:
    try:
        return read_regular(path, LARGEST) == data
    except OSError:
        return False


def safe_name(name: str) -> str:
    """The name with letters, digits, `.`, `-` and `_` alone, not hidden, and of at most 100 characters; what
    is changed gets a checksum, so that two names stay two."""
    safe = re.sub(r"[^A-Za-z0-9._-]", "_", name).lstrip("._-") or "input"
    if safe == name and len(name) <= _LONGEST:
        return name
    stem, dot, suffix = safe.rpartition(".")
    mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    if dot and len(suffix) <= 10:
        return f"{stem[: _LONGEST - 20]}-{mark}.{suffix}"
    return f"{safe[: _LONGEST - 20]}-{mark}"


def _settings(repo: Repository, options: FuzzOptions, start: str) -> list[SettingChange]:
    """What the configuration lacks to measure the command with these workloads.

    :raises UsageError: where the job matrix cannot express it.
    """
    name, generators = _generator(repo, options)
    job = Job(_command(options), "", start + name, PluginConfig("time", None))
    added = plan.additions(repo, [Benchmark(str(job), job, {})], "--keep")
    return [*generators, *added]


def _generator(repo: Repository, options: FuzzOptions) -> tuple[str, list[SettingChange]]:
    """The id of the generator that gives the files to jobs, and the setting that adds it where it lacks."""
    home = repo.root / PERUN_FOLDER / KEPT_INPUTS
    wanted: dict[str, Any] = {
        "type": "files",
        "path": os.path.relpath(home, repo.working_root),
        "profile_for_each_workload": True,
    }
    if options.input == "argument":
        wanted["content"] = True
    taken: dict[str, Any] = {}
    for one in repo.config.gather(_KEY):
        taken.setdefault(str(one["id"]), {key: value for key, value in one.items() if key != "id"})
    for name in _names(ID, ""):
        if taken.get(name) == wanted:
            return name, []
        if name not in taken:
            made: Mapping[str, Any] = {"id": name, **wanted}
            return name, [SettingChange(_KEY, [made], f"{name} (the files of {wanted['path']})")]
    raise AssertionError("unreachable: names do not end")


def _command(options: FuzzOptions) -> str:
    """The command and its arguments, without the place of the input at the end.

    :raises UsageError: where the input is not the last argument.
    """
    whole = " ".join(filter(None, (options.cmd, options.args)))
    words = split("command", whole)
    if words and words[-1] == PLACE:
        whole = whole.rstrip().removesuffix(PLACE).rstrip()
        words = words[:-1]
    if any(PLACE in word for word in words):
        raise UsageError(
            f"--keep: the job matrix puts a workload at the end of a command, and {whole!r} has it elsewhere",
            "make a script that takes the input last, and fuzz that",
        )
    return whole


def _notes(chosen: Sequence[Result]) -> Iterator[str]:
    for kind, what in ((HANG, "stop their jobs after execute.timeout"), (FAULT, "make their jobs fail")):
        files = [one.file for one in chosen if one.kind == kind]
        if files:
            yield f"{listed(files)}: {kind}s {what} while the program is not repaired"
