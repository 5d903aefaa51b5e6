"""`perun check` over branches, merges, commits without profiles, two configurations and damage.

::

    * head     fast: 40, slow: 900
    * merge    (no profile)
    |\\
    | * right  fast: 10 (its object is damaged)
    | * r1     (no profile)
    * | left   slow: 300
    * | l1     fast: 20
    |/
    * trunk    (no profile)
    * root     fast: 10, slow: 100

"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from perun.core.errors import DamagedStore, JobFailed, ProfileNotFound
from perun.history.check import pairing
from perun.history.check.check import Ancestry, check_all, check_diff, check_head
from perun.history.check.report import ComparisonOptions, VersionReport, exit_code, is_degradation
from perun.profile.changes import PerformanceChange
from perun.profile.factory import Profile
from perun.repository.repository import Repository, open_repository
from perun.store import Store
from perun.store.pending import link
from profiles import profile_of


class Project(NamedTuple):
    """The repository, its versions by name, and the file of the damaged object."""

    path: Path
    versions: dict[str, str]
    damaged: Path

    def name(self, checksum: str) -> str:
        return next(name for name, one in self.versions.items() if one == checksum)


def profile(workload: str, amount: float, more: dict[str, float] | None = None) -> Profile:
    amounts = {"work": amount, **(more or {})}
    resources = [{"uid": uid, "amount": one} for uid, one in amounts.items()]
    return profile_of(resources, "time", "ms", workload=workload)


def register(path: Path, minor: str, workload: str, amount: float, **more: float) -> None:
    name = f"{workload}-{amount:g}.perf"
    link(Store(path / ".perun"), minor, [(profile(workload, amount, more), name, 1_700_000_000)])


def damage(path: Path) -> None:
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-3])


@pytest.fixture
def branched(git_repository: Callable[..., Any], perun: Callable[..., Any], tmp_path: Path) -> Project:
    git = git_repository("branched")
    versions = {"root": git.commit("root"), "trunk": git.commit("trunk")}
    versions |= {"l1": git.commit("l1"), "left": git.commit("left")}
    git.git("checkout", "-q", "-b", "side", versions["trunk"])
    versions |= {"r1": git.commit("r1"), "right": git.commit("right")}
    git.git("checkout", "-q", "main")
    git.git("merge", "-q", "--no-ff", "-m", "merge", "side")
    versions |= {"merge": git.head, "head": git.commit("head")}
    perun("init", cwd=git.path)
    for name, workload, amount in (
        ("root", "fast", 10),
        ("root", "slow", 100),
        ("l1", "fast", 20),
        ("left", "slow", 300),
        ("right", "fast", 11),
        ("head", "fast", 40),
        ("head", "slow", 900),
    ):
        register(git.path, versions[name], workload, amount)
    (entry,) = Store(git.path / ".perun").indexes.read(versions["right"])
    damaged = git.path / ".perun/objects" / entry.checksum[:2] / entry.checksum[2:]
    damage(damaged)
    return Project(git.path, versions, damaged)


@pytest.fixture
def repo(branched: Project, environment: dict[str, str]) -> Repository:
    return open_repository(branched.path, environment)


def pairs(project: Project, reports: list[VersionReport]) -> dict[tuple[str, str], tuple[str, list[Any]]]:
    """By version and workload of the target: the version of the baseline, and the rates of the changes."""
    return {
        (project.name(report.version.checksum), one.target.workload): (
            project.name(one.baseline_version.checksum) if one.baseline_version else "",
            "damaged" if one.error else [change.rate_degradation for change in one.changes],
        )
        for report in reports
        for one in report.comparisons
    }


def test_the_right_pairs_are_compared(branched: Project, repo: Repository) -> None:
    reports = list(check_all(repo, None))
    assert pairs(branched, reports) == {
        # The line of first parents goes first, though what was merged is nearer.
        ("head", "fast"): ("l1", [2.0]),
        ("head", "slow"): ("left", [3.0]),
        ("left", "slow"): ("root", [3.0]),
        ("l1", "fast"): ("root", [2.0]),
        ("right", "fast"): ("root", "damaged"),
        ("root", "fast"): ("", []),
        ("root", "slow"): ("", []),
    }
    assert {
        branched.name(one.version.checksum): one.reason for one in reports if one.reason
    } == dict.fromkeys(("merge", "trunk", "r1"), "no profile is registered")
    order = [branched.name(one.version.checksum) for one in reports]
    assert order.index("right") < order.index("r1") < order.index("trunk") < order.index("root") == 7
    assert exit_code(reports) == 6
    assert exit_code(reports, "degradation") == 1
    assert exit_code(reports, "severe") == 6


@pytest.mark.parametrize("worth", [1, 2])
@pytest.mark.parametrize("unreadable", ["", "trunk", "root"])
def test_counting_what_the_others_have_changes_no_pair(
    branched, repo, monkeypatch, worth, unreadable
) -> None:
    register(branched.path, branched.versions["head"], "new", 5)
    register(branched.path, branched.versions["l1"], "other", 5)
    if unreadable:
        register(branched.path, branched.versions[unreadable], "new", 5)
        damage(repo.store.indexes.path(branched.versions[unreadable]))
    expected = pairs(branched, list(check_all(repo, None)))
    assert (expected["head", "new"] == ("", "damaged")) == bool(unreadable)
    monkeypatch.setattr(pairing, "COUNT_CONFIGURATIONS_AFTER", worth)
    monkeypatch.setattr(pairing, "KEPT_LISTS", 1)
    assert pairs(branched, list(check_all(repo, None))) == expected
    head = {key: found for key, found in expected.items() if key[0] == "head"}
    assert pairs(branched, [check_head(repo, None)]) == head
    # None is the nearest of its configuration, so that any of the same collector will do.
    assert (
        pairs(branched, [check_head(repo, None, ComparisonOptions(force=True))])["head", "new"][0] == "left"
    )


def test_history_is_walked_once_for_all_profiles_of_a_version(
    git_repository, perun, environment, monkeypatch
) -> None:
    git = git_repository(commits=8)
    perun("init", cwd=git.path)
    register(git.path, git.head, "fast", 2)
    for number in range(20):
        register(git.path, git.head, f"only-{number}", 1)
    root = git.git("rev-list", "--max-parents=0", "HEAD").strip()
    register(git.path, root, "fast", 1)
    walked: list[str] = []
    ancestors = Ancestry.ancestors

    def counted(self: Ancestry, checksum: str) -> Any:
        for version in ancestors(self, checksum):
            walked.append(version.checksum)
            yield version

    monkeypatch.setattr(Ancestry, "ancestors", counted)
    report = check_head(open_repository(git.path, environment), None)
    assert len(walked) == len(set(walked)) == 7
    found = {one.target.workload: one.baseline is not None for one in report.comparisons}
    assert found == {"fast": True, **{f"only-{number}": False for number in range(20)}}


def test_the_damaged_object_is_named(branched: Project, repo: Repository) -> None:
    head_version, right_version = branched.versions["head"], branched.versions["right"]
    (head,) = [one for one in check_diff(repo, right_version, head_version).comparisons if one.error]
    assert isinstance(head.error, DamagedStore)
    assert head.error.message in head.reason
    assert head.reason.startswith(f"the baseline fast-11.perf cannot be read: {branched.damaged} ")
    (right,) = check_head(repo, branched.versions["right"]).comparisons
    assert right.reason.startswith(f"the target fast-11.perf cannot be read: {branched.damaged} ")
    branched.damaged.unlink()
    (right,) = check_head(repo, branched.versions["right"]).comparisons
    assert isinstance(right.error, ProfileNotFound)
    assert branched.damaged.name in right.reason


def test_the_command_goes_on_and_tells(branched: Project, perun: Callable[..., Any]) -> None:
    right = branched.versions["right"]
    for arguments in (["check", "all"], ["check", "diff", right, "HEAD"], ["check", "all", "--json"]):
        outcome = perun(*arguments, cwd=branched.path, code=6)
        assert str(branched.damaged) in outcome.out + outcome.err
        assert "diff" in arguments or "900 ms" in outcome.out or "900.0ms" in outcome.out
    perun("check", "head", "--fail-on", "degradation", cwd=branched.path, code=1)


def test_a_damaged_index_hides_no_other_version(branched: Project, repo: Repository) -> None:
    index = repo.store.indexes.path(branched.versions["left"])
    damage(index)
    reports = list(check_all(repo, None))
    found = pairs(branched, reports)
    # It may list the nearest profile of either, so what lies beyond is not compared with.
    assert found["head", "slow"] == ("", "damaged")
    assert found["head", "fast"] == ("", "damaged")
    assert found["right", "fast"] == ("root", "damaged")
    assert found["l1", "fast"] == ("root", [2.0])
    (left,) = [one for one in reports if one.version.checksum == branched.versions["left"]]
    assert isinstance(left.errors[0], DamagedStore)
    assert str(index) in left.reason
    assert exit_code([left]) == 6


def test_damaged_changes_are_told_and_left(branched: Project, repo: Repository) -> None:
    changes = repo.store.changes.path(branched.versions["l1"])
    changes.write_text("nonsense")
    report = check_head(repo, branched.versions["l1"])
    assert [change.rate_degradation for one in report.comparisons for change in one.changes] == [2.0]
    assert str(changes) in report.errors[0].message
    assert exit_code([report]) == 6
    assert changes.read_text() == "nonsense"


def test_any_two_versions(branched: Project, repo: Repository) -> None:
    report = check_diff(repo, branched.versions["left"], branched.versions["head"])
    assert report.version.checksum == branched.versions["head"]
    fast, slow = sorted(report.comparisons, key=lambda one: one.target.workload)
    assert (fast.baseline, fast.results) == (None, ())
    assert fast.reason == f"{branched.versions['left'][:10]} has no profile of the same configuration"
    assert [change.rate_degradation for change in slow.changes] == [3.0]
    assert report.unpaired == ()
    # The other way round, and by the names of the version control.
    report = check_diff(repo, "main", "HEAD~2")
    assert [change.result.name for one in report.comparisons for change in one.changes] == ["Optimization"]
    assert [one.workload for one in report.unpaired] == ["fast"]
    report = check_diff(repo, "HEAD", "main")
    assert [change for one in report.comparisons for change in one.changes] == []
    assert len(report.comparisons) == 2
    report = check_diff(repo, "HEAD", "HEAD~1")
    assert (report.comparisons, report.reason) == ((), "no profile is registered")
    assert len(report.unpaired) == 2
    assert list(repo.store.changes.minors()) == []


def test_force_pairs_other_configurations(branched: Project, repo: Repository) -> None:
    left, l1 = branched.versions["left"], branched.versions["l1"]
    (one,) = check_diff(repo, left, l1).comparisons
    assert one.baseline is None
    (one,) = check_diff(repo, left, l1, ComparisonOptions(force=True)).comparisons
    assert [change.result.name for change in one.changes] == ["Optimization"]


def test_a_chosen_baseline(branched: Project, repo: Repository) -> None:
    versions = branched.versions
    # A release without profiles stands for the nearest of its ancestors that has one.
    for baseline in ("root", "trunk", "r1"):
        assert pairs(branched, [check_head(repo, None, baseline=versions[baseline])]) == {
            ("head", "fast"): ("root", [4.0]),
            ("head", "slow"): ("root", [9.0]),
        }
    report = check_head(repo, versions["l1"], baseline="HEAD")
    assert pairs(branched, [report]) == {("l1", "fast"): ("head", [0.5])}
    # On the main branch itself, what came before is meant.
    assert pairs(branched, [check_head(repo, "main", baseline="main")])["head", "slow"] == ("left", [3.0])
    report = check_head(repo, versions["left"], baseline=versions["root"])
    assert pairs(branched, [report]) == {("left", "slow"): ("root", [3.0])}
    register(branched.path, versions["head"], "new", 5)
    report = check_head(repo, None, baseline=versions["left"])
    (new,) = [one for one in report.comparisons if one.target.workload == "new"]
    left = versions["left"][:10]
    assert new.reason == f"neither {left} nor an ancestor of it has a profile of the same configuration"
    assert list(repo.store.changes.minors()) == []


def test_ignored_changes(branched: Project, repo: Repository) -> None:
    import re

    minor = branched.versions["l1"]
    register(branched.path, branched.versions["root"], "x", 1, quiet=1, helper_a=1, helper_b=1)
    register(branched.path, minor, "x", 5, quiet=1, helper_a=5, helper_b=5)
    ignore = (re.compile("^helper_"), re.compile("ie"))
    report = check_head(repo, minor, ComparisonOptions(ignore=ignore))
    (x,) = [one for one in report.comparisons if one.target.workload == "x"]
    assert [(change.location, change.result.name) for change in x.results[0].changes] == [
        ("work", "Degradation")
    ]
    assert x.results[0].ignored == 2
    stored = [one.info.location for one in repo.store.changes.read(minor) if one.command.endswith(" x")]
    assert sorted(stored) == ["helper_a", "helper_b", "work"]
    assert (
        exit_code(
            check_diff(repo, f"{minor}~2", minor, ComparisonOptions(ignore=(re.compile(""),))).comparisons
        )
        == 0
    )


METHOD = """\
from perun.core.errors import ProfileError


