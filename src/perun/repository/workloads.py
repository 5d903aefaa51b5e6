"""Workloads of jobs: those that are written, and those that generators make of a name (manual 7.4).

Everything is generated before the first job runs, once for all versions, so that they get the same. Files
that are generated lie in `.perun/tmp/workloads`, in a folder named after what they hold: they have the same
paths in every run, and a file that a measured program has changed is detected and generated again.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from perun.core.config import schema
from perun.core.config.layers import item_place
from perun.core.config.schema import is_true
from perun.core.errors import ConfigError, PerunError, PluginError
from perun.plugin.api import GenerateContext, Run, Workload
from perun.plugin.loading import errors_of
from perun.plugin.params import from_mapping
from perun.profile import incomplete
from perun.repository.copies import scratch_folder
from perun.repository.repository import PERUN_FOLDER, Repository

if TYPE_CHECKING:
    from perun.profile.factory import Profile

FOLDER: Final = "workloads"
LIMIT: Final = 10_000
"""Workloads that one generator may make; more are taken for a mistake."""
KEY: Final = "generators.workload"
FIELD: Final = "workload"
"""The key that resources of a merged profile have."""
_GENERIC: Final = ("id", "type", "profile_for_each_workload", "seed")
_CHUNK: Final = 1 << 20


@dataclass(frozen=True)
class Input:
    """One generated workload: `text` as a command gets it; `amount` marks the resources of it."""

    text: str
    amount: float | str


@dataclass(frozen=True)
class Generated:
    """What a generator made for one job: one input, or all of them where their resources are merged.

    `content` tells inputs from others of the same generator, with other settings.
    """

    generator: str
    type: str
    seed: int
    merged: bool
    content: str
    inputs: tuple[Input, ...] = field(repr=False)

    def describe(self) -> dict[str, Any]:
        """What a profile says of it."""
        return {"generator": self.generator, "type": self.type, "seed": self.seed, "content": self.content}


@dataclass(frozen=True)
class NamedWorkload:
    """The workload of a job: its name, and what was generated for it, if anything."""

    name: str
    generated: Generated | None = None


def expand(
    repo: Repository, texts: Iterable[str], seed: int | None = None, *, separate: bool = False
) -> list[NamedWorkload]:
    """The workloads that the texts stand for: one that is the id of a generator for all that it generates.

    `< id` gives each generated file as standard input.

    :param seed: of all generators, before the seed of each in the configuration.
    :param separate: as if all of them were configured with `profile_for_each_workload`.
    :raises ConfigError: names file and line of a generator that is wrong.
    :raises PluginError: if it is of a type that there is not.
    :raises JobFailed: if a program that writes workloads fails.
    """
    known = _Generators(repo)
    return [load for text in texts for load in _expanded(repo, known, text, seed, separate)]


def generators(repo: Repository) -> Collection[str]:
    """The ids of all generators of workloads."""
    return _Generators(repo).settings.keys()


def _expanded(
    repo: Repository, known: _Generators, text: str, seed: int | None, separate: bool
) -> list[NamedWorkload]:
    start, name = _parts(text)
    if name not in known.settings:
        return [NamedWorkload(text)]
    if known.is_configured(name):
        repo.require_trust(f"generating workloads by {name!r}")
    with known.naming_place(name):
        settings = known.settings[name]
        merged = not (separate or is_true(settings.get("profile_for_each_workload", False)))
        return list(_generate(repo, settings, start, seed, merged))


def _parts(text: str) -> tuple[str, str]:
    stripped = text.strip()
    if stripped.startswith("<") and not stripped.startswith("<<"):
        return "< ", stripped[1:].strip()
    return "", stripped


class _Generators:
    """The generators of the configuration by their ids, the nearest of each; the built-in ones always."""

    def __init__(self, repo: Repository) -> None:
        self._config = repo.config
        self.settings: dict[str, Mapping[str, Any]] = {}
        self._positions: dict[str, int] = {}
        for position, one in enumerate(repo.config.gather(KEY)):
            if self.settings.setdefault(str(one["id"]), one) is one:
                self._positions[str(one["id"])] = position
        for one in schema.KEYS[KEY].default:
            self.settings.setdefault(str(one["id"]), one)

    def is_configured(self, name: str) -> bool:
        """Whether a file names the generator, so that it is not built in."""
        return name in self._positions

    @contextmanager
    def naming_place(self, name: str) -> Iterator[None]:
        """Errors name the generator, and the file and line where it is configured."""
        try:
            yield
        except PerunError as problem:
            place = "built in"
            if name in self._positions:
                place = item_place(self._config, KEY, self._positions[name], problem.message)
            what = f"{place}: workload generator {name!r}: {problem.message}"
            raise type(problem)(what, problem.hint) from None


def _generate(
    repo: Repository, settings: Mapping[str, Any], start: str, given_seed: int | None, merged: bool
) -> Iterator[NamedWorkload]:
    name, type_ = str(settings["id"]), str(settings.get("type"))
    seed = _seed(settings) if given_seed is None else given_seed
    try:
        plugin = repo.registry.get("workload", type_)
    except PluginError as problem:
        raise PluginError(f"type: {problem.message}", problem.hint) from None
    own = {key: value for key, value in settings.items() if key not in _GENERIC}
    params = from_mapping(plugin.Params, own, f"type {type_}")
    made, content = _made(repo, name, plugin, params, seed)
    for workload in made:
        _check(start, workload)
    if merged:
        inputs = tuple(_input(start, workload) for workload in made)
        yield NamedWorkload(start + name, Generated(name, type_, seed, True, content, inputs))
        return
    for workload in made:
        label = f"{name}/{workload.value}" if workload.file else workload.value
        inputs = (_input(start, workload),)
        yield NamedWorkload(start + label, Generated(name, type_, seed, False, content, inputs))


def _seed(settings: Mapping[str, Any]) -> int:
    seed = settings.get("seed", 0)
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise ConfigError(f"seed must be a whole number, not {seed!r}")
    return seed


def _input(start: str, workload: Workload) -> Input:
    text = shlex.quote(str(workload.file)) if workload.file else workload.value
    return Input(start + text, workload.value if workload.size is None else workload.size)


def _check(start: str, workload: Workload) -> None:
    """Whether the workload can be passed to a command: better now than when its job runs."""
    Run("x", workload=_input(start, workload).text).command()


def _made(repo: Repository, name: str, plugin: Any, params: Any, seed: int) -> tuple[list[Workload], str]:
    """The workloads, their files where they stay, and a checksum of it all."""
    with scratch_folder(repo) as scratch:
        folder = scratch / "files"
        folder.mkdir()
        context = GenerateContext(folder, seed, repo.working_root, repo.environ)
        with errors_of(plugin, f"the workload generator {name!r}", PluginError):
            made = list(islice(plugin.generate(params, context), LIMIT + 1))
        if not made:
            raise ConfigError("it generates no workload")
        if len(made) > LIMIT:
            raise ConfigError(f"it generates more than {LIMIT} workloads", "make the step larger")
        content = _checksum([(one.value, one.size) for one in made], files_of(folder))
        if any(workload.file for workload in made):
            home = repo.root / PERUN_FOLDER / "tmp" / FOLDER / f"{_safe(name)}-{checksum_of(folder)}"
            _move_into_place(folder, home, scratch)
            made = [_moved(workload, folder, home) for workload in made]
    return made, content


def _safe(name: str) -> str:
    return re.sub(r"[^-\w]", "_", name)


def _move_into_place(folder: Path, home: Path, scratch: Path) -> None:
    """Move the folder to `home`, unless just that is there already."""
    home.parent.mkdir(exist_ok=True)
    if home.exists():
        if home.name.endswith(f"-{checksum_of(home)}"):
            return
        home.rename(scratch / "spoiled")
    try:
        folder.rename(home)
    except OSError:
        if not home.is_dir():  # another run was quicker
            raise


def _moved(workload: Workload, folder: Path, home: Path) -> Workload:
    if workload.file is None:
        return workload
    return workload._replace(file=home / workload.file.relative_to(folder))


def checksum_of(folder: Path) -> str:
    """What the name of a folder with generated files ends with, after a dash."""
    return _checksum([], files_of(folder))


def files_of(folder: Path) -> list[tuple[str, Path]]:
    """The files of the folder, each with its name in there."""
    return sorted((path.relative_to(folder).as_posix(), path) for path in folder.rglob("*") if path.is_file())


def _checksum(values: Sequence[tuple[str, float | None]], files: Sequence[tuple[str, Path]]) -> str:
    digest = hashlib.sha256(repr(values).encode("utf-8", "surrogateescape"))
    for name, path in files:
        digest.update(f"\0{name}\0{path.stat().st_size}\0".encode("utf-8", "surrogateescape"))
        with path.open("rb") as file:
            while piece := file.read(_CHUNK):
                digest.update(piece)
    return digest.hexdigest()[:12]


def merge(profiles: Iterable[tuple[Input, Profile]]) -> Profile:
    """One profile with the resources of all, each with the key `workload`; the rest is that of the first,
    but that it is incomplete where any of them is.

    The key holds the size of the workload where its generator knows one, so that models of amounts depending
    on it can be made; else the workload itself.
    """
    merged: Profile | None = None
    for one, profile in profiles:
        resources = [{**resource, FIELD: one.amount} for _, resource in profile.all_resources()]
        if merged is None:
            merged = profile
            merged.update_resources(resources, columns=(FIELD,), replace=True)
        else:
            merged.update_resources(resources, columns=(FIELD,))
            incomplete.mark(merged, incomplete.reasons_of(profile))
    assert merged is not None
    return merged
