"""What makes times uncertain, on made-up systems and on this one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from perun.core import conditions
from perun.core.conditions import lasting, observe
from perun.core.machine import class_of, describe

CPU = min(os.sched_getaffinity(0))
TOTAL = len(os.sched_getaffinity(0))
CPU_FOLDER = "sys/devices/system/cpu"
CLOCK = "sys/devices/system/clocksource/clocksource0/current_clocksource"
BATTERY = "sys/class/power_supply/BAT0"
DISCHARGING = {f"{BATTERY}/type": "Battery", f"{BATTERY}/status": "Discharging"}
QUIET = {
    f"{CPU_FOLDER}/intel_pstate/no_turbo": "1",
    f"{CPU_FOLDER}/cpufreq/boost": "0",
    f"{CPU_FOLDER}/cpu{CPU}/cpufreq/scaling_governor": "performance",
    "proc/cpuinfo": "processor: 0\nflags\t\t: fpu vme\n",
    "proc/loadavg": "0.10 0.20 3.00 1/100 1",
    "proc/self/cgroup": "0::/user.slice/one\n",
    "sys/fs/cgroup/user.slice/cpu.max": "max 100000",
    CLOCK: "tsc",
    f"{BATTERY}/type": "Battery",
    f"{BATTERY}/status": "Charging",
    "sys/class/power_supply/AC/type": "Mains",
    "sys/class/power_supply/mouse/type": "Battery",
    "sys/class/power_supply/mouse/scope": "Device",
    "sys/class/power_supply/mouse/status": "Discharging",
}


def system(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content + "\n")
    return root


def login(name: str, kind: int = 7) -> bytes:
    return kind.to_bytes(2, "little") + bytes(42) + name.encode().ljust(32, b"\0") + bytes(384 - 76)


def test_a_quiet_system(tmp_path: Path) -> None:
    assert observe(system(tmp_path, QUIET)) == []


def test_a_system_that_tells_nothing(tmp_path: Path) -> None:
    assert observe(tmp_path) == []


@pytest.mark.parametrize(
    ("files", "key", "words"),
    [
        ({f"{CPU_FOLDER}/intel_pstate/no_turbo": "0"}, "turbo", "turbo is on"),
        ({f"{CPU_FOLDER}/cpufreq/boost": "1"}, "turbo", "turbo is on"),
        ({f"{CPU_FOLDER}/cpu{CPU}/cpufreq/scaling_governor": "powersave"}, "governor", "powersave"),
        ({"proc/loadavg": f"{TOTAL}.50 0 0 1/1 1"}, "load", f"a load of {TOTAL}.5 on {TOTAL} processor"),
        ({"proc/cpuinfo": "flags : fpu hypervisor\n"}, "virtual", "virtual machine"),
        ({CLOCK: "kvm-clock"}, "clock", "of a virtual machine (kvm-clock)"),
        ({CLOCK: "hyperv_clocksource_tsc_page"}, "clock", "hyperv"),
        ({CLOCK: "acpi_pm"}, "clock", "acpi_pm, which is slow"),
        ({**DISCHARGING, f"{BATTERY}/capacity": "80"}, "battery", "runs on battery (80 %)"),
        ({**DISCHARGING, f"{BATTERY}/capacity": "9"}, "battery", "low battery (9 %)"),
        (DISCHARGING, "battery", "runs on battery:"),
        ({"sys/fs/cgroup/user.slice/one/cpu.max": "50000 100000"}, "quota", f"0.5 of {TOTAL} processors"),
        ({"sys/fs/cgroup/cpu.max": "25000 100000"}, "quota", f"0.25 of {TOTAL}"),
        ({"run/user/54321/bus": ""}, "users", "1 other user is logged in"),
    ],
)
def test_each_condition(files: dict[str, str], key: str, words: str, tmp_path: Path) -> None:
    (found,) = observe(system(tmp_path, {**QUIET, **files}))
    assert found.key == key
    assert words in found.message
    assert "\n" not in found.message
    assert found.advice
    assert lasting(tmp_path) == ([] if found.momentary else [key])


def test_who_is_logged_in(tmp_path: Path) -> None:
    import pwd

    me = pwd.getpwuid(os.getuid()).pw_name
    (tmp_path / "run").mkdir()
    utmp = tmp_path / "run/utmp"
    utmp.write_bytes(login(me) + login("ada", kind=8) + login("tty", kind=6))
    assert observe(tmp_path) == []
    utmp.write_bytes(login(me) + login("ada") + login("ada") + login("eve")[:200])
    assert [one.message.partition(":")[0] for one in observe(tmp_path)] == ["2 other users are logged in"]
    utmp.write_bytes(os.urandom(5000))
    observe(tmp_path)


@pytest.mark.parametrize("content", ["", "x", "- -", "1 0", "max", "\0\xff"])
def test_files_that_hold_something_else(content: str, tmp_path: Path) -> None:
    files = dict.fromkeys(
        [*QUIET, "sys/fs/cgroup/cpu.max", f"{BATTERY}/capacity", "proc/self/loginuid"], content
    )
    root = system(tmp_path, {**files, **DISCHARGING})
    assert "battery" in [one.key for one in observe(root)]


def test_this_system() -> None:
    known = {"turbo", "governor", "quota", "virtual", "clock", "battery", "load", "users"}
    assert {one.key for one in observe()} <= known
    assert set(lasting()) <= known - {"load", "users", "battery"}


def test_nothing_slow_is_imported() -> None:
    assert set(vars(conditions)) & {"subprocess", "re", "dataclasses", "json"} == set()


def test_class_of_a_machine() -> None:
    assert class_of(describe()) == class_of(describe()) != ""
    one = {"cpu": {"model": "CPU A", "total": 8}, "architecture": "x86_64", "load": [1.0]}
    assert class_of(one) == "CPU A, 8 processors, x86_64"
    assert class_of({**one, "load": [2.0], "release": "6.1"}) == class_of(one)
    assert class_of({"cpu": {"total": 8}}) == class_of({}) == class_of({"cpu": 3}) == ""
