"""The power fails at any moment: nothing that is registered is lost, and the store opens."""

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import power_loss
import pytest
from fault_injection import Call, Kind
from fault_scenes import SCENES, Project, contents, facts, names, odd_findings

FOLDERS = (".perun", ".tagit")
SCENES_OF_POWER = ("add", "rm registered", "rm pending", "config set", "tag")
QUICK = 25
"""States of a scene that are tried at least where not all are: git writes so many files for a snapshot."""


class Recorded:
    """A command that was recorded, and what was there before and after it."""

    def __init__(self, name: str, project: Project) -> None:
        self.scene, self.project = SCENES[name], project
        self.scene.prepare(project)
        self.before = power_loss.read(project.path, FOLDERS)
        self.facts_before, self.contents_before = facts(project), contents(project)
        ended = project.server.run(project.path, self.scene.arguments, project.environ, recording=True)
        assert ended.code == 0, ended
        self.calls = [call for call in project.server.recorded() if self._is_followed(call)]
        self.facts_after = facts(project)
        # Otherwise what follows would be about something else than what happened.
        whole = power_loss.Disk(project.path, self.before)
        for call in [*self.calls, Call(Kind.SYNC, 0, "", "", 0, 0, b"")]:
            whole.apply(call)
        assert next(iter(whole.states())) == power_loss.read(project.path, FOLDERS)

    def _is_followed(self, call: Call) -> bool:
        roots = [f"{self.project.path}/{name}" for name in FOLDERS]
        return call.kind is Kind.SYNC or any((call.other or call.path).startswith(one) for one in roots)

    def problems(self, state: power_loss.State) -> Sequence[str]:
        """What is wrong where the disk holds this."""
        for name in FOLDERS:
            shutil.rmtree(self.project.path / name, ignore_errors=True)
        power_loss.write(state)
        try:
            found = facts(self.project)
            now = contents(self.project)
        except Exception as problem:
            return [f"the store does not open: {type(problem).__name__}: {problem}"]
        # What can be made anew is not flushed, so it may be damaged, but then it is known to be.
        odd = odd_findings(self.project, self.scene.allowed)
        wrong = [one for one in odd if "measured.sqlite: this cache cannot be read" not in one]
        for key in self.facts_before.keys() | self.facts_after.keys() | found.keys():
            value = found.get(key)
            if value not in (self.facts_before.get(key), self.facts_after.get(key)):
                wrong.append(f"{' '.join(key)} is neither as before nor as after: {value!r}")
        wrong += [f"lost: {one}" for one in names(self.facts_before) - names(found) - self.scene.removed]
        if not self.scene.removed and self.contents_before - now:
            wrong.append("the content of a profile is lost")
        return wrong


def failures(recorded: Recorded, states: Sequence[power_loss.State]) -> list[str]:
    """What is wrong in the states, each with its number."""
    return [
        f"state {number}: {one}" for number, state in enumerate(states) for one in recorded.problems(state)
    ]


@pytest.mark.parametrize(
    ("name", "all_of_them"),
    [*((name, False) for name in SCENES_OF_POWER), pytest.param("tag", True, marks=pytest.mark.slow)],
)
def test_every_state_after_a_power_loss(name: str, all_of_them: bool, make_project) -> None:
    recorded = Recorded(name, make_project())
    states = list(power_loss.crash_states(recorded.project.path, recorded.before, recorded.calls))
    states = states[:: 1 if all_of_them else max(1, len(states) // QUICK)]
    found = failures(recorded, states)
    print(f"{name}: {len(recorded.calls)} calls, {len(states)} states, {len(found)} failures")
    assert len(states) > 10
    assert not found, "\n".join(found[:20])


@pytest.mark.parametrize("name", ["add", pytest.param("config set", marks=pytest.mark.slow)])
def test_a_write_without_fsync_would_be_found(name: str, make_project: Callable[[], Project]) -> None:
    """The states have teeth: were nothing flushed, some of them would lose what is registered or set."""
    recorded = Recorded(name, make_project())
    calls = [call for call in recorded.calls if call.kind is not Kind.FLUSH]
    states = power_loss.crash_states(recorded.project.path, recorded.before, calls)
    assert any(recorded.problems(state) for state in states)


def test_what_a_crash_may_leave(tmp_path: Path) -> None:
    """The model itself, on the classic replacement of a file."""
    folder, old, new = str(tmp_path), str(tmp_path / "file"), str(tmp_path / "new")
    before = {folder: None, old: b"old"}
    create = Call(Kind.CREATE, os.O_CREAT, new, "", 7, 0, b"")
    write = Call(Kind.WRITE, 0, new, "", 7, 0, b"data")
    flush = Call(Kind.FLUSH, 0, new, "", 7, 0, b"")
    rename = Call(Kind.RENAME, 0, new, old, 0, 0, b"")

    def possible(*calls: Call) -> set[bytes | None]:
        return {state.get(old) for state in power_loss.crash_states(tmp_path, before, calls)}

    assert possible(create, write, flush, rename) == {b"old", b"data"}
    assert possible(create, write, rename) == {b"old", b"data", b"", b"da", b"\0\0\0\0"}
    settled = Call(Kind.FLUSH, 0, folder, "", 9, 0, b"")
    disk = power_loss.Disk(tmp_path, before)
    for call in (create, write, flush, rename, settled):
        disk.apply(call)
    assert [state for state in disk.states()] == [{folder: None, old: b"data"}]


def test_what_a_crash_may_leave_of_a_folder_that_is_named_as_a_whole(tmp_path: Path) -> None:
    folder, unfinished, final = str(tmp_path), str(tmp_path / "unfinished"), str(tmp_path / "final")
    file = f"{unfinished}/file"
    calls = [
        Call(Kind.MKDIR, 0, unfinished, "", 0, 0, b""),
        Call(Kind.CREATE, os.O_CREAT, file, "", 7, 0, b""),
        Call(Kind.WRITE, 0, file, "", 7, 0, b"data"),
        Call(Kind.FLUSH, 0, file, "", 7, 0, b""),
        Call(Kind.FLUSH, 0, unfinished, "", 8, 0, b""),
        Call(Kind.RENAME, 0, unfinished, final, 0, 0, b""),
    ]

    def possible(calls: list[Call]) -> set[tuple[bool, bytes | None]]:
        states = list(power_loss.crash_states(tmp_path, {folder: None}, calls))
        return {(final in state, state.get(f"{final}/file")) for state in states}

    assert possible(calls) == {(False, None), (True, b"data")}
    assert possible([*calls[:4], calls[5]]) == {(False, None), (True, b"data"), (True, None)}
    assert possible([*calls[:3], *calls[4:]]) == {
        (False, None),
        *((True, data) for data in (b"data", b"da", b"", b"\0\0\0\0")),
    }
