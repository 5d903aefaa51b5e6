"""Version control systems written as the manual's section 13.1 says, through the registry."""

import os
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from perun.core.errors import PluginError, VersionControlError
from perun.plugin.api import MajorVersion, MinorVersion, Vcs
from perun.plugin.registry import Registry

# A system whose versions are the lines of a file `history` in the folder of the repository.
LINES = '''
"""Versions are lines."""
import os

from perun.utils.structs import MajorVersion, MinorVersion


def _lines():
    with open("history") as history:
        return history.read().split()


def _version(number):
    parents = [_lines()[number - 1]] if number else []
    return MinorVersion("2024-01-02 03:04:05", os.environ["WHO"], "a@b", _lines()[number], "line", parents)


def init(vcs_init_params):
    with open("history", "w") as history:
        history.write(" ".join(vcs_init_params))
    return True


def walk_minor_versions(head_minor_version):
    for number in range(_lines().index(head_minor_version), -1, -1):
        yield _version(number)


def walk_major_versions():
    yield MajorVersion("main", _lines()[-1])


def get_minor_head():
    if not os.path.exists("history"):
        raise ValueError("there is no version yet")
    return _lines()[-1]


def get_head_major_version():
    return "main"


def get_minor_version_info(minor_version):
    return _version(_lines().index(minor_version))


def check_minor_version_validity(minor_version):
    if minor_version not in _lines():
        raise ValueError(f"no line {minor_version}")


def massage_parameter(parameter, parameter_type=None):
    print("massaging")
    return _lines()[-1] if parameter == "HEAD" else parameter


def is_dirty():
    return os.path.exists("dirt")


def save_state():
    return True, _lines()[-1]


def restore_state(saved, state):
    with open("restored", "w") as file:
        file.write(f"{saved} {state}")


def checkout(minor_version):
    with open("current", "w") as file:
        file.write(minor_version)
'''

