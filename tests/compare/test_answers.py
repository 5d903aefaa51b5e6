"""`perun compare --check-output`: what answers differently is not compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.running.compare.answers import first_difference

MEASURED = ("--metric", "counter", "--always", "--budget", "100")
CHECKED = ("compare", *MEASURED, "--check-output", "HEAD~1", "HEAD")


def commit(project: Any, *scripts: str) -> None:
    for number, script in enumerate(scripts):
        project.git.commit(f"Answer {number}", {"run.sh": script, "n": f"answer {number}"})


def test_a_change_that_answers_differently_is_refused(project: Any) -> None:
    commit(project, "echo one; echo 42", "echo one; echo 43")
    told = project.perun(*CHECKED)
    assert told.code == 8
    assert "answers differently than base" in told.err and "line 2 is '43' in place of '42'" in told.err
    assert project.registered("HEAD") == [] and project.leftovers == []
    assert project.perun("compare", *MEASURED, "HEAD~1", "HEAD").code == 0


def test_the_same_answer_is_compared(project: Any) -> None:
    commit(project, "echo 42", "printf '42\\n'; echo changes >&2")
    told = project.perun(*CHECKED)
    assert told.code == 0 and "answer the same" not in told.out


def test_an_answer_that_changes_by_itself_is_told(project: Any) -> None:
    changing = "date +%N; echo $$; head -c 8 /dev/urandom | od"
    commit(project, changing, f"{changing} # the same")
    told = project.perun(*CHECKED)
    assert told.code == 0 and "note: whether both sides answer the same is not known" in told.out


def test_a_command_that_fails_is_told_as_ever(project: Any) -> None:
    commit(project, "exit 0", "exit 3")
    told = project.perun(*CHECKED)
    assert told.code == 8 and "exited with status 3" in told.err


@given(st.binary(), st.binary())
def test_outputs_are_the_same_to_the_last_byte(tmp_path_factory: Any, old: bytes, new: bytes) -> None:
    folder: Path = tmp_path_factory.getbasetemp()
    before, after = folder / "before", folder / "after"
    before.write_bytes(old)
    after.write_bytes(new)
    found = first_difference(before, after)
    assert (found is None) == (old == new)
    if found is not None:
        lines = [one.split(b"\n") for one in (old, new)]
        same, rest = ([one[part] for one in lines] for part in
                      (slice(found.number - 1), slice(found.number - 1, None)))  # fmt: skip
        assert same[0] == same[1] and rest[0] != rest[1]


@pytest.mark.parametrize(("old", "new", "told"), [
    ("a\n", "a", "line 1 ends in another way"),
    ("a\n", "a\nb\n", "line 2 is 'b' in place of ''"),
    ("x" * 100, "y" * 100, f"line 1 is '{'y' * 60}...' in place of '{'x' * 60}...'"),
])  # fmt: skip
def test_what_is_told(tmp_path: Path, old: str, new: str, told: str) -> None:
    files = tmp_path / "old", tmp_path / "new"
    for file, text in zip(files, (old, new), strict=True):
        file.write_text(text)
    assert str(first_difference(*files)) == told
