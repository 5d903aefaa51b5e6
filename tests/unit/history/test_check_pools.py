"""Which profiles of a version a check takes and pools, and the order in which ancestors are looked at."""

import io
import json
import os
import random
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from perun.cli.answers.check import answer_in
from perun.cli.answers.check.wording import Page
from perun.history.check import pools
from perun.history.check.check import Ancestry, check_head
from perun.history.check.pairing import Baselines, newest_first
from perun.history.check.pools import Pools, Profiles
from perun.history.check.report import VersionReport
from perun.plugin.api import NO_POSTPROCESS_CONTEXT, MinorVersion
from perun.postprocess.regression_analysis import RegressionAnalysis, RegressionParams
from perun.profile.factory import Profile
from perun.profile.head import ProfileHeader
from perun.profile.helpers import ProfileInfo
from perun.profile.incomplete import interrupted, mark
from perun.profile.session import count_of
from perun.repository import lookup
from perun.repository.init import init
from perun.repository.repository import Repository, open_repository
from perun.store.pending import link
from profiles import columns_of, profile_of

Register = Callable[..., list[ProfileInfo]]


def made(amount: float, workload: str = "", incomplete: bool = False, machine: str = "") -> Profile:
    profile = profile_of(columns_of({"f": [amount]}), "time", "ms", cmd="app", workload=workload)
    if incomplete:
        mark(profile, [interrupted(1.0)])
    if machine:
        profile["machine"] = {"architecture": "x86_64", "cpu": {"model": machine, "total": 4}}
    return profile


@pytest.fixture
def repo(git_repository: Callable[..., Any]) -> Repository:
    git = git_repository(commits=1)
    init(git.path, os.environ)
    return open_repository(git.path, os.environ)


@pytest.fixture
def register(repo: Repository) -> Register:
    """Register profiles in the only version, each newer than those before; all of it, the newest first."""

    def make(*profiles: Profile) -> list[ProfileInfo]:
        head = repo.vcs.get_minor_head()
        link(repo.store, head, [(one, f"{time}.perf", time) for time, one in enumerate(profiles, 1)])
        infos = lookup.registered(repo, head)
        return sorted(infos, key=lambda info: info.time, reverse=True)

    return make


def unchanged(profile: Profile, name: str, params: Mapping[str, Any]) -> Profile:
    return profile


def amounts(profile: Profile) -> list[float]:
    return [resource["amount"] for _, resource in profile.all_resources()]


def test_alike_profiles_are_pooled_once(repo: Repository, register: Register) -> None:
    newest, *others = register(*map(made, (1.0, 2.0, 3.0)))
    pooling = Pools(Profiles(repo), unchanged)
    pooled = pooling.pooled(newest, others)
    assert amounts(pooled) == [1.0, 2.0, 3.0]
    assert pooling.pooled(newest, others) is pooled
    alone = pooling.pooled(newest, [])
    assert (amounts(alone), count_of(alone)) == ([3.0], 1)
    assert pooling.notes(pooled, alone) == ("pooled profiles: 3 of the baseline, 1 of the target",)
    assert pooling.notes(alone, alone) == ()


def test_what_was_measured_otherwise_is_left_out(repo: Repository, register: Register) -> None:
    newest, *others = register(
        made(1.0, machine="fast"), made(2.0, machine="slow"), made(3.0, incomplete=True, machine="fast"),
        made(4.0, machine="fast"),
    )  # fmt: skip
    pooling = Pools(Profiles(repo), unchanged)
    pooled = pooling.pooled(newest, others)
    assert amounts(pooled) == [1.0, 4.0]
    assert pooling.notes(pooled, pooled)[1] == "2 older profiles not pooled: incomplete, processor differs"
    # One that is incomplete itself is compared with nothing, so nothing is pooled with it.
    assert amounts(pooling.pooled(others[0], others[1:])) == [3.0]


@pytest.mark.parametrize("room", [0, 1])
def test_the_newest_are_pooled_where_there_are_too_many(repo, register, monkeypatch, room) -> None:
    newest, *others = register(*map(made, (1.0, 2.0, 3.0, 4.0)))
    size = Profiles(repo).read(newest.checksum)[0]
    monkeypatch.setattr(pools, "POOLED_BYTES", 2 * size - 1 + room)
    pooling = Pools(Profiles(repo), unchanged)
    pooled = pooling.pooled(newest, others)
    assert amounts(pooled) == [2.0, 3.0, 4.0][1 - room :]
    noun = "profile" if room else "profiles"
    assert pooling.notes(pooled, pooled)[1] == f"{2 - room} older {noun} not pooled: too many"
    monkeypatch.undo()
    monkeypatch.setattr(pools, "POOLED_PROFILES", 2 + room)
    assert amounts(Pools(Profiles(repo), unchanged).pooled(newest, others)) == [2.0, 3.0, 4.0][1 - room :]


def test_models_are_made_of_the_pool_by_the_postprocessors_of_the_newest(repo, register) -> None:
    profiles = [made(1.0), made(2.0)]
    units = [{"name": "normalizer", "params": {}}, {"name": "some-model", "params": {"a": 1}}]
    for one in profiles:
        one["postprocessors"] = units
        one["models"] = [{"uid": "f", "model": "linear"}]
    newest, *others = register(*profiles)
    calls: list[tuple[str, Mapping[str, Any], int]] = []

    def postprocess(profile: Profile, name: str, params: Mapping[str, Any]) -> Profile:
        calls.append((name, params, count_of(profile)))
        profile["models"] = [{"uid": "f", "model": "of all"}]
        return profile

    pooled = Pools(Profiles(repo), postprocess).pooled(newest, others)
    assert calls == [("some-model", {"a": 1}, 2)]
    assert pooled["models"] == [{"uid": "f", "model": "of all"}]
    assert pooled["postprocessors"] == units