Make = Callable[[str], Vcs]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Write a version control system, get it from the registry, and open a repository with it."""

    def make(text: str = LINES) -> Vcs:
        (tmp_path / "plugins" / "vcs").mkdir(parents=True, exist_ok=True)
        (tmp_path / "plugins" / "vcs" / "lines.py").write_text(dedent(text))
        root = tmp_path / "repository"
        root.mkdir(exist_ok=True)
        made = Registry([tmp_path / "plugins"]).get("vcs", "lines")(root, {"WHO": "Ada"})
        assert isinstance(made, Vcs)
        return made

    return make


@pytest.fixture
def lines(make: Make) -> Vcs:
    vcs = make(LINES)
    assert vcs.init({"one": True, "two": True, "three": True}) is True
    return vcs


def version(checksum: str, *parents: str) -> MinorVersion:
    return MinorVersion("2024-01-02 03:04:05", "Ada", "a@b", checksum, "line", parents)


def test_versions(lines: Vcs) -> None:
    assert lines.type == "lines"
    assert lines.get_minor_head() == "three"
    assert lines.get_head_major_version() == "main"
    assert list(lines.walk_major_versions()) == [MajorVersion("main", "three")]
    expected = [version("three", "two"), version("two", "one"), version("one")]
    assert list(lines.walk_minor_versions("three")) == expected
    assert list(lines.walk_subjects("one")) == [version("one")]
    assert lines.get_minor_version_info("two") == version("two", "one")
    assert lines.get_minor_version_info("two").subject == "line"


def test_the_folder_is_changed_for_each_step_alone(lines: Vcs) -> None:
    home, environ = Path.cwd(), dict(os.environ)
    for _ in lines.walk_minor_versions("three"):
        assert (Path.cwd(), dict(os.environ)) == (home, environ)
    assert (Path.cwd(), dict(os.environ)) == (home, environ)


def test_massaging(lines: Vcs, capsys: pytest.CaptureFixture[str]) -> None:
    assert lines.massage_parameter("HEAD") == "three"
    assert lines.massage_parameter("x", "commit") == "x"
    assert capsys.readouterr().out == ""


def test_working_directory(lines: Vcs) -> None:
    assert lines.is_dirty() is False
    (lines.root / "dirt").touch()
    assert lines.is_dirty() is True
    assert lines.save_state() == (True, "three")
    saved = lines.prepare_save()
    lines.checkout("one")
    assert (lines.root / "current").read_text() == "one"
    lines.resume(saved)
    assert (lines.root / "restored").read_text() == "True three"


def test_other_versions_are_measured_in_place(lines: Vcs) -> None:
    with pytest.raises(VersionControlError, match="lines cannot measure"):
        lines.working_copy(lines.root / "copy")


def test_validity(lines: Vcs) -> None:
    lines.check_minor_version_validity("one")
    with pytest.raises(VersionControlError, match="no line four"):
        lines.check_minor_version_validity("four")


def test_validity_as_a_value(make: Make) -> None:
    polite = make(
        LINES + "\n\ndef check_minor_version_validity(minor_version):\n    return minor_version in _lines()\n"
    )
    polite.init({"one": True})
    polite.check_minor_version_validity("one")
    with pytest.raises(VersionControlError, match="lines knows no version 'four'"):
        polite.check_minor_version_validity("four")


def test_what_the_functions_raise(make: Make) -> None:
    vcs = make(LINES)
    with pytest.raises(VersionControlError) as caught:
        vcs.get_minor_head()
    assert "get_minor_head() of the version control system 'lines' failed" in caught.value.message
    assert "ValueError: there is no version yet" in caught.value.message
    assert isinstance(caught.value.__cause__, ValueError)
    with pytest.raises(VersionControlError, match=r"walk_minor_versions\(\).*FileNotFoundError"):
        list(vcs.walk_minor_versions("one"))


def test_functions_that_take_the_path(make: Make) -> None:
    text = LINES.replace("def is_dirty():", "def is_dirty(vcs_path):").replace(
        'os.path.exists("dirt")', 'os.path.exists(os.path.join(vcs_path, "dirt"))'
    )
    text = text.replace("def massage_parameter(parameter", "def massage_parameter(vcs_path, parameter")
    text = text.replace("def walk_major_versions():", "def walk_major_versions(repo_path):")
    vcs = make(text)
    vcs.init({"one": True})
    assert vcs.is_dirty() is False
    assert vcs.massage_parameter("HEAD") == "one"
    assert list(vcs.walk_major_versions()) == [MajorVersion("main", "one")]


@pytest.mark.parametrize("made", [
    "('d', 'a', 'e', 'c', 's', ['p'])",
    "__import__('types').SimpleNamespace("
    "date='d', author='a', email='e', checksum='c', desc='s', parents=('p',))",
])  # fmt: skip
def test_other_types_of_versions(made: str, make: Make) -> None:
    vcs = make(LINES + f"\n\ndef _version(number):\n    return {made}\n")
    vcs.init({"one": True})
    assert vcs.get_minor_version_info("one") == MinorVersion("d", "a", "e", "c", "s", ("p",))


@pytest.mark.parametrize(("function", "value", "call"), [
    ("get_minor_version_info", "'one'", lambda vcs: vcs.get_minor_version_info("one")),
    ("get_minor_head", "None", lambda vcs: vcs.get_minor_head()),
    ("massage_parameter", "b'one'", lambda vcs: vcs.massage_parameter("one")),
    ("save_state", "True", lambda vcs: vcs.save_state()),
    ("walk_minor_versions", "None", lambda vcs: list(vcs.walk_minor_versions("one"))),
    ("walk_minor_versions", "[(1, 2)]", lambda vcs: list(vcs.walk_minor_versions("one"))),
    ("walk_major_versions", "['main']", lambda vcs: list(vcs.walk_major_versions())),
])  # fmt: skip
def test_wrong_returns(function: str, value: str, call: Callable[[Vcs], Any], make: Make) -> None:
    vcs = make(LINES + f"\n\ndef {function}(*arguments):\n    return {value}\n")
    with pytest.raises(
        PluginError, match=rf"{function}\(\) of the version control system 'lines' must return"
    ):
        call(vcs)


def test_a_missing_function(make: Make) -> None:
    text = LINES.replace("def is_dirty", "def is_clean").replace("def checkout", "def switch")
    with pytest.raises(PluginError, match=r"lines\.py does not define is_dirty, checkout"):
        make(text)


def test_help(tmp_path: Path, make: Make) -> None:
    make(LINES)
    assert Registry([tmp_path / "plugins"]).help("vcs", "lines") == "Versions are lines."
