"""Judges what an engine recorded of a program: exact, refused by name, or wrong without a word."""

import re
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple

from perun.collect.trace.engines.stap import script_of
from perun.collect.trace.plan import TraceSelection, make_plan
from perun.core.errors import JobFailed, PerunError
from perun.core.process.command import outcome
from perun.native.binary import Binary
from perun.profile.factory import Profile
from perun.profile.incomplete import text_of
from systemtap import cannot_check, check_script, fake_kernel
from zoo.programs import Program
from zoo.recording import ENGINES, Compiled, Plain, Recorded, prepare, record, run_plainly

EXACT: Final = "exact"
REFUSED: Final = "refused"
NOTED: Final = "noted"
CHECKED: Final = "checked"
WRONG: Final = "WRONG"
TRACERS: Final = ("ebpf", "uftrace", "stap")
MAY_REFUSE: Final = ("uftrace", "stap")
"""Engines that are there for what ebpf cannot do; what they refuse is up to them."""


UNKNOWN: Final = -1
"""In place of a number of calls that a profile does not tell."""
_FRAGMENT: Final = re.compile(r"\.(cold|part)\b")


class Cell(NamedTuple):
    """What came of a program and an engine.

    :ivar kind: one of :data:`EXACT`, :data:`REFUSED`, :data:`NOTED` (a profile that says what it lacks),
        :data:`CHECKED` (SystemTap accepts the script, and cannot run it here) and :data:`WRONG`.
    :ivar why: what the refusal or the notes say, or what is wrong.
    """

    kind: str
    why: str = ""


def lacking(program: Program, engine: str) -> str:
    """Why an engine cannot be judged here; empty where it can. Of SystemTap the script alone may do."""
    lacks = ENGINES[engine].lacks()
    if engine == "stap" and lacks and program.is_c and shutil.which("stap"):
        return ""
    return lacks


def judged(program: Program, compiled: Compiled, engine: str, folder: Path) -> Cell:
    """Run a program without Perun and with an engine, in an empty folder, and compare."""
    run = prepare(program, compiled, folder)
    if engine == "stap" and ENGINES[engine].lacks():
        return _of_script(program, folder)
    plain = run_plainly(run)
    if plain.status != program.status:
        return Cell(WRONG, f"without Perun it {_ended(plain)}: {plain.errors.decode(errors='replace')}")
    scratch = folder / "scratch"
    scratch.mkdir()
    collector, params = ENGINES[engine].collect(program)
    start = time.monotonic()
    recorded = record(collector, params, run, scratch)
    if recorded.refusal and time.monotonic() - start > params.timeout:
        return Cell(WRONG, f"it does not end: {recorded.refusal}")
    if plain.status > 0 and recorded.profile is not None:
        return Cell(WRONG, f"nothing says that it {_ended(plain)}")
    if plain.status and isinstance(recorded.refusal, JobFailed) and _ended(plain) in str(recorded.refusal):
        # A command that fails has no profile unless the user wants one.
        params = params.__class__(**{**vars(params), "ignore_failure": True})
        recorded = record(collector, params, run, scratch)
    if recorded.profile is None:
        return _of_refusal(program, engine, plain, recorded)
    return _of_profile(program, engine, plain, recorded, recorded.profile)


def _of_script(program: Program, folder: Path) -> Cell:
    """What SystemTap says of the script for a program, where it can only check that."""
    with ExitStack() as stack:
        paths = [folder / name for name in (program.source.stem, *program.trace.get("libs", ()))]
        binaries = [stack.enter_context(Binary(path)) for path in paths]
        try:
            plan = make_plan(binaries, TraceSelection(program.trace.get("strategy", "userspace")))
        except PerunError as refusal:
            return Cell(REFUSED, str(refusal))
    if plan.throws:
        return Cell(REFUSED, "SystemTap cannot trace programs that throw exceptions or switch stacks")
    done = check_script(script_of(plan), fake_kernel(folder / "kernel"), folder / "script.stp")
    if cannot_check(done):
        return Cell(REFUSED, "the symbols of this kernel are hidden")
    probes = done.stdout.count(".return")
    if done.returncode or probes < len(plan.probes):
        return Cell(WRONG, f"{probes} of {len(plan.probes)} functions: {done.stderr.strip()}")
    return Cell(CHECKED)


def _of_refusal(program: Program, engine: str, plain: Plain, recorded: Recorded) -> Cell:
    said = f"{recorded.refusal}; {recorded.refusal.hint}" if recorded.refusal else ""
    if _ended(plain) not in said and recorded.out not in (b"", plain.out):
        return Cell(WRONG, f"it refuses ({said}), and the program printed {recorded.out!r}")
    if engine in MAY_REFUSE or re.search(program.refused.get(engine, "(?!)"), said):
        return Cell(REFUSED, said)
    return Cell(WRONG, f"it refuses: {said}")


