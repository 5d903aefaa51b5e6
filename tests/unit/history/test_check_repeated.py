"""Profiles that were made again and again of one configuration and version: one verdict, in every format."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from perun.cli.answers.check import answer_in
from perun.cli.answers.check.wording import Page
from perun.history.check.check import check_head
from perun.history.check.report import VersionReport
from perun.plugin.api import NO_POSTPROCESS_CONTEXT
from perun.postprocess.regression_analysis import RegressionAnalysis, RegressionParams
from perun.profile.factory import Profile
from perun.repository.init import init
from perun.repository.repository import open_repository
from perun.store.pending import link

WORKLOADS = ("small", "big")


def traced(slope: float, workload: str, number: int) -> Profile:
    """A profile that each method can be applied to: calls of several sizes, models, and exclusive times."""
    header = {"type": "mixed", "cmd": "./list", "args": "", "workload": workload, "units": {"mixed": "us"}}
    profile = Profile(
        {
            "header": header,
            "collector_info": {"name": "trace", "params": {}},
            "postprocessors": [{"name": "regression_analysis", "params": {"method": "full"}}],
        }
    )
    profile.update_resources(
        [
            {"uid": uid, "type": "mixed", "amount": slope * size + number / 100, "structure-unit-size": size}
            for uid in ("search", "push")
            for size in range(1, 21)
        ]
    )
    RegressionAnalysis().process(profile, RegressionParams(method="full"), NO_POSTPROCESS_CONTEXT)
    profile.update_resources(
        [
            {"uid": f"f{one}", "type": "mixed", "exclusive": 1e6 * time, "location": "/a"}
            for one, time in enumerate([1.0, 2.0, 3.0, 4.0, 5.0 * slope, 6.0, 7.0, 8.0, 9.0])
        ]
    )
    return profile


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> VersionReport:
    """The check of three profiles of each workload against three, one of them far off, by every method."""
    folder = tmp_path_factory.mktemp("repeated")
    environ = {**os.environ, "PERUN_CONFIG_DIR": str(folder / "config"), "HOME": str(folder)}
    place = folder / "project"

    def git(*words: str) -> str:
        identity = ["-c", "user.name=A", "-c", "user.email=a@b"]
        return subprocess.check_output(["git", *identity, *words], cwd=place, text=True).strip()

    place.mkdir()
    git("init", "-q")
    for subject in ("First", "Second"):
        git("commit", "-q", "--allow-empty", "-m", subject)
    init(place, environ)
    repo = open_repository(place, environ)
    rules = [{"method": name} for name in repo.registry.names("check")]
    config = {"vcs": {"type": "git", "url": ".."}, "degradation": {"strategies": rules}}
    (place / ".perun/local.yml").write_text(json.dumps(config))
    repo = open_repository(place, environ)
    for revision, slopes in (("HEAD~1", (1.0, 9.0, 1.1)), ("HEAD", (3.0, 0.3, 3.3))):
        made = [
            (traced(slope, workload, number), f"{workload}-{number}.perf", 1_700_000_000 + number)
            for workload in WORKLOADS
            for number, slope in enumerate(slopes)
        ]
        link(repo.store, git("rev-parse", revision), made)
    return check_head(repo, None)


def shown(report: VersionReport, name: str) -> str:
    out = io.StringIO()
    answer = answer_in(name, Page(out, verbose=True, single=True))
    answer.version(report)
    answer.end()
    return out.getvalue()


def test_each_method_says_one_thing_of_a_place(report: VersionReport) -> None:
    assert sorted(one.target.head.workload for one in report.comparisons) == sorted(WORKLOADS)
    for comparison in report.comparisons:
        assert comparison.notes == ("pooled profiles: 3 of the baseline, 3 of the target",)
        assert len(comparison.results) >= 9
        applied = [result for result in comparison.results if result.changes]
        assert len(applied) >= 8, [result.reason for result in comparison.results]
        for result in applied:
            places = Counter((change.location, change.type) for change in result.changes)
            assert set(places.values()) == {1}, result


def places_in_json(text: str) -> Counter[Any]:
    return Counter(
        (one["workload"], change["method"], change["location"], change["type"])
        for one in json.loads(text)["comparisons"]
        for change in one["changes"]
    )


def places_in_junit(text: str) -> Counter[Any]:
    suites = re.findall(r'<testsuite name="(\S+) .*?</testsuite>', text, re.DOTALL)
    cases = re.findall(r'<testcase classname="(.*?)" name="(.*?)"', text)
    assert len(suites) == len(set(suites))
    return Counter(cases)


def places_in_sarif(text: str) -> Counter[Any]:
    (run,) = json.loads(text)["runs"]
    return Counter(one["fingerprints"]["perunChange/v1"] for one in run["results"])


def headings_in_markdown(text: str) -> Counter[Any]:
    return Counter(re.findall(r"^`trace\S*` of `(.*?)`", text, re.MULTILINE))


def headings_in_text(text: str) -> Counter[Any]:
    return Counter(re.findall(r"^\|? +(\./list \S+) \(trace", text, re.MULTILINE))


def headings_in_manual(text: str) -> Counter[Any]:
    return Counter(re.findall(r"cmd: '\$ (.*)'", text))


@pytest.mark.parametrize(
    ("name", "places"),
    [
        ("json", places_in_json),
        ("sarif", places_in_sarif),
        ("markdown", headings_in_markdown),
        ("text", headings_in_text),
        ("manual", headings_in_manual),
    ],
)
def test_every_format_tells_each_once(
    report: VersionReport, name: str, places: Callable[[str], Counter[Any]]
) -> None:
    found = places(shown(report, name))
    assert len(found) >= len(WORKLOADS)
    assert set(found.values()) == {1}, found


def test_a_case_of_junit_is_of_one_method(report: VersionReport) -> None:
    assert max(places_in_junit(shown(report, "junit")).values()) <= len(report.comparisons[0].results)
