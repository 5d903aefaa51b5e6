"""What about this machine, or this moment, makes measured times less certain: read from the system.

Nothing here changes the system, needs more rights than a user has, or takes longer than reading a few files.
What a system does not tell, or tells elsewhere, is left out.
"""

from __future__ import annotations

import os
import pwd
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

_READ_LIMIT: Final = 64 * 1024
_BUSY_SHARE: Final = 0.25
"""Load, as a share of the processors, from which on other programs are likely to be in the way."""
_MIN_LOAD: Final = 0.5
"""A load that a system has from its own services, however few processors it has."""
_LOW_BATTERY: Final = 20
"""Percentage of a battery below which systems begin to save power."""
_SLOW_CLOCKS: Final = ("hpet", "acpi_pm", "jiffies", "refined-jiffies")
_VIRTUAL_CLOCKS: Final = ("kvm-clock", "xen", "hyperv_clocksource", "vmi-timer")
_UTMP_RECORD: Final = 384
"""Bytes of an entry of `utmp` (Linux, glibc): type at 0, the name of the user in 32 bytes at 44."""
_USER_PROCESS: Final = 7
_FIRST_USER: Final = 1000
"""Number of the first user who is a person, as usual on Linux."""


class Condition(NamedTuple):
    """Something that makes times less certain.

    `key` names it in profiles; `message` is one line; `advice` says what can be done, or is empty.
    `momentary`: it depends on the moment, not on the machine and its settings.
    """

    key: str
    message: str
    advice: str = ""
    momentary: bool = False


def observe(root: Path = Path("/")) -> list[Condition]:
    """What is found now.

    :param root: where `/proc`, `/sys` and `/run` lie.
    """
    checks = (_turbo, _governor, _quota, _virtual, _clock, _battery, _load, _users)
    return [condition for check in checks for condition in check(root)]


def lasting(root: Path = Path("/")) -> list[str]:
    """The keys of the conditions that do not depend on the moment; a profile holds them with the machine."""
    return [condition.key for condition in observe(root) if not condition.momentary]


