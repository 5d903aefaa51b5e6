"""What tests of importers and exporters share."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from perun.plugin.interchange import ImportContext, Imported, ImportFile
from perun.plugin.params import from_mapping
from perun.plugin.registry import Registry
from perun.profile.calls import Frame
from perun.profile.factory import Profile
from perun.profile.sampled import SampledStacks
from perun.profile.stacks import stacks_of
from perun.running.interchange import read_all

CORPUS = Path(__file__).parents[1] / "data" / "corpus"
HARNESSES = Path(__file__).parents[2] / "build" / "harnesses" / "bin"
REGISTRY = Registry()


class Reader:
    """Reads files with an importer, and keeps what it tells."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self.notes: list[str] = []
        self.project: Path | None = None

    def __call__(self, name: str, source: Path | bytes | str, **values: Any) -> list[Imported]:
        """All that the importer makes of a file, or of this content."""
        if not isinstance(source, Path):
            path = self._scratch / "given"
            path.write_bytes(source.encode() if isinstance(source, str) else source)
            source = path
        importer = REGISTRY.get("importer", name)
        context = ImportContext(self.notes.append, self._scratch, project=self.project)
        params: Any = from_mapping(importer.Params, values, name)
        return read_all(importer, ImportFile(source.name, source), params, context)

    def corpus(self, name: str, file: str) -> list[Imported]:
        """What is read of a file that the fuzzer begins with."""
        return self(name, CORPUS / f"import-{name}" / file)


def exported(name: str, profile: Profile, **values: Any) -> bytes:
    """What the exporter writes."""
    exporter = REGISTRY.get("exporter", name)
    params: Any = from_mapping(exporter.Params, values, name)
    return b"".join(exporter.write(profile, params, str))


def guessed(path: Path) -> list[str]:
    """The importers that know a file."""
    file = ImportFile(path.name, path)
    known = []
    for name in REGISTRY.names("importer"):
        importer = REGISTRY.get("importer", name)
        if importer.recognizes(file.head, str(path)):
            known.append(name)
    return known


def stacks(profile: Profile, of: str = "amount") -> dict[str, float]:
    """Call stacks by the names of their functions, the outermost first."""
    found: dict[str, float] = {}
    for stack, amount in stacks_of(profile, of).amounts.items():
        name = ";".join(frame.name for frame in stack)
        found[name] = found.get(name, 0) + amount
    return found


def samples(profile: Profile) -> dict[str, list[float]]:
    """The samples by subtype, in their order."""
    found: dict[str, list[float]] = {}
    for _, one in profile.all_resources():
        found.setdefault(one.get("subtype", ""), []).append(one["amount"])
    return found


def sampled(amounts: dict[tuple[Frame, ...], float], unit: str = "ns") -> Profile:
    """A profile of call stacks."""
    made = SampledStacks({"cpu": unit, "samples": ""})
    for stack, amount in amounts.items():
        made.add(made.node(stack), amount, 1)
    return made.profile("test", "./prog")


def needed(tool: str) -> str:
    """The path of a program; the test is skipped where it is not installed."""
    found = shutil.which(tool) or shutil.which(tool, path=str(HARNESSES))
    if found is None:
        pytest.skip(f"{tool} is not installed")
    return found


def python_with(module: str) -> str:
    """A Python that has the module; the test is skipped where there is none."""
    for python in (str(HARNESSES / "python"), sys.executable):
        words = [python, "-c", f"import {module}"]
        if Path(python).exists() and not subprocess.run(words, capture_output=True, check=False).returncode:
            return python
    pytest.skip(f"there is no {module}: `make build/harnesses/.made` installs it")


def run(words: Sequence[str], folder: Path) -> str:
    """What a program prints; a test is skipped where the machine does not let it run."""
    environ = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    done = subprocess.run(
        words, cwd=folder, env=environ, capture_output=True, text=True, timeout=120, check=False
    )
    if done.returncode:
        pytest.skip(f"{words[0]} does not run here: {done.stderr.strip()[-200:]}")
    return done.stdout
