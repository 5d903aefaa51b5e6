"""The description of the machine, on real and on made-up systems."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perun.core.machine import describe
from shared import examples


def size(machine: dict[str, object]) -> int:
    return len(json.dumps(machine))


def test_this_machine() -> None:
    machine = describe()
    assert machine["architecture"] == os.uname().machine
    assert machine["release"] == os.uname().release
    assert machine["cpu"]["available"] <= machine["cpu"]["total"]
    assert machine["memory"]["total"] > 2**20
    assert len(machine["load"]) == 3
    assert size(machine) < 1024


def test_host_is_not_named() -> None:
    assert "host" not in describe()
    assert "nodename" not in describe()


@pytest.mark.parametrize(
    ("content", "model"),
    [
        ("processor\t: 0\nmodel\t\t: 207\nmodel name\t: CPU @ 2.30GHz\nmodel name\t: B\n", "CPU @ 2.30GHz"),
        ("processor : 0\nBogoMIPS : 50\n\nHardware : BCM2711\n", "BCM2711"),
        ("processor : 0\ncpu : POWER9, altivec supported\n", "POWER9, altivec supported"),
        ("model name :   \nHardware: Board\n", "Board"),
    ],
)  # fmt: skip
def test_processor(content: str, model: str, tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text(content)
    assert describe(proc=tmp_path)["cpu"]["model"] == model


def test_governor_of_a_processor_that_may_be_used(tmp_path: Path) -> None:
    folder = tmp_path / f"devices/system/cpu/cpu{min(os.sched_getaffinity(0))}/cpufreq"
    folder.mkdir(parents=True)
    (folder / "scaling_governor").write_text("powersave\n")
    assert describe(sys=tmp_path)["cpu"]["governor"] == "powersave"


def test_files_that_are_not_there(tmp_path: Path) -> None:
    machine = describe(proc=tmp_path / "absent", sys=tmp_path / "absent")
    assert "model" not in machine["cpu"]
    assert "governor" not in machine["cpu"]
    assert machine["architecture"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(50))
@given(st.one_of(st.binary(), st.text().map(lambda text: ("model name: " + text).encode("utf-8", "replace"))))
def test_size_is_limited_whatever_the_system_says(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "cpuinfo").write_bytes(content * 1000)
    folder = tmp_path / f"devices/system/cpu/cpu{min(os.sched_getaffinity(0))}/cpufreq"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "scaling_governor").write_bytes(content * 1000)
    assert size(describe(proc=tmp_path, sys=tmp_path)) < 1024


def test_imports_nothing_slow() -> None:
    code = "import perun.core.machine, sys; print(sys.modules.keys() & {'platform', 'subprocess', 'json'})"
    environ = {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], env=environ, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"
