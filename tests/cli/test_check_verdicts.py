"""`perun check` in a new repository: intervals, what takes their place, and what is not comparable."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perun.profile import session
from perun.profile.factory import Profile, load_profile, store_profile
from perun.store.changes import parse

KERNEL = {"machine": {"release": "6.1.0", "build": "CFLAGS=-O2"}}


def timed(path: Path, factor: float, side: str = "", sigma: float = 0.01, **regions: Any) -> str:
    """A profile of 20 runs of a program; those with a side belong together pair by pair."""
    seed = {"": 1, "base": 2, "head": 3}[side]
    noise = np.random.default_rng(seed).lognormal(0, sigma, 20)
    profile = Profile(
        {
            "header": {"type": "time", "cmd": "./prog", "args": "", "workload": "", "units": {"time": "s"}},
            "collector_info": {"name": "time", "params": {}},
            "postprocessors": [],
            **regions,
        }
    )
    profile.update_resources(
        {"uid": "./prog", "type": "time", "subtype": subtype, "order": order, "amount": share * value}
        for order, value in enumerate((factor * noise).tolist(), 1)
        for subtype, share in (("real", 1.0), ("user", 0.7), ("sys", 0.1))
    )
    profile.update_resources([{"uid": "setup", "type": "time", "amount": 3.0 * factor}])
    if side:
        session.mark(profile, "s", side)  # type: ignore[arg-type]
    store_profile(profile, path)
    return str(path)


def results(outcome: Any) -> dict[str, tuple[str, str]]:
    """The method and the result by location."""
    changes = outcome.json["comparisons"][0]["changes"]
    found = {change["location"]: (change["method"], change["result"]) for change in changes}
    assert len(found) == len(changes), "each place is told once"
    return found


@pytest.fixture
def check(project: Any, perun: Callable[..., Any], tmp_path: Path) -> Callable[..., Any]:
    def run(
        factor: float, *options: str, sides: bool = True, sigma: float = 0.01, **regions: Any
    ) -> Any:
        old = timed(tmp_path / "old.perf", 1.0, "base" if sides else "", sigma, **({} if sides else KERNEL))
        new = timed(tmp_path / "new.perf", factor, "head" if sides else "", sigma, **regions)
        return perun("check", "--json", *options, "profiles", old, new, check=False)

    return run


def test_a_new_repository_answers_with_intervals(
    perun: Callable[..., Any], check: Callable[..., Any]
) -> None:
    outcome = check(2.2, "--fail-on", "severe")
    assert outcome.code == 1
    clocks = dict.fromkeys(
        ("./prog [cpu]", "./prog [real]", "./prog [sys]", "./prog [user]"),
        ("hodges_lehmann_ratio", "SevereDegradation"),
    )
    # What was measured once has no noise that is known; the other method takes its place.
    assert results(outcome) == clocks | {"setup": ("average_amount_threshold", "Degradation")}
    perun("config", "--local", "set", "degradation.apply", "first")
    assert results(check(2.2)) == results(outcome), "what takes the place of the first rule belongs to it"
    change = outcome.json["comparisons"][0]["changes"][0]
    assert 2.1 < change["interval"][0] < 2.2 < change["interval"][1] < 2.3
    assert change["sizes"] == [20, 20]
    assert 1 < change["detectable"] < 1.05
    assert change["p_value"] < 0.01
    assert "a second metric confirms it" in change["rule"]


def test_inconclusive_has_an_exit_code_of_its_own(check: Callable[..., Any]) -> None:
    undecided = check(1.0, "--fail-on", "inconclusive", sigma=0.06)
    assert results(undecided) == dict.fromkeys(
        ("./prog [cpu]", "./prog [real]"), ("hodges_lehmann_ratio", "Unknown")
    ), "nothing can be said of user and sys either, which cpu tells"
    assert undecided.code == 12
    assert check(1.0, "--fail-on", "degradation", sigma=0.06).code == 0
    assert check(1.0, "--fail-on", "inconclusive").code == 0
    assert check(1.2, "--fail-on", "inconclusive").code == 1


def test_unlike_conditions_are_named_and_can_be_forced(check: Callable[..., Any]) -> None:
    other = {"machine": {"release": "6.8.0", "build": "CFLAGS=-O0"}}
    outcome = check(3.0, "--fail-on", "inconclusive", sides=False, **other)
    assert outcome.code == 12
    assert results(outcome) == {"./prog": ("hodges_lehmann_ratio", "Unknown")}
    told = "kernel: 6.1.0 and 6.8.0; build: CFLAGS=-O2 and CFLAGS=-O0"
    assert outcome.json["comparisons"][0]["environment"] == told
    forced = check(3.0, "--fail-on", "inconclusive", "--force", sides=False, **other)
    assert forced.code == 1
    assert forced.json["comparisons"][0]["environment"] == told
    assert "--force" in outcome.json["comparisons"][0]["changes"][0]["rule"]


def test_of_several_profiles_that_of_the_same_session_is_the_baseline(
    project: Any, perun: Callable[..., Any], tmp_path: Path
) -> None:
    for revision, side, session_id in (
        ("HEAD~1", "base", "first"), ("HEAD", "head", "first"), ("HEAD~1", "base", "second")
    ):  # fmt: skip
        profile = load_profile(timed(tmp_path / "made.perf", 1.1 if side == "head" else 1.0, side))
        session.mark(profile, session_id, side)  # type: ignore[arg-type]
        file = tmp_path / f"{side}-{session_id}.perf"
        store_profile(profile, file)
        perun("add", "-m", revision, "--force", str(file))
    outcome = perun("check", "head", "--json")
    (compared,) = outcome.json["comparisons"]
    assert compared["baseline_profile"] == "base-first.perf"
    # Samples measured apart would be a Maybe.
    assert results(outcome)["./prog [cpu]"] == ("hodges_lehmann_ratio", "Degradation")


def test_what_is_stored_of_a_change_is_what_older_releases_read(
    project: Any, perun: Callable[..., Any], tmp_path: Path
) -> None:
    for revision, factor, side in (("HEAD~1", 1.0, "base"), ("HEAD", 2.5, "head")):
        file = timed(tmp_path / f"{side}.perf", factor, side)
        perun("add", "-m", revision, "--force", "--keep-profile", file)
    text = perun("check", "head", "--format", "manual").out
    assert "why: the 99 % interval of the ratio" in text
    head = project.git("rev-parse", "HEAD")
    stored = project.path / ".perun" / "objects" / head[:2] / f"{head[2:]}.changes"
    lines = stored.read_text().splitlines()
    # Nine fields, the version of the baseline, and the collector with the command.
    assert all(len(line.split(" ")) == 12 for line in lines)
    assert {one.info.location for one in parse(stored.read_bytes(), "file")} == {
        "./prog [cpu]", "./prog [real]", "./prog [sys]", "./prog [user]", "setup"
    }  # fmt: skip