class Params:
    pass


class NeedsModels:
    name = "needs_models"
    short = "NM"
    help = "Compares models."
    from perun.plugin.params import NoParams as Params

    def compare(self, baseline, target, params, ctx):
        raise ProfileError("the target has no models", "make them with 'perun postprocessby x'")
        yield


PLUGIN = NeedsModels
"""


def test_a_method_that_cannot_be_applied(branched, environment, perun, share) -> None:
    folder = branched.path / ".perun/plugins/check"
    folder.mkdir(parents=True)
    (folder / "needs_models.py").write_text(METHOD)
    share(f"plugins: {{trusted: ['{branched.path}']}}\n")
    local = branched.path / ".perun/local.yml"
    minor = branched.versions["l1"]

    def checked(methods: str) -> VersionReport:
        rules = ", ".join(f"{{method: {one}}}" for one in methods.split())
        local.write_text(f"vcs: {{type: git, url: ..}}\ndegradation: {{strategies: [{rules}]}}\n")
        return check_head(open_repository(branched.path, environment), minor)

    (one,) = checked("nm aat").comparisons
    needs, average = one.results
    assert (needs.method, needs.changes) == ("needs_models", ())
    assert needs.reason == "the target has no models; make them with 'perun postprocessby x'"
    assert [change.rate_degradation for change in average.changes] == [2.0]
    assert exit_code([one]) == 0
    # What was found earlier stays where nothing could be compared.
    (one,) = checked("nm").comparisons
    assert [result.reason for result in one.results] == [needs.reason]
    assert len(Store(branched.path / ".perun").changes.read(minor)) == 1
    assert "make them with" in perun("check", "head", minor, cwd=branched.path).out


def test_exit_codes() -> None:
    levels = {
        level: {change.name for change in PerformanceChange if is_degradation(change, level)}
        for level in ("severe", "degradation", "maybe")
    }
    assert levels["severe"] == {"SevereDegradation", "TotalDegradation"}
    assert levels["degradation"] - levels["severe"] == {"Degradation"}
    assert levels["maybe"] - levels["degradation"] == {"MaybeDegradation"}
    assert (exit_code([]), exit_code([], "maybe")) == (0, 13)


def test_a_failed_measurement_has_its_own_code(git_repository: Callable[..., Any], perun: Any) -> None:
    git = git_repository(commits=2)
    perun("init", cwd=git.path)
    matrix = "cmds: ['false']\ncollectors: [{name: time, params: {warmup: 0, repeat: 1}}]\n"
    (git.path / ".perun/local.yml").write_text("vcs: {type: git, url: ..}\n" + matrix)
    for which in ("head", "all"):
        perun("check", "-c", which, "--fail-on", "degradation", cwd=git.path, code=JobFailed.exit_code)
