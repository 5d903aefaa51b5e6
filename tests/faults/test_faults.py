"""A kill or an error of the system at every call that changes a file: nothing is lost or half done, the files
of the user stay, the message names file and reason, and the command typed again succeeds."""

import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from fault_injection import FOREIGN, NO_FAULT, Ended, Mode, Plan, plans, replace
from fault_scenes import (
    SCENES,
    Facts,
    Project,
    Scene,
    contents,
    facts,
    index_of_git,
    left_by_runs,
    locks_of_git,
    names,
    odd_findings,
    run_hooks,
    users_files,
)

from perun.core.errors import EXIT_CODES

SAMPLED = 1
"""Faults for each scene that `make test` tries; all of them `make test-all`."""
LIKE_OTHERS = frozenset({"check", "run", "hooks uninstall", "stats sync", "temp sync", "temp delete"})
"""Scenes that write by the same functions as others do: only the slow tests try them."""
ENDED_ALREADY = 6
_KILLED = -9


class Result(NamedTuple):
    """How many faults came of those that were planned, and what did not hold."""

    trials: int
    failures: list[str]


class Walk:
    """The trials of one scene."""

    def __init__(self, scene: Scene, project: Project, room: Path, sabotage: str = "") -> None:
        self._scene, self._project, self._room, self._sabotage = scene, project, room, sabotage
        self._pristine = room / "pristine"
        self._hooks = room / "hooks"
        self._hooks.mkdir()
        shutil.copytree(project.path, self._pristine, symlinks=True)
        self._before, self._files, self._staged = facts(project), users_files(project), index_of_git(project)
        self._contents = contents(project)
        self._user_hooks = self._said_by_hooks()
        done = self._run(NO_FAULT)
        assert done.code == 0, done
        self.kinds = project.server.kinds(done)
        self._after, self._files_after = facts(project), users_files(project)
        self._staged_after, self._left_after = index_of_git(project), left_by_runs(project)
        self._said_after = self._said_by_hooks()
        assert self._before != self._after or scene.arguments[-1] == "sync"

    def all(self) -> list[Plan]:
        """Every fault."""
        return list(plans(self.kinds))

    def sample(self, count: int) -> list[Plan]:
        """As many of them, spread evenly; always the same for the same calls."""
        every = self.all()
        return [every[number * len(every) // count] for number in range(count)]

    def walk(self, chosen: Iterable[Plan]) -> Result:
        """Try the faults one after the other, each in a fresh copy."""
        trials, failures = 0, []
        for plan in chosen:
            replace(self._project.path, self._pristine)
            ended = self._run(plan)
            if not ended.where:
                continue  # threads: this time another call came at that place
            trials += 1
            failures += [f"{plan} ({ended.where}): {text}" for text in self._problems(plan, ended)]
        return Result(trials, failures)

    def _run(self, plan: Plan) -> Ended:
        project = self._project
        return project.server.run(
            project.path, self._scene.arguments, project.environ, plan, sabotage=self._sabotage
        )

    def _problems(self, plan: Plan, ended: Ended) -> Iterable[str]:
        yield from self._message_problems(plan, ended)
        try:
            found = facts(self._project)
        except Exception as problem:
            yield f"the store does not open: {type(problem).__name__}: {problem}"
            return
        yield from self._fact_problems(found)
        if ended.code == 0 and not _same(found, self._after):
            yield f"it says that it succeeded, but: {_difference(found, self._after)}"
        for finding in odd_findings(self._project, self._scene.allowed):
            yield f"fsck: {finding}"
        if self._scene.gives_back and ended.code == 0:
            yield from self._tree_problems(self._files_after, self._staged_after)
        if not self._scene.gives_back:
            yield from self._tree_problems(self._files, self._staged)
        if self._said_by_hooks() not in (self._user_hooks, self._said_after):
            yield f"the hooks of the user say {self._said_by_hooks()}"
        yield from self._again_problems(found)

    def _message_problems(self, plan: Plan, ended: Ended) -> Iterable[str]:
        if "Traceback" in ended.err + ended.out:
            yield f"a traceback: {ended.err}"
        if ended.code == _KILLED:
            if not plan.kills:
                yield "it was killed though nothing kills it"
            return
        if ended.code not in EXIT_CODES or ended.code == 70:
            yield f"exit code {ended.code}: {ended.err}"
        if ended.code and not ended.err.startswith("error: ") and "\nerror: " not in ended.err:
            yield f"exit code {ended.code} without an error: {ended.err!r}"
        if ended.code and plan.error:
            # Of some of its own calls git tells only what it could not do.
            foreign = self.kinds[plan.target - 1] & FOREIGN or (plan.sticky and "git " in ended.err)
            if os.strerror(plan.error) not in ended.err and not foreign:
                yield f"the message does not name the reason: {ended.err!r}"
            # What the user has it run speaks for itself.
            if str(self._project.path) not in ended.err and "execute.pre_run: " not in ended.err:
                yield f"the message names no file: {ended.err!r}"

    def _fact_problems(self, found: Facts) -> Iterable[str]:
        for key in self._before.keys() | self._after.keys() | found.keys():
            value, old, new = found.get(key), self._before.get(key), self._after.get(key)
            if self._scene.measures and key[0] == "index":  # each job registers its profile
                if not (old or frozenset()) <= (value or frozenset()) <= (new or frozenset()):
                    yield f"{' '.join(key)} is not between before and after: {value!r}"
            elif value not in (old, new) and not (key[0] == "pending" and self._scene.measures):
                yield f"{' '.join(key)} is neither as before nor as after: {value!r}"
        if lost := names(self._before) - names(found) - self._scene.removed:
            yield f"lost: {sorted(lost)}"
        if not self._scene.removed and self._contents - contents(self._project):
            yield "the content of a profile is lost"

    def _tree_problems(self, files: dict[str, bytes], staged: str) -> Iterable[str]:
        now = users_files(self._project)
        if now != files:
            changed = [name for name in now.keys() | files.keys() if now.get(name) != files.get(name)]
            yield f"files of the user changed: {changed}"
        if index_of_git(self._project) != staged:
            yield "what git has staged changed"

    def _again_problems(self, found: Facts) -> Iterable[str]:
        again = self._run(NO_FAULT)
        locks = locks_of_git(self._project)
        # A git that was killed leaves its lock; it does not go on either, until the user removes it.
        explained = any(str(lock) in again.err for lock in locks) and "remove the " in again.err
        if again.code and locks and not explained:
            yield f"again: the lock of git is not explained: {again.err!r}"
        for lock in locks:
            lock.unlink()
        if locks:
            again = self._run(NO_FAULT)
        if self._scene.measures and "known to fail: execute.pre_run" in again.err:
            return  # that command is the user's: what it fails on is remembered
        done_before = self._scene.gone and all(found.get(key) == value for key, value in self._after.items())
        if again.code and not (done_before and again.code in (4, ENDED_ALREADY)):
            yield f"again: exit code {again.code}: {again.err}"
        now = facts(self._project)
        if self._scene.measures:
            if missing := names(self._after) - names(now):
                yield f"again: {sorted(missing)} are missing"
        elif not _same(now, self._after):
            yield f"again: {_difference(now, self._after)}"
        for finding in odd_findings(self._project, self._scene.allowed):
            yield f"again: fsck: {finding}"
        yield from (f"again: {one}" for one in self._tree_problems(self._files_after, self._staged_after))
        if left := left_by_runs(self._project) - self._left_after:
            yield f"again: {sorted(left)} are still there"

    def _said_by_hooks(self) -> dict[str, str]:
        if self._scene.arguments[0] != "hooks":
            return {}
        return run_hooks(self._project, self._hooks)


def _same(found: Facts, expected: Facts) -> bool:
    return not _difference(found, expected)


def _difference(found: Facts, expected: Facts) -> str:
    keys = [key for key in found.keys() | expected.keys() if found.get(key) != expected.get(key)]
    return "; ".join(
        f"{' '.join(key)}: {found.get(key)!r}, not {expected.get(key)!r}" for key in sorted(keys)
    )


def walk_of(name: str, make_project: Callable[[], Project], room: Path, sabotage: str = "") -> Walk:
    """The walk through a scene, ready to begin."""
    project = make_project()
    SCENES[name].prepare(project)
    return Walk(SCENES[name], project, room, sabotage)


def told(failures: Sequence[str], trials: int) -> str:
    """The failures, as many as one reads."""
    return "\n".join([f"{len(failures)} failures in {trials} trials:", *failures[:30]])


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in LIKE_OTHERS else name for name in SCENES]
)
def test_some_faults(name: str, make_project: Callable[[], Project], room: Path) -> None:
    walk = walk_of(name, make_project, room)
    trials, failures = walk.walk(walk.sample(SAMPLED))
    assert not failures, told(failures, trials)
    assert trials


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENES)
def test_every_fault(name: str, make_project: Callable[[], Project], room: Path) -> None:
    walk = walk_of(name, make_project, room)
    trials, failures = walk.walk(walk.all())
    print(f"{name}: {len(walk.kinds)} calls, {trials} faults, {len(failures)} failures")
    assert not failures, told(failures, trials)
    assert trials >= len(walk.all()) * 2 // 3


IN_PLACE = """
import contextlib, pathlib, perun.core.atomic
@contextlib.contextmanager
def writing(path, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        yield file
def write_many(files, scratch):
    for made in files:
        with writing(pathlib.Path(made.path)) as file:
            file.writelines(made.pieces)
perun.core.atomic.writing, perun.core.atomic.write_many = writing, write_many
"""


@pytest.mark.parametrize("name", ["add", pytest.param("config set", marks=pytest.mark.slow)])
def test_writing_in_place_would_be_found(name: str, make_project: Callable[[], Project], room: Path) -> None:
    """The trials have teeth: without temporary files they find what is lost."""
    walk = walk_of(name, make_project, room, IN_PLACE)
    _, failures = walk.walk(plan for plan in walk.all() if plan.mode is Mode.KILL_HALF)
    assert any("neither as before" in one or "does not open" in one for one in failures)
