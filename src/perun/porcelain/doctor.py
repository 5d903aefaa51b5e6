"""`perun doctor`: whether Perun can work well here, and what to do if it cannot."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from perun import __version__, conditions, machine
from perun.conditions import Condition
from perun.errors import PerunError
from perun.plugin.api import FAMILIES, Readiness
from perun.plugin.registry import Registry
from perun.porcelain import hooks
from perun.porcelain.repository import Repository
from perun.porcelain.run import background, jobs, pre_run
from perun.porcelain.run import matrix as batch
from perun.process import programs


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: `ok`, or what is wrong and what to do about it.

    `about` groups findings: `project` or the family of a plugin.
    """

    about: str
    name: str
    ok: bool
    message: str = ""
    hint: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """All that was found. `project` is empty outside of a repository."""

    versions: Mapping[str, str]
    machine: str
    conditions: tuple[Condition, ...]
    project: tuple[Finding, ...]
    collectors: tuple[Finding, ...]
    plugins: tuple[Finding, ...]


def diagnose(
    repo: Repository | None,
    registry: Registry,
    environ: Mapping[str, str],
    trouble: PerunError | None = None,
) -> Diagnosis:
    """Look at everything; nothing is measured.

    :param repo: the repository, None outside of any, and if it cannot be opened because of `trouble`.
    """
    project = () if repo is None else tuple(_project(repo))
    if trouble is not None:
        project = (Finding("project", "repository", False, trouble.message, trouble.hint),)
    return Diagnosis(
        _versions(environ),
        machine.class_of(machine.describe()),
        tuple(conditions.observe()),
        project,
        tuple(_collectors(registry, environ)),
        tuple(_plugins(registry, environ)),
    )


def _versions(environ: Mapping[str, str]) -> dict[str, str]:
    python = ".".join(map(str, sys.version_info[:3]))
    found = {"perun": __version__, "python": f"{python} ({sys.executable})"}
    try:
        git = programs.run(["git", "--version"], environ=environ, timeout=10)
        found["git"] = git.stdout.decode("utf-8", "replace").strip().removeprefix("git version ")
    except (OSError, programs.TimeoutExpired):
        found["git"] = ""
    return found


def _project(repo: Repository) -> Iterator[Finding]:
    yield Finding("project", "repository", True, str(repo.root))
    yield _matrix(repo)
    yield _preparation(repo)
    yield _hooks(repo)
    interrupted = batch.interrupted(repo)
    if interrupted:
        hint = f"run the rest with: perun run matrix --resume  (to discard it: rm {interrupted})"
        yield Finding("project", "batch", False, "a batch was interrupted", hint)


def _matrix(repo: Repository) -> Finding:
    try:
        count = len(jobs.matrix(repo._replace(asks=None)))  # to look is no reason to be asked
    except PerunError as problem:
        return Finding("project", "job matrix", False, problem.message, problem.hint)
    return Finding("project", "job matrix", True, f"{count} job{'s' * (count != 1)}")


def _preparation(repo: Repository) -> Finding:
    try:
        commands = pre_run.commands(repo)
    except PerunError as problem:
        return Finding("project", "execute.pre_run", False, problem.message, problem.hint)
    if commands:
        return Finding("project", "execute.pre_run", True, "; ".join(commands))
    from perun.config.builds import recognise

    found = recognise(repo.root)
    if found is None:
        return Finding("project", "execute.pre_run", True, "not set; nothing is built before measuring")
    message = "not set: untracked files, such as builds, are missing when Perun measures other versions"
    return Finding("project", "execute.pre_run", False, message, f"set it with: {found.command}")


def _hooks(repo: Repository) -> Finding:
    try:
        installed = [hook.name for hook in hooks.status(repo) if hook.installed]
    except PerunError as problem:
        return Finding("project", "hooks", True, problem.message)
    waiting = background.waiting(repo)
    message = ", ".join(installed) or "none installed: perun hooks install"
    if waiting and not background.state(repo).working:
        hint = "Perun measures them after the next commit"
        return Finding("project", "hooks", False, f"{message}; {len(waiting)} commits are not measured", hint)
    return Finding("project", "hooks", True, message)


def _collectors(registry: Registry, environ: Mapping[str, str]) -> Iterator[Finding]:
    for name in registry.names("collect"):
        yield from _readiness(registry, "collect", name, environ)


def _plugins(registry: Registry, environ: Mapping[str, str]) -> Iterator[Finding]:
    """What of the plugins of other families cannot be used, and those that others hide."""
    for family in FAMILIES:
        for name in registry.names(family) if family != "collect" else ():
            yield from (one for one in _readiness(registry, family, name, environ) if not one.ok)
        for message in registry.shadowed(family):
            yield Finding(family, "hidden", False, message, "give it another name")


def _readiness(
    registry: Registry, family: str, name: str, environ: Mapping[str, str]
) -> Iterator[Finding]:
    """What a plugin says of itself, or why it cannot be loaded."""
    try:
        plugin = registry.get(family, name)
        ask = getattr(plugin, "readiness", None)
        found = [Readiness(*one) for one in ask(environ)] if ask is not None else [Readiness()]
    except PerunError as problem:
        yield Finding(family, name, False, problem.message, problem.hint)
        return
    for one in found:
        part = f"{name} ({one.part})" if one.part else name
        yield Finding(family, part, not one.missing, one.missing, one.hint)
