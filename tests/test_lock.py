"""The versions that `make` installs: pinned with hashes, for every Python, as the project asks for them."""

from __future__ import annotations

import re
import runpy
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = Path(__file__).parents[1]
LOCK = PROJECT / "requirements"
META = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]
PEERS = ("dvc", "harnesses", "history-peers", "peer")
"""Of environments that have nothing of Perun."""
FILES = sorted(path.stem for path in LOCK.glob("*.txt"))


def pins(use: str) -> list[tuple[Requirement, list[str]]]:
    """The requirements of a file, each with its hashes."""
    lines = re.sub(r"^#.*\n", "", (LOCK / f"{use}.txt").read_text("utf-8"), flags=re.MULTILINE)
    parts = (line.split("--hash=") for line in lines.replace("\\\n", "").splitlines())
    return [(Requirement(first), [one.strip() for one in hashes]) for first, *hashes in parts]


def asked(use: str) -> list[Requirement]:
    """What the project names for a use."""
    extras = META["project"]["optional-dependencies"]
    names = [*META["project"]["dependencies"], *META["build-system"]["requires"], *extras.get(use, [])]
    return [one for one in map(Requirement, names) if canonicalize_name(one.name) != META["project"]["name"]]


@pytest.mark.parametrize("use", FILES)
def test_everything_is_pinned_with_hashes(use: str) -> None:
    found = pins(use)
    assert len(found) > 5
    for requirement, hashes in found:
        assert re.fullmatch(r"==[^*,]+", str(requirement.specifier)), requirement
        assert hashes and all(re.fullmatch(r"sha256:[0-9a-f]{64}", one) for one in hashes), requirement
    assert "://" not in (LOCK / f"{use}.txt").read_text("utf-8")


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("use", [name for name in FILES if name not in PEERS])
def test_what_the_project_asks_for_is_locked(use: str, python: str) -> None:
    machine = {"python_version": python, "python_full_version": f"{python}.0", "sys_platform": "linux"}
    locked = {
        canonicalize_name(one.name): str(one.specifier).removeprefix("==")
        for one, _ in pins(use)
        if one.marker is None or one.marker.evaluate(machine)
    }
    for wanted in asked(use):
        if wanted.marker is None or wanted.marker.evaluate(machine):
            version = locked.get(canonicalize_name(wanted.name))
            assert version and wanted.specifier.contains(version), f"{wanted}: locked is {version}: make lock"


def test_the_files_agree() -> None:
    versions: dict[str, set[str]] = {}
    for use in FILES:
        if use not in PEERS:
            for one, _ in pins(use):
                versions.setdefault(f"{one.name};{one.marker}", set()).add(str(one.specifier))
    assert {name: found for name, found in versions.items() if len(found) > 1} == {}


def test_no_target_gives_uv_an_option_twice() -> None:
    all_options = runpy.run_path(str(PROJECT / "tools" / "lock.py"))["all_options"]
    makefile = (PROJECT / "Makefile").read_text("utf-8")
    targets = re.findall(r"\$\(call with_versions,(\w+),([^,]*),", makefile)
    assert [name for name, _ in targets] == ["latest", "oldest"]
    for options in ("", *(options for _, options in targets)):
        names = [word for word in all_options(options.split()) if word.startswith("--")]
        assert len(set(names)) == len(names)
        assert "--fork-strategy" in names