def test_what_was_used_last_stays_in_memory(repo, register, monkeypatch) -> None:
    monkeypatch.setattr(pools, "KEPT_PROFILES", 2)
    first, second, third = (info.checksum for info in register(*map(made, (1.0, 2.0, 3.0))))
    kept = Profiles(repo)
    for checksum in (first, second, first, third):
        kept.get(checksum)
    assert kept.known(first) is not None
    assert kept.known(second) is None
    assert kept.known(third) is not None


def test_an_incomplete_profile_counts_until_it_was_measured_again(repo, register) -> None:
    register(
        made(1.0, "a", incomplete=True), made(2.0, "a"), made(3.0, "a"), made(4.0, "b"),
        made(5.0, "c", incomplete=True),
    )  # fmt: skip
    found = Baselines(repo, force=False).profiles(repo.vcs.get_minor_head())
    expected = [("a", 2), ("a", 3), ("b", 4), ("c", 5)]
    assert sorted((info.head.workload, info.time) for info in found) == expected
    pools_of = newest_first((info.head.workload, info) for info in found)
    assert {key: [info.time for info in several] for key, several in pools_of.items()} == {
        "a": [3, 2], "b": [4], "c": [5]
    }  # fmt: skip


def test_the_newest_of_one_second_is_the_one_that_was_listed_last() -> None:
    infos = [
        ProfileInfo(name, name, ProfileHeader(), seconds) for name, seconds in (("z", 1), ("b", 2), ("a", 2))
    ]
    assert [info.source for info in newest_first(("", info) for info in infos)[""]] == ["a", "b", "z"]


def test_of_two_profiles_the_incomplete_one_is_not_taken(repo: Repository, register: Register) -> None:
    register(made(1.0), made(2.0, incomplete=True))
    assert [info.time for info in Baselines(repo, force=False).profiles(repo.vcs.get_minor_head())] == [1]


# -- the order of ancestors ----------------------------------------------------------------------------------


def versions(seed: int, count: int) -> list[MinorVersion]:
    """A history with long lines, forks and merges, the newest first; now and then a parent is not there."""
    rng = random.Random(seed)
    made: list[MinorVersion] = []
    for number in range(count):
        parents = {f"{number - 1}"} if number else set()
        if number > 3 and rng.random() < 0.15:
            parents |= {f"{rng.randrange(number)}" for _ in range(rng.choice((1, 1, 2)))}
        elif number > 3 and rng.random() < 0.1:
            parents = {f"{rng.randrange(number)}"}
        elif rng.random() < 0.02:
            parents = {"beyond"}
        made.append(MinorVersion("", "", "", f"{number}", "", tuple(sorted(parents))))
    return made[::-1]


def repository(walk: list[MinorVersion]) -> Any:
    return SimpleNamespace(vcs=SimpleNamespace(walk_subjects=lambda head, ordered: iter(walk)))


@pytest.mark.parametrize("seed", range(12))
def test_jumps_change_no_order(seed: int) -> None:
    walk = versions(seed, 60)
    rng = random.Random(seed)
    among = {one.checksum for one in walk if rng.random() < (0.05, 0.3, 0.8)[seed % 3]}
    head = walk[0].checksum
    plain = Ancestry(repository(walk), head, ordered=True)
    jumping = Ancestry(repository(walk), head, ordered=True, among=among)
    for version, same in zip(plain, jumping, strict=True):
        assert version == same
        expected = [one for one in plain.ancestors(version.checksum) if one.checksum in among]
        assert list(jumping.ancestors(version.checksum)) == expected


# -- profiles of the same configuration and version ----------------------------------------------------------


WORKLOADS = ("small", "big")


def traced(slope: float, workload: str, number: int) -> Profile:
    """A profile that each method can be applied to: calls of several sizes, models, and exclusive times."""
    header = {"type": "mixed", "cmd": "./list", "args": "", "workload": workload, "units": {"mixed": "us"}}
    profile = Profile({
        "header": header,
        "collector_info": {"name": "trace", "params": {}},
        "postprocessors": [{"name": "regression_analysis", "params": {"method": "full"}}],
    })  # fmt: skip
    profile.update_resources([
        {"uid": uid, "type": "mixed", "amount": slope * size + number / 100, "structure-unit-size": size}
        for uid in ("search", "push")
        for size in range(1, 21)
    ])  # fmt: skip
    RegressionAnalysis().process(profile, RegressionParams(method="full"), NO_POSTPROCESS_CONTEXT)
    profile.update_resources([
        {"uid": f"f{one}", "type": "mixed", "exclusive": 1e6 * time, "location": "/a"}
        for one, time in enumerate([1.0, 2.0, 3.0, 4.0, 5.0 * slope, 6.0, 7.0, 8.0, 9.0])
    ])  # fmt: skip
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


@pytest.mark.parametrize(("name", "places"), [
    ("json", places_in_json),
    ("sarif", places_in_sarif),
    ("markdown", headings_in_markdown),
    ("text", headings_in_text),
    ("manual", headings_in_manual),
])  # fmt: skip
def test_every_format_tells_each_once(report, name, places) -> None:
    found = places(shown(report, name))
    assert len(found) >= len(WORKLOADS)
    assert set(found.values()) == {1}, found


def test_a_case_of_junit_is_of_one_method(report: VersionReport) -> None:
    assert max(places_in_junit(shown(report, "junit")).values()) <= len(report.comparisons[0].results)
