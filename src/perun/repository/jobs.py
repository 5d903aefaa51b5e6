"""Jobs: what is measured and how, and the job matrix they come from (manual 7.2, 7.3)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

from perun.core.config.layers import item_place
from perun.core.errors import ConfigError, PerunError, UsageError
from perun.plugin.api import Run
from perun.plugin.loading import FAMILIES
from perun.plugin.params import from_mapping
from perun.plugin.registry import Registry
from perun.repository import workloads as workloads_of_jobs
from perun.repository.repository import Repository
from perun.repository.walking import ancestors
from perun.repository.workloads import Generated

# Jobs: what is measured and how, and the job matrix they come from (manual 7.2, 7.3).

PARTS: Final[Mapping[str, Callable[[str], Run]]] = {
    "cmds": Run,
    "args": lambda text: Run("program", args=text),
    "workloads": lambda text: Run("program", workload=text),
}
"""Keys whose texts are parts of a command, with a run that has a text as that part."""


_Parts = tuple[str, str, str]
_Meaning = tuple[object, ...]
_NEAR: Final = 100
"""Versions before HEAD among which one with profiles is looked for."""


@dataclass(frozen=True)
class PluginConfig:
    """A collector or postprocessor with its parameters, already of the plugin's own type."""

    name: str
    params: Any


@dataclass(frozen=True)
class Job:
    """One configuration of the program, one collector, and what is done to the profile afterwards.

    `workload` is what the profile calls it; where it was `generated`, that says what the command gets.
    A named benchmark of a suite has the command of its harness, which stands for the collector, too, its name
    as arguments, and its parameters as workload.
    """

    cmd: str
    args: str
    workload: str
    collector: PluginConfig
    postprocessors: tuple[PluginConfig, ...] = ()
    generated: Generated | None = None
    is_benchmark: bool = field(default=False, repr=False)

    def __str__(self) -> str:
        return " ".join(part for part in (self.cmd, self.args, self.workload) if part)


class EmptyMatrix(ConfigError):
    """The job matrix has no command, or no collector."""


def matrix(repo: Repository, seed: int | None = None, *, separate: bool = False) -> list[Job]:
    """The jobs of the matrix in the local configuration: all combinations, in its order.

    :param seed: of the generators of workloads, before their own.
    :param separate: each generated workload is a job of its own, also if the configuration merges them.
    :raises PerunError: names file and line of a part that is wrong; nothing was measured then.
    """
    repo.require_trust("making the jobs of the job matrix")  # generators of workloads may be programs
    where = str(repo.root / ".perun" / "local.yml")
    cmds = texts(repo.config.get("cmds"))
    collectors = repo.config.get("collectors") or []
    units = _configured_units(repo, "collect", "collectors")
    only_sources = units and not any(needs_command(repo.registry, unit.name) for unit in units)
    for key, there in (("cmds", cmds or only_sources), ("collectors", collectors)):
        if not there:
            raise EmptyMatrix(
                f"the job matrix is empty: {key} is not set in {where}",
                "set it with: perun config edit  (or run one job with: perun run job --help)",
            )
    return combine_units(
        repo,
        cmds,
        texts(repo.config.get("args")),
        texts(repo.config.get("workloads")),
        units,
        _configured_units(repo, "postprocess", "postprocessors"),
        seed,
        separate=separate,
        for_all=True,
    )


def combine(
    repo: Repository,
    cmds: Sequence[str],
    args: Sequence[str],
    workloads: Sequence[str],
    collectors: Iterable[tuple[str, Mapping[str, Any]]],
    postprocessors: Iterable[tuple[str, Mapping[str, Any]]],
    where: str,
    seed: int | None = None,
) -> list[Job]:
    """Every command with every argument, workload and collector; units are (name, parameters).

    :param where: what to name in the message when a parameter is wrong.
    :param seed: of the generators of workloads, before their own.
    :raises PluginError: if a unit is unknown. :raises ConfigError: if a parameter is wrong.
    """
    units = [make_unit(repo, "collect", name, params, where) for name, params in collectors]
    after = [make_unit(repo, "postprocess", name, params, where) for name, params in postprocessors]
    return combine_units(repo, cmds, args, workloads, units, after, seed)


def combine_units(
    repo: Repository,
    cmds: Sequence[str],
    args: Sequence[str],
    workloads: Sequence[str],
    collectors: Sequence[PluginConfig],
    postprocessors: Sequence[PluginConfig] = (),
    seed: int | None = None,
    *,
    separate: bool = False,
    for_all: bool = False,
) -> list[Job]:
    """As :func:`combine`, of units that are made already; :func:`matrix` says what `separate` is.

    A collector that runs no command has one job, named by what it looks at: where no command is named, and
    with `for_all`, which says that commands were named for all collectors together, as in the job matrix.
    All others are named as they are known: see :func:`as_known`.
    """
    loads = workloads_of_jobs.expand(repo, workloads or [""], seed, separate=separate)
    after = tuple(postprocessors)
    made: list[Job] = []
    for cmd, arguments, load, unit in itertools.product(cmds or [""], args or [""], loads, collectors):
        subject = subject_of(repo.registry, unit) if for_all or not cmd else ""
        if not subject:
            made.append(Job(cmd, arguments, load.name, unit, after, load.generated))
        elif (job := Job(subject, "", "", unit, after)) not in made:
            made.append(job)
    return made if for_all else as_known(repo, made)


