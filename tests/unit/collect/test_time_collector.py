"""The profile that the time collector makes, and how it fails."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from perun.collect.time import COLLECTOR_DEFAULT_UNITS, COLLECTOR_TYPE, TimeCollector, TimeParams
from perun.core.errors import JobFailed
from perun.plugin.api import CollectContext, Run
from perun.plugin.params import specs
from perun.profile.factory import Profile

MakeRun = Callable[..., Run]
Reports = list[tuple[str, int, int]]


def collect(run: Run, scratch: Path, reports: Reports | None = None, **params: object) -> Profile:
    seen: Reports = [] if reports is None else reports
    ctx = CollectContext(scratch, lambda *report: seen.append(report))
    return TimeCollector().collect(run, TimeParams(**params), ctx)  # type: ignore[arg-type]


def test_profile(make_run: MakeRun, tmp_path: Path) -> None:
    profile = collect(make_run("sleep", "0.01"), tmp_path, warmup=1, repeat=2)
    assert COLLECTOR_TYPE == "time"
    assert COLLECTOR_DEFAULT_UNITS == {"time": "s"}
    assert profile["header"] == {
        "type": "time",
        "units": {"time": "s"},
        "cmd": "./prog",
        "args": "sleep",
        "workload": "0.01",
    }
    assert profile["collector_info"]["name"] == "time"
    assert profile["collector_info"]["params"]["repeat"] == 2
    assert profile["collector_info"]["params"]["warmup"] == 1
    assert profile["postprocessors"] == []
    resources = [resource for _, resource in profile.all_resources()]
    assert sorted((resource["subtype"], resource["order"]) for resource in resources) == [
        (subtype, order) for subtype in ("real", "sys", "user") for order in (1, 2)
    ]
    for resource in resources:
        assert resource.keys() == {"amount", "type", "subtype", "uid", "order"}
        assert resource["uid"] == "./prog"
        assert resource["type"] == "time"
        assert isinstance(resource["amount"], float)
        assert (0.01 if resource["subtype"] == "real" else 0) <= resource["amount"] < 5


def test_amounts_stay_in_the_order_of_the_runs(make_run: MakeRun, tmp_path: Path) -> None:
    profile = collect(make_run(), tmp_path, warmup=0, repeat=12)
    for columns in profile["resources"].values():
        assert columns["order"] == list(range(1, 13))


def test_progress(make_run: MakeRun, tmp_path: Path) -> None:
    reports: Reports = []
    collect(make_run("sleep 0"), tmp_path, reports, warmup=2, repeat=3)
    assert reports == [
        *(("warming up", done, 2) for done in range(3)),
        *(("timing ./prog sleep 0", done, 3) for done in range(4)),
    ]


def test_defaults_of_the_manual() -> None:
    declared = {spec.name: spec for spec in specs(TimeParams)}
    assert (declared["warmup"].default, declared["warmup"].flags) == (3, ["-w", "--warmup"])
    assert (declared["repeat"].default, declared["repeat"].flags) == (10, ["-r", "--repeat"])
    assert declared["ignore_failure"].flags == ["-i", "--ignore-failure"]


def test_failure_says_what_when_and_why(make_run: MakeRun, tmp_path: Path) -> None:
    with pytest.raises(JobFailed) as failure:
        collect(make_run("fail", "20"), tmp_path)
    lines = failure.value.message.splitlines()
    assert lines[0] == "the command './prog fail 20' exited with status 3 (warm-up 1 of 3)"
    assert lines[2:] == [f"  complaint {line} [31m" for line in range(11, 21)]
    assert "--ignore-failure" in failure.value.hint
    assert failure.value.exit_code == 8


def test_failure_of_a_later_run(make_run: MakeRun, tmp_path: Path) -> None:
    with pytest.raises(JobFailed, match=r"status 7 \(run 2 of 5\)"):
        collect(make_run(f"third {tmp_path / 'count'}"), tmp_path, warmup=1, repeat=5)


def test_signal_is_named(make_run: MakeRun, tmp_path: Path) -> None:
    with pytest.raises(JobFailed, match=r"killed by SIGSEGV \(Segmentation fault\)"):
        collect(make_run("signal 11"), tmp_path)


def test_ignored_failure_is_recorded(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run(f"third {tmp_path / 'count'}")
    profile = collect(run, tmp_path, warmup=1, repeat=4, ignore_failure=True)
    codes = {resource["order"]: resource["exitcode"] for _, resource in profile.all_resources()}
    assert codes == {1: 0, 2: 7, 3: 0, 4: 0}
    killed = collect(make_run("signal 9"), tmp_path, warmup=0, repeat=1, ignore_failure=True)
    assert {resource["exitcode"] for _, resource in killed.all_resources()} == {137}


def test_timeout_is_no_failure_to_ignore(make_run: MakeRun, tmp_path: Path) -> None:
    with pytest.raises(JobFailed, match=r"within 0\.05 s"):
        collect(make_run("sleep 20"), tmp_path, timeout=0.05, ignore_failure=True)


def test_interrupted_report_leaves_the_folder(make_run: MakeRun, tmp_path: Path) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = Path.cwd()
    with pytest.raises(KeyboardInterrupt):
        TimeCollector().collect(make_run(), TimeParams(), CollectContext(tmp_path, interrupt))
    assert Path.cwd() == before