def _of_profile(program: Program, engine: str, plain: Plain, recorded: Recorded, profile: Profile) -> Cell:
    if (recorded.out, recorded.errors) != (plain.out, plain.errors):
        return Cell(WRONG, f"it prints {recorded.out + recorded.errors!r}, not {plain.out + plain.errors!r}")
    said = "; ".join(filter(None, (*recorded.notes, text_of(profile))))
    if plain.status < 0 and engine != "time" and _signal(plain) not in said:
        return Cell(WRONG, f"nothing says that it {_ended(plain)}")
    wrong: dict[str, str] = {}
    for name, difference in _differences(program, engine, profile):
        wrong.setdefault(name, difference)
    unsaid = [name for name in wrong if not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", said)]
    if not wrong:
        return Cell(EXACT)
    if unsaid and not re.search(program.refused.get(engine, "(?!)"), said):
        told = f" (notes: {said})" if said else ""
        return Cell(WRONG, "; ".join(f"{name}: {wrong[name]}" for name in unsaid) + told)
    return Cell(NOTED, said)


def _differences(program: Program, engine: str, profile: Profile) -> Iterator[tuple[str, str]]:
    """The functions of which the profile says something wrong, and what."""
    if engine == "time":
        if not any(one["subtype"] == "real" and one["amount"] > 0 for _, one in profile.all_resources()):
            yield "real", "no time"
        return
    if engine == "island":
        files = [one for _, one in profile.all_resources() if one["subtype"] == "filewrite"]
        written = sum(one["amount"] for one in files if program.name in one["uid"])
        if written != program.written:
            yield "written", f"{written} characters in place of {program.written}"
        return
    if engine == "memory --python":
        rows = [one for _, one in profile.all_resources() if one["subtype"] == "allocations"]
        if not any(one["uid"].get("function") == "build" for one in rows):
            yield "build", "nothing that it allocated"
        return
    if engine == "memory":
        expected, found = program.allocations, allocations(profile)
    elif engine == "complexity":  # it builds the program alone
        expected, found = program.calls, calls(profile)
    elif engine in TRACERS:
        expected, found = {**program.calls, **program.loaded}, calls(profile)
    elif engine == "callgrind":
        expected, found = {**program.calls, **program.loaded}, counted(profile)
    else:  # perf takes samples
        return
    for name, times in expected.items():
        if found[name] not in (times, UNKNOWN):
            yield name, f"{found[name]} in place of {times}"
    if engine in (*TRACERS, "complexity"):
        for name, sizes in program.sizes.items():
            read = sizes_of(profile, name)
            if read is not None and read != sizes:
                yield name, f"its sizes are {read}"
        for _, one in profile.all_resources():
            if not 0 <= one["exclusive"] <= one["amount"] * 1000 + 0.5:
                yield name_of(one["uid"]), f"{one['exclusive']} ns of its own in {one['amount']} us"


def name_of(uid: str) -> str:
    """The name of a function without its parameters."""
    return uid.partition("(")[0]


def calls(profile: Profile) -> Counter[str]:
    """How often functions were called, by their names without parameters."""
    found: Counter[str] = Counter()
    for group in profile.groups():
        found[name_of(str(group.constants["uid"]))] += group.size
    return found


def sizes_of(profile: Profile, function: str) -> tuple[int, ...] | None:
    """The sizes of the calls of a function, in their order; None where it has no sizes."""
    rows = [one for _, one in profile.all_resources() if name_of(one["uid"]) == function]
    if any(row.get("size-source") == "call-order" for row in rows):
        return None
    ordered = sorted(rows, key=lambda row: (row["thread"], row["call-order"]))
    return tuple(row.get("structure-unit-size", -1) for row in ordered)


def allocations(profile: Profile) -> Counter[str]:
    """How often functions allocated."""
    found: Counter[str] = Counter()
    for _, one in profile.all_resources():
        if one["subtype"] == "allocations" and "function" in one["uid"]:
            found[name_of(one["uid"]["function"])] += one["amount"]
    return found


def counted(profile: Profile) -> Counter[str]:
    """How often functions were called, of a profile of instructions."""
    found: Counter[str] = Counter()
    for _, one in profile.all_resources():
        name = str(one["uid"].get("function", ""))
        if one["subtype"] == "inclusive" and name and not _FRAGMENT.search(name):
            found[name_of(name)] += one.get("calls", UNKNOWN)
    return found


def _status(plain: Plain) -> int:
    """The status as `wait` gives it."""
    return plain.status << 8 if plain.status >= 0 else -plain.status


def _ended(plain: Plain) -> str:
    return outcome(_status(plain))


def _signal(plain: Plain) -> str:
    return _ended(plain).split()[2]