def as_known(repo: Repository, jobs: Iterable[Job]) -> list[Job]:
    """The jobs, divided into command, arguments and workload as the same command line is known already: in
    the job matrix, or in the profiles of the nearest version that has any.

    `./prog 800` as a command, and `./prog` with the workload `800`, run the same. Profiles are compared by
    the three parts (manual 8.1), so they would be two benchmarks with half of a history each.
    """
    jobs = list(jobs)
    typed = {(job.cmd, job.args, job.workload) for job in jobs if job.cmd and not job.generated}
    known: dict[_Meaning, _Parts] = {}
    for parts in _known(repo) if typed else ():
        known.setdefault(_meaning(parts), parts)
        typed.discard(parts)
        if not typed:  # the history need not be walked
            break
    names = {parts: known.get(_meaning(parts), parts) for parts in typed}
    found = []
    for job in jobs:
        parts = job.cmd, job.args, job.workload
        cmd, args, workload = parts if job.generated else names.get(parts, parts)
        found.append(replace(job, cmd=cmd, args=args, workload=workload))
    return found


def combinations(lists: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str, str]]:
    """Each command with each of its arguments and workloads, as the job matrix has them.

    :param lists: by the keys of :data:`PARTS`.
    """
    cmds, args, workloads = (lists[key] for key in PARTS)
    return itertools.product(cmds, args or [""], workloads or [""])


def _known(repo: Repository) -> Iterator[_Parts]:
    """The divisions that are known, the job matrix first; a name of a generator is no word of a command."""
    generated = workloads_of_jobs.generators(repo)
    return (parts for parts in _every(repo) if parts[2].removeprefix("<").strip() not in generated)


def _every(repo: Repository) -> Iterator[_Parts]:
    yield from combinations({key: texts(repo.config.get(key)) for key in PARTS})
    with suppress(PerunError):  # no version yet, or a damaged index: others tell of it
        head = repo.vcs.get_minor_head()
        versions = itertools.chain((head,), (one.checksum for one in ancestors(repo, head, _NEAR)))
        if nearest := next(filter(repo.store.indexes.has, versions), ""):
            for entry in repo.store.indexes.read(nearest):
                own = entry.info().configuration
                yield own.cmd, own.args, own.workload


def _meaning(parts: _Parts) -> _Meaning:
    """What is run; of what cannot be run the parts themselves."""
    try:
        argv, file, text = Run(*parts).command()
    except UsageError:
        return parts
    return tuple(argv), file, text


def subject_of(registry: Registry, unit: PluginConfig) -> str:
    """What a collector looks at that runs no command, as sources; empty for any other."""
    plugin = registry.get("collect", unit.name)
    subject = getattr(plugin, "subject", None)
    return str(subject(unit.params)) if subject is not None else ""


def needs_command(registry: Registry, collector: str) -> bool:
    """Whether the collector measures a command, so that one must be named.

    :raises PluginError: if there is no such collector.
    """
    return not getattr(registry.get("collect", collector), "without_command", False)


def make_unit(
    repo: Repository, family: str, name: str, params: Mapping[str, Any], where: str
) -> PluginConfig:
    """The named plugin's parameters made of `params`."""
    plugin = repo.registry.get(family, name)
    return PluginConfig(plugin.name, from_mapping(plugin.Params, params, f"{name!r} in {where}"))


def merge_params(params: Any, where: str) -> dict[str, Any]:
    """Parameters written as a mapping, or as the manual's list of mappings with one key each."""
    if params is None:
        return {}
    if isinstance(params, Mapping):
        return dict(params)
    if isinstance(params, list) and all(isinstance(one, Mapping) for one in params):
        return {key: value for one in params for key, value in one.items()}
    raise ConfigError(f"{where}: params must be a mapping of parameters to values, not {params!r}")


def _configured_units(repo: Repository, family: str, key: str) -> list[PluginConfig]:
    units = []
    for position, entry in enumerate(repo.config.get(key) or []):
        try:
            units.append(configured_unit(repo.registry, family, entry))
        except PerunError as problem:
            place = item_place(repo.config, key, position, problem.message)
            raise type(problem)(f"{place}: {problem.message}", problem.hint) from None
    return units


def configured_unit(registry: Registry, family: str, entry: Any) -> PluginConfig:
    """The unit that an item of `collectors` or `postprocessors` means: a name, or a mapping with `params`.

    :raises PluginError: if it is unknown. :raises ConfigError: if a parameter is wrong.
    """
    name, params = (entry, {}) if isinstance(entry, str) else (str(entry["name"]), entry.get("params"))
    plugin = registry.get(family, name)
    values = from_mapping(plugin.Params, merge_params(params, name), f"{FAMILIES[family]} {name!r}")
    return PluginConfig(plugin.name, values)


def texts(values: Any) -> list[str]:
    """The items of a key that holds a list of texts, or one text."""
    if values is None:
        return []
    return [str(value) for value in values] if isinstance(values, (list, tuple)) else [str(values)]