def _text(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(_READ_LIMIT).decode("utf-8", "replace").strip()
    except OSError:
        return ""


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _processors() -> list[int]:
    try:
        return sorted(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        return list(range(os.cpu_count() or 1))


def _turbo(root: Path) -> Iterator[Condition]:
    cpu = root / "sys/devices/system/cpu"
    if _text(cpu / "intel_pstate/no_turbo") == "0":
        off = "echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo"
    elif _text(cpu / "cpufreq/boost") == "1":
        off = "echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost"
    else:
        return
    message = "turbo is on: a cool processor is faster than a warm one"
    yield Condition("turbo", message, f"switch it off: {off}")


def _governor(root: Path) -> Iterator[Condition]:
    cpu = root / "sys/devices/system/cpu"
    found = {_text(cpu / f"cpu{number}/cpufreq/scaling_governor") for number in _processors()}
    others = sorted(found - {"performance", ""})
    if others:
        yield Condition(
            "governor",
            f"the frequency governor is {', '.join(others)}: processors speed up only after some time",
            "keep them at their speed: sudo cpupower frequency-set --governor performance",
        )


def quota(root: Path = Path("/")) -> float | None:
    """How many processors the control groups of this process allow it to use; None for all."""
    lines = _text(root / "proc/self/cgroup").splitlines()
    line = next((one for one in lines if one.startswith("0::")), "0::/")
    path = Path(line[3:].lstrip("/"))
    top = root / "sys/fs/cgroup"
    shares = []
    for folder in (path, *path.parents):
        allowed, _, period = _text(top / folder / "cpu.max").partition(" ")
        limit, length = _number(allowed), _number(period)
        if limit is not None and length:
            shares.append(limit / length)
    return min(shares, default=None)


def _quota(root: Path) -> Iterator[Condition]:
    allowed, total = quota(root), len(_processors())
    if allowed is not None and allowed < total:
        share = f"{allowed:g} of {total} processors"
        yield Condition(
            "quota",
            f"a control group allows {share}: a program that uses more is throttled",
            "measure without a limit, e.g. docker run without --cpus",
        )


class Processor(NamedTuple):
    """What the system says of a processor, empty where it does not: the numbers of those that share its core,
    and its highest frequency."""

    siblings: str
    fastest: str


def of_processor(number: int, root: Path = Path("/")) -> Processor:
    """That of one processor."""
    cpu = root / f"sys/devices/system/cpu/cpu{number}"
    return Processor(_text(cpu / "topology/thread_siblings_list"), _text(cpu / "cpufreq/cpuinfo_max_freq"))


def _virtual(root: Path) -> Iterator[Condition]:
    flags = next(
        (line for line in _text(root / "proc/cpuinfo").splitlines() if line.startswith("flags")), ""
    ).split()
    if "hypervisor" in flags or _text(root / "sys/hypervisor/type"):
        yield Condition(
            "virtual",
            "this is a virtual machine: time that its host gives to others counts as time of the program",
            "measure more often (time: repeat, matrix: --rounds), or on a machine of its own",
        )


def _clock(root: Path) -> Iterator[Condition]:
    clock = _text(root / "sys/devices/system/clocksource/clocksource0/current_clocksource")
    if clock.startswith(_VIRTUAL_CLOCKS):
        message = f"the clock is that of a virtual machine ({clock}): short times are uncertain"
        yield Condition("clock", message, "measure commands that run for milliseconds or longer")
    elif clock in _SLOW_CLOCKS:
        message = f"the clock is {clock}, which is slow to read: short times are uncertain"
        why = "see why the kernel does not use tsc: sudo dmesg | grep -i clocksource"
        yield Condition("clock", message, why)


def _battery(root: Path) -> Iterator[Condition]:
    supplies = root / "sys/class/power_supply"
    try:
        names = sorted(os.listdir(supplies))
    except OSError:
        return
    for name in names:
        one = supplies / name
        if _text(one / "type") != "Battery" or _text(one / "scope") == "Device":  # of a mouse
            continue
        if _text(one / "status") == "Discharging":
            level = _number(_text(one / "capacity"))
            low = "low battery" if level is not None and level < _LOW_BATTERY else "battery"
            left = f" ({level:g} %)" if level is not None else ""
            message = f"this machine runs on {low}{left}: it slows the processor down to save power"
            yield Condition("battery", message, "plug it in", momentary=True)
            return


def _load(root: Path) -> Iterator[Condition]:
    load = _number(_text(root / "proc/loadavg").partition(" ")[0])
    total = len(_processors())
    if load is not None and load > max(_MIN_LOAD, _BUSY_SHARE * total):
        of = f"{total} processor{'s' * (total > 1)}"
        message = f"other programs are running: a load of {load:g} on {of} in the last minute"
        yield Condition("load", message, "wait until they end; top lists them", momentary=True)


def _users(root: Path) -> Iterator[Condition]:
    others = _logged_in(root)
    if others:
        who = f"{len(others)} other user{'s are' if len(others) > 1 else ' is'} logged in"
        yield Condition(
            "users", f"{who}: their programs take time from the measured one", "measure at another time", True
        )


def _logged_in(root: Path) -> set[str]:
    """The names, or numbers, of users who are logged in, but for the one who measures."""

    def name_of(number: int) -> str:
        try:
            return pwd.getpwuid(number).pw_name
        except KeyError:
            return str(number)

    try:
        data = (root / "run/utmp").read_bytes()[: _READ_LIMIT * 4]
    except OSError:
        data = b""
    records = (data[start : start + _UTMP_RECORD] for start in range(0, len(data), _UTMP_RECORD))
    names = {
        record[44:76].partition(b"\0")[0].decode("utf-8", "replace")
        for record in records
        if int.from_bytes(record[:2], "little") == _USER_PROCESS
    }
    try:
        folders = os.listdir(root / "run/user")
    except OSError:
        folders = []
    names |= {name_of(int(one)) for one in folders if one.isdecimal() and int(one) >= _FIRST_USER}
    # Who became root by sudo is still the one who logged in.
    own = {name_of(os.getuid())}
    login = _text(root / "proc/self/loginuid")
    if login.isdecimal():
        own.add(name_of(int(login)))
    return names - own - {""}


# What else the machine did while something was measured: stolen time, and processes that waited for a core.
#
# Only what the kernel counts anyway is read: `/proc/stat` and `/proc/pressure/cpu` (Linux 4.20 and newer;
# where it is missing, waiting is not seen).

_IDLE: Final = (3, 4)
"""Fields of the first line of `/proc/stat`, from 0, behind its name: ticks in which a processor had nothing
to do, or only waited for a disk."""
_STEAL: Final = 7
"""The field of the ticks that the host gave to others."""
_COUNTED: Final = 8
"""Fields that together are all the time; those behind them are part of others."""
STOLEN: Final = 0.1
"""Share of the processors' time that is stolen in a measurement under disturbance."""
MIN_TICKS: Final = 2
"""Stolen ticks, of mostly 10 ms, below which the share says nothing."""
JUMP: Final = 0.35
"""By so much the share of time in which some process waits for a core is above what was usual before."""
SHORTEST: Final = 0.02
"""Seconds below which that share says nothing."""
_REMEMBERED: Final = 15
_KNOWN_AFTER: Final = 5
"""Measurements that tell what is usual."""


class Moment(NamedTuple):
    """The counters at one moment.

    :param steal: ticks stolen, and :param ticks: ticks in all, both of all processors together.
    :param waiting: seconds in which some process waited for a core. :param clock: seconds.
    :param busy: seconds in which processors worked, or were stolen, of all together.
    """

    steal: int
    ticks: int
    waiting: float
    clock: float
    busy: float = 0.0


def now(proc: Path = Path("/proc")) -> Moment:
    """The counters now; those that cannot be read stay 0."""
    fields = _ticks(proc / "stat")
    busy = (sum(fields) - sum(fields[field] for field in _IDLE)) / os.sysconf("SC_CLK_TCK")
    waiting = _waiting(proc / "pressure" / "cpu")
    return Moment(fields[_STEAL], sum(fields), waiting, time.monotonic(), busy)


class ConditionWatch:
    """Judges measurements by what is usual in this session: a machine that is always busy is no disturbance,
    since both of a pair suffer from it alike."""

    def __init__(self) -> None:
        self._usual: deque[float] = deque(maxlen=_REMEMBERED)

    def disturbance(self, before: Moment, after: Moment) -> str:
        """What disturbed the measurement between the two moments, in words; empty where nothing did."""
        stolen, ticks = after.steal - before.steal, after.ticks - before.ticks
        if stolen >= MIN_TICKS and ticks > 0 and stolen / ticks > STOLEN:
            return f"{100 * stolen / ticks:.0f} % of the time was stolen by the host"
        elapsed = after.clock - before.clock
        if elapsed < SHORTEST:
            return ""
        share = min(1.0, (after.waiting - before.waiting) / elapsed)
        usual = median(self._usual) if len(self._usual) >= _KNOWN_AFTER else 1.0
        self._usual.append(share)
        if share - usual > JUMP:
            return (
                f"other processes came in between: for {100 * share:.0f} % of the time somebody waited for a "
                f"core, otherwise {100 * usual:.0f} %"
            )
        return ""


def _ticks(file: Path) -> list[int]:
    try:
        with open(file, "rb") as stat:
            fields = [int(field) for field in stat.readline().split()[1 : 1 + _COUNTED]]
    except (OSError, ValueError):
        fields = []
    return fields if len(fields) == _COUNTED else [0] * _COUNTED


def _waiting(file: Path) -> float:
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return 0.0
    try:
        first = os.read(descriptor, 4096).split(b"\n", 1)[0]
        return int(first.rpartition(b"total=")[2]) / 1e6
    except (OSError, ValueError):
        return 0.0
    finally:
        os.close(descriptor)
