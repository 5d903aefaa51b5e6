"""What the messages about missing libraries say to do can be done."""

from __future__ import annotations

import shlex
import sys
import tomllib
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from perun.core.extras import install_command

PROJECT = tomllib.loads(Path(__file__).parents[2].joinpath("pyproject.toml").read_text("utf-8"))["project"]


@pytest.mark.parametrize("extra", ["plots", "dataframe", "python-memory"])
def test_packages_of_an_extra_are_named(extra: str) -> None:
    python, *words = shlex.split(install_command(extra))
    assert (python, words[:3]) == (sys.executable, ["-m", "pip", "install"])
    asked = [one.partition(";")[0] for one in PROJECT["optional-dependencies"][extra]]
    assert [name_of(one) for one in words[3:]] == [name_of(one) for one in asked]
    assert not any("perun" in one for one in words[3:])


def name_of(requirement: str) -> str:
    return requirement.partition(">")[0].partition("<")[0]


def test_environments_without_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    command = shlex.split(install_command("python-memory"))
    assert command[:5] == ["uv", "pip", "install", "--python", sys.executable]
    assert command[5].startswith("memray")


def test_sources_that_are_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.requires", unknown)
    # No index has Perun itself: what exists is the folder of the sources.
    assert shlex.split(install_command("plots"))[-1] == ".[plots]"
