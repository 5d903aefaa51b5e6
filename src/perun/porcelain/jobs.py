"""Jobs: what is measured and how, and the job matrix they come from (manual 7.2, 7.3)."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perun.errors import ConfigError
from perun.plugin.params import from_mapping
from perun.porcelain.repository import Repository


@dataclass(frozen=True)
class Unit:
    """A collector or postprocessor with its parameters, already of the plugin's own type."""

    name: str
    params: Any


@dataclass(frozen=True)
class Job:
    """One configuration of the program, one collector, and what is done to the profile afterwards."""

    cmd: str
    args: str
    workload: str
    collector: Unit
    postprocessors: tuple[Unit, ...] = ()

    def __str__(self) -> str:
        return " ".join(part for part in (self.cmd, self.args, self.workload) if part)


def matrix(repo: Repository) -> list[Job]:
    """The jobs of the matrix in the local configuration: all combinations, in its order.

    :raises ConfigError: where a part is missing or wrong; nothing has run then.
    """
    where = str(repo.root / ".perun" / "local.yml")
    cmds = _texts(repo.config.get("cmds"))
    collectors = repo.config.get("collectors") or []
    for key, value in (("cmds", cmds), ("collectors", collectors)):
        if not value:
            raise ConfigError(
                f"the job matrix is empty: {key} is not set in {where}",
                "set it with: perun config edit  (or run one job with: perun run job --help)",
            )
    return combine(
        repo,
        cmds,
        _texts(repo.config.get("args")) or [""],
        _workloads(repo, where),
        [_unit(entry) for entry in collectors],
        [_unit(entry) for entry in repo.config.get("postprocessors") or []],
        where,
    )


def combine(
    repo: Repository,
    cmds: Sequence[str],
    args: Sequence[str],
    workloads: Sequence[str],
    collectors: Iterable[tuple[str, Mapping[str, Any]]],
    postprocessors: Iterable[tuple[str, Mapping[str, Any]]],
    where: str,
) -> list[Job]:
    """Every command with every argument, workload and collector; units are (name, parameters).

    :param where: what to name in the message when a parameter is wrong.
    :raises PluginError: where a unit is unknown. :raises ConfigError: where a parameter is wrong.
    """
    units = [make_unit(repo, "collect", name, params, where) for name, params in collectors]
    after = tuple(make_unit(repo, "postprocess", name, params, where) for name, params in postprocessors)
    return [
        Job(cmd, arguments, workload, unit, after)
        for cmd, arguments, workload, unit in itertools.product(cmds, args or [""], workloads or [""], units)
    ]


def make_unit(repo: Repository, family: str, name: str, params: Mapping[str, Any], where: str) -> Unit:
    """The named plugin's parameters made of `params`."""
    plugin = repo.registry.get(family, name)
    return Unit(plugin.name, from_mapping(plugin.Params, params, f"{name!r} in {where}"))


def merge_params(params: Any, where: str) -> dict[str, Any]:
    """Parameters written as a mapping, or as the manual's list of mappings with one key each."""
    if params is None:
        return {}
    if isinstance(params, Mapping):
        return dict(params)
    if isinstance(params, list) and all(isinstance(one, Mapping) for one in params):
        return {key: value for one in params for key, value in one.items()}
    raise ConfigError(f"{where}: params must be a mapping of parameters to values, not {params!r}")


def _unit(entry: Any) -> tuple[str, dict[str, Any]]:
    if isinstance(entry, str):
        return entry, {}
    return str(entry["name"]), merge_params(entry.get("params"), str(entry["name"]))


def _texts(values: Any) -> list[str]:
    if values is None:
        return []
    return [str(value) for value in values] if isinstance(values, (list, tuple)) else [str(values)]


def _workloads(repo: Repository, where: str) -> list[str]:
    """The workloads of the matrix; one that names a generator stands for all that it generates."""
    generators = {str(one.get("id")): one for one in repo.config.gather("generators.workload")}
    workloads: list[str] = []
    for text in _texts(repo.config.get("workloads")) or [""]:
        settings = generators.get(text)
        if settings is None:
            workloads.append(text)
            continue
        params = {key: value for key, value in settings.items() if key not in ("id", "type")}
        params.pop("profile_for_each_workload", None)
        generator = repo.registry.get("workload", str(settings.get("type")))
        made = from_mapping(generator.Params, params, f"workload generator {text!r} in {where}")
        workloads += [workload.value for workload in generator.generate(made)]
    return workloads
