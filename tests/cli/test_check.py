"""`perun check`: changes of performance between versions, found in profiles whose amounts are made up."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from perun.profile.factory import Profile
from perun.profile.format.json import dumps_pending
from perun.store import Store
from perun.store.pending import link
from profiles import columns_of, profile_of

SEARCH = "SLList_search(SLList*, int)"
Amounts = Mapping[str, Sequence[float]]


def made(amounts: Amounts, *, type_: str = "time", **configuration: Any) -> Profile:
    """A profile in which each uid took these milliseconds."""
    configuration = {"cmd": "mybin", "collector": "complexity", **configuration}
    return profile_of(columns_of(amounts), type_, "ms", **configuration)


@pytest.fixture
def register(project: Any) -> Callable[..., None]:
    """Register a profile in a version: `register("HEAD~1", {"main": [1.5, 2.0]}, workload="a")`."""
    numbers = iter(range(10_000))

    def register(revision: str, amounts: Amounts, **configuration: Any) -> None:
        number = next(numbers)
        profile = made(amounts, **configuration)
        minor = project.git("rev-parse", revision)
        link(Store(project.path / ".perun"), minor, [(profile, f"p{number}.perf", 1_700_000_000 + number)])

    return register


@pytest.fixture
def history(project: Any, register: Callable[..., None]) -> Any:
    """The history of the manual's 8.2.2: search gets slower on a branch, is merged, and then repaired."""
    project.git("checkout", "-q", "-b", "search", "HEAD~1")
    project.commit("Measure the search")
    register("HEAD", {SEARCH: [156.48], "push": [2.0]})
    project.commit("Implement new version of search")
    register("HEAD", {SEARCH: [60677.98], "push": [2.0]})
    project.git("checkout", "-q", "main")
    project.git("merge", "-q", "--no-ff", "-m", "Merge search", "search")
    project.commit("Fix the degradation of search")
    register("HEAD", {SEARCH: [135.29], "push": [3.0]})
    return project


@pytest.fixture
def linear(project: Any) -> list[str]:
    """The checksums of six versions, the oldest first."""
    for number in range(4, 7):
        project.commit(f"Commit {number}")
    checksums: list[str] = project.git("rev-list", "--reverse", "HEAD").split()
    return checksums


def changes(outcome: Any) -> list[tuple[str, str, str]]:
    """Of each change in the JSON: the version (short), the result, the location."""
    return [
        (comparison["minor_version"][:7], change["result"], change["location"])
        for comparison in outcome.json["comparisons"]
        for change in comparison["changes"]
    ]


def test_the_tree_of_the_manual(perun: Callable[..., Any], history: Any) -> None:
    outcome = perun("check", "--format", "manual", "all")
    short = {line[7:]: line[:6] for line in history.git("log", "--format=%h %s", "--abbrev=6").splitlines()}
    fix, merge, main, new, root = (
        short[subject]
        for subject in (
            "Fix the degradation of search",
            "Merge search",
            "Commit 3",
            "Implement new version of search",
            "Measure the search",
        )
    )
    assert (
        outcome.out
        == f"""\
* {fix}: Fix the degradation of search [+1]
| | * {new}: Implement new version of search
| > collected by complexity for cmd: '$ mybin'
| > applying 'average_amount_threshold' method
| - Optimization        at {SEARCH}
|   from: 60677.98ms -> to: 135.29ms (0.00223x)
|
* {merge}: Merge search
|\\
| * {new}: Implement new version of search [-1]
| | | * {root}: Measure the search
| | > collected by complexity for cmd: '$ mybin'
| | > applying 'average_amount_threshold' method
| | - Degradation         at {SEARCH}
| |   from: 156.48ms -> to: 60677.98ms (388x)
| |
| * {root}: Measure the search
* | {main}: Commit 3
|/
| (2 versions without a profile)
2 pairs of profiles compared: 1 optimization(+), 1 degradation(-)
"""
    )
    assert outcome.err == ""


def test_head(perun: Callable[..., Any], history: Any) -> None:
    outcome = perun("check", "--format", "manual", "head")
    assert outcome.lines[0] == f"* {history.head[:6]}: Fix the degradation of search [+1]"
    assert outcome.lines[4] == f"| - Optimization        at {SEARCH}"
    assert outcome.lines[-1] == "1 pair of profiles compared: 1 optimization(+), 0 degradations(-)"
    assert perun("check", "--format", "manual", "head", "search").lines[-1] == (
        "1 pair of profiles compared: 0 optimizations(+), 1 degradation(-)"
    )
    assert perun("check", "head", "search", cwd=history.path / ".git").code == 0


def test_no_change_is_shown_on_request(perun: Callable[..., Any], history: Any) -> None:
    outcome = perun("-v", "check", "--format", "manual", "head")
    assert "| - No Change           at push" in outcome.lines
    assert outcome.lines[-1] == "1 pair of profiles compared: 1 optimization(+), 0 degradations(-)"


def test_colours(terminal: Callable[..., Any], history: Any) -> None:
    outcome = terminal("check", "--format", "manual", "all", errors=False)
    plain = re.sub("\x1b[^m]*m", "", outcome.out)
    assert plain == terminal("--no-color", "check", "--format", "manual", "all", errors=False).out
    assert f"\x1b[1;31mDegradation        \x1b[0m at \x1b[1m{SEARCH}\x1b[0m" in outcome.out
    assert "\x1b[1;32mOptimization       \x1b[0m at" in outcome.out
    assert "\x1b[31m*\x1b[0m" in outcome.out  # the mark of the version that got slower
    assert "\x1b[32m*\x1b[0m" in outcome.out


def test_the_nearest_ancestor_is_the_baseline(perun, project, register) -> None:
    """Along first parents, and only where none of them has one, what was merged."""
    project.git("checkout", "-q", "-b", "side", "HEAD~2")
    project.commit("On the side")
    register("HEAD", {"f": [100.0]})
    project.git("checkout", "-q", "main")
    project.git("merge", "-q", "--no-ff", "-m", "Merge", "side")
    register("HEAD", {"f": [100.0]})
    (comparison,) = perun("check", "head", "--json").json["comparisons"]
    assert comparison["baseline"] == project.git("rev-parse", "side")
    register("HEAD~2", {"f": [1.0]})
    (comparison,) = perun("check", "head", "--json").json["comparisons"]
    assert comparison["baseline"] == project.git("rev-parse", "HEAD~2")
    register("HEAD~1", {"f": [10.0]})
    (comparison,) = perun("check", "head", "--json").json["comparisons"]
    assert comparison["baseline"] == project.git("rev-parse", "HEAD^1")
    assert comparison["changes"][0]["rate"] == 10.0


@pytest.mark.parametrize("other", [
    {"cmd": "other"},
    {"args": "-O2"},
    {"workload": "big"},
    {"collector": "trace"},
    {"postprocessors": ["normalizer"]},
])  # fmt: skip
def test_configurations_are_kept_apart(perun, linear, register, other) -> None:
    register(linear[0], {"f": [1.0]})
    register(linear[1], {"f": [5.0]}, **other)
    register(linear[2], {"f": [1.5]})
    register(linear[2], {"f": [20.0]}, **other)
    found = perun("check", "head", linear[2], "--json").json["comparisons"]
    assert {one["baseline"] for one in found} == {linear[0], linear[1]}
    assert [[change["rate"] for change in one["changes"]] for one in found] in ([[], [4.0]], [[4.0], []])


def test_either_spelling_of_a_unit(perun, linear, register) -> None:
    register(linear[0], {"f": [1.0]}, postprocessors=["regression-analysis"], collector="my-own")
    register(linear[1], {"f": [5.0]}, postprocessors=["regression_analysis"], collector="my_own")
    assert len(changes(perun("check", "head", linear[1], "--json"))) == 1


def test_profiles_of_one_configuration_are_pooled(perun, linear, register, project, configure) -> None:
    """Each of these alone is a change in one direction or the other; together they are none."""
    configure("degradation: {strategies: [{method: average_amount_threshold}]}")
    for amount in (10.0, 50.0, 30.0):
        register(linear[0], {"f": [amount]})
    for amount in (40.0, 11.0):
        register(linear[1], {"f": [amount]})
    (found,) = perun("-v", "check", "head", linear[1], "--json").json["comparisons"]
    assert (found["baseline_profile"], found["target_profile"]) == ("p2.perf", "p4.perf")
    assert found["notes"] == ["pooled profiles: 3 of the baseline, 2 of the target"]
    (change,) = found["changes"]
    assert (change["result"], change["from"], change["to"]) == ("NoChange", "30.0ms", "25.5ms")
    register(linear[1], {"f": [300.0]})
    perun("-v", "check", "head", linear[1], out="pooled profiles: 3 of the baseline, 3 of the target")
    assert [record.info.result.name for record in Store(project.path / ".perun").changes.read(linear[1])] == [
        "Unknown"
    ]


def test_models_of_pooled_profiles_are_made_of_all_their_points(perun, linear, project, configure) -> None:
    from perun.plugin.api import NO_POSTPROCESS_CONTEXT
    from perun.postprocess.regression_analysis import RegressionAnalysis, RegressionParams

    configure("degradation: {strategies: [{method: integral_comparison}]}")
    for version, slopes in zip(linear, ((1.0, 3.0), (1.0, 2.0)), strict=False):
        for number, slope in enumerate(slopes):
            profile = made({}, type_="mixed", collector="trace")
            profile.update_resources(
                {"uid": "f", "type": "mixed", "amount": slope * size, "structure-unit-size": size}
                for size in range(1, 101)
            )
            profile = RegressionAnalysis().process(profile, RegressionParams("full"), NO_POSTPROCESS_CONTEXT)
            profile["postprocessors"] = [{"name": "regression_analysis", "params": {"method": "full"}}]
            entry = profile, f"p{number}.perf", 1_700_000_000 + number
            link(Store(project.path / ".perun"), version, [entry])
    (found,) = perun("-v", "check", "head", linear[1], "--json").json["comparisons"]
    (change,) = (one for one in found["changes"] if one["method"] == "integral_comparison")
    # Means of 50.5 and 151.5 ms, and of 50.5 and 101 ms, alone.
    before, after = (float(change[side].partition("ms")[0]) for side in ("from", "to"))
    assert (75 < before < 110, 60 < after < 80) == (True, True)


def test_results_by_severity(perun, linear, register) -> None:
    register(linear[0], {"better": [9.0], "gone": [1.0], "worse": [1.0], "zero": [0.0]})
    register(linear[1], {"better": [1.0], "new": [1.0], "worse": [9.0], "zero": [1.0]})
    outcome = perun("check", "--format", "manual", "head", linear[1])
    assert [line[4:] for line in outcome.lines if line.startswith("| - ")] == [
        "Degradation         at worse",
        "Optimization        at better",
        "Unknown             at zero",
        "Not in Target       at gone",
        "Not in Baseline     at new",
    ]
    assert "|   from: - -> to: 1.0ms" in outcome.lines
    assert outcome.lines[-1] == (
        "1 pair of profiles compared: 1 optimization(+), 1 degradation(-), 1 inconclusive, 2 new or gone"
    )


CONDITIONS = [
    ("{method: average_amount_threshold}", True),
    ("{method: AAT}", True),
    ("{method: aat, type: time}", True),
    ("{method: aat, type: memory}", False),
    ("{method: aat, cmd: mybin}", True),
    ("{method: aat, cmd: ./mybin}", False),
    ("{method: aat, args: -O2}", True),
    ("{method: aat, args: ''}", False),
    ("{method: aat, workload: 10}", True),
    ("{method: aat, workload: 100}", False),
    ("{method: aat, collector: my-own}", True),
    ("{method: aat, collector: time}", False),
    ("{method: aat, postprocessor: regression_analysis}", True),
    ("{method: aat, postprocessor: normalizer}", False),
    ("{method: aat, type: time, cmd: mybin, args: -O2, workload: '10', collector: my_own}", True),
    ("{method: aat, type: time, cmd: mybin, args: -O3}", False),
]


def test_conditions_of_a_rule(perun, linear, register, configure, share) -> None:
    share("{}\n")  # without this the built-in rule would apply as well
    configuration: dict[str, Any] = {
        "args": "-O2", "workload": "10", "collector": "my_own", "postprocessors": ["regression-analysis"]
    }  # fmt: skip
    register(linear[0], {"f": [1.0]}, **configuration)
    register(linear[1], {"f": [5.0]}, **configuration)
    nothing = "nothing compared: no rule of degradation.strategies applies to this profile"
    found = "1 pair of profiles compared: 0 optimizations(+), 1 degradation(-)"
    for rule, applies in CONDITIONS:
        configure(f"degradation:\n  strategies:\n    - {rule}\n")
        outcome = perun("check", "--format", "manual", "head", linear[1])
        assert outcome.lines[-1] == (found if applies else nothing), rule


def test_first_or_all_of_the_gathered_rules(perun, project, linear, register, configure, share) -> None:
    """Rules of the repository come before those of the user; a method is applied once for each pair."""
    folder = project.path / ".perun/plugins/check"
    folder.mkdir(parents=True)
    for name in ("always_worse", "always_better"):
        kind = "Degradation" if name.endswith("worse") else "MaybeOptimization"
        (folder / f"{name}.py").write_text(
            "from perun.utils.structs import DegradationInfo, PerformanceChange\n\n\n"
            f"def {name}(baseline_profile, target_profile):\n"
            f"    yield DegradationInfo(PerformanceChange.{kind}, 'f', 'a', 'b', t='{name}', ct='c', cr=.5)\n"
        )
    share(
        f"plugins: {{trusted: [{project.path}]}}\n"
        "degradation: {strategies: [{method: aw}, {method: aat}, {method: ab}]}\n"
    )
    register(linear[0], {"f": [1.0]})
    register(linear[1], {"f": [5.0]})

    def methods() -> list[str]:
        outcome = perun("check", "--format", "manual", "head", linear[1])
        return re.findall("applying '(.*)' method", outcome.out)

    configure("degradation: {strategies: [{method: always_better, cmd: mybin}, {method: aw, cmd: other}]}\n")
    assert methods() == ["always_better", "always_worse", "average_amount_threshold"]
    configure("degradation: {apply: first, strategies: [{method: aw, cmd: other}, {method: ab}]}\n")
    assert methods() == ["always_better"]
    configure("degradation: {apply: first}\n")
    assert methods() == ["always_worse"]
    told = perun("check", "--format", "manual", "head", linear[1]).out
    assert "  from: a -> to: b (with confidence c = 0.5)" in told


WRONG_RULES = [
    ("strategies: [{method: aat, cmmd: x}]", 5, "unknown key 'cmmd'\nhint: known are method, type, cmd"),
    ("strategies: [{cmd: x}]", 5, "method"),
    ("strategies: [aat]", 5, "strategies"),
    ("strategies: [{method: average_amount_treshold}]", 9, "'average_amount_threshold'"),
    ("apply: frist", 5, "first"),
    ("average_amount_threshold: {degradaton: 3}", 5, "'degradation'"),
    ("average_amount_threshold: {degradation: much}", 5, "must be a number"),
]


def test_wrong_rules(perun: Callable[..., Any], history: Any, configure: Callable[[str], None]) -> None:
    for text, code, message in WRONG_RULES:
        configure(f"degradation:\n  {text}\n")
        assert perun("check", "head", code=code, err=message).out == ""


def test_settings_of_a_method(perun, history, configure) -> None:
    configure("degradation:\n  average_amount_threshold: {degradation: 1.2}\n")
    assert "| - Degradation         at push" in perun("check", "--format", "manual", "head").lines


def test_exit_code(perun, linear, register, project, environment) -> None:
    register(linear[0], {"f": [1.0]})
    register(linear[1], {"f": [5.0]})
    register(linear[2], {"f": [1.0]})
    for arguments in (
        ["check", "--fail-on", "degradation", "head", linear[1]],
        ["check", "head", linear[1], "--fail-on", "degradation"],
        ["check", "head", linear[1], "--fail-on", "maybe", "--json"],
        ["check", "--fail-on", "degradation", "all"],
        ["check", "profiles", "p0.perf", "p1.perf", "--fail-on", "degradation", "--force"],
    ):
        if "profiles" in arguments:
            store = Store(project.path / ".perun")
            for number, entry in enumerate(store.indexes.read(linear[0]) + store.indexes.read(linear[1])):
                path = project.path / f"p{number}.perf"
                path.write_bytes(dumps_pending(store.objects.get(entry.checksum)))
        perun(*arguments, code=1)
    assert perun("check", "head", linear[1]).code == 0
    assert perun("check", "head", linear[2], "--fail-on", "maybe").code == 0
    for level in ("maybe", "inconclusive"):
        for output in ([], ["--json"]):
            perun("check", "head", linear[0], "--fail-on", level, *output, code=13)
    assert perun("check", "head", linear[0]).code == 0
    perun("check", "--fail-on", "optimization", "head", code=2)


def test_possible_degradations_fail_only_where_asked_for(
    perun, linear, register, project, configure, share
) -> None:
    folder = project.path / ".perun/plugins/check"
    folder.mkdir(parents=True)
    (folder / "doubtful.py").write_text(
        "from perun.utils.structs import DegradationInfo, PerformanceChange\n\n\n"
        "def doubtful(baseline_profile, target_profile):\n"
        "    yield DegradationInfo(PerformanceChange.MaybeDegradation, 'f', '1', '2')\n"
    )
    share(f"plugins: {{trusted: [{project.path}]}}\n")
    configure("degradation: {strategies: [{method: doubtful}]}\n")
    register(linear[0], {"f": [1.0]})
    register(linear[1], {"f": [1.0]})
    assert perun("check", "head", linear[1], "--fail-on", "degradation").code == 0
    outcome = perun("check", "--format", "manual", "head", linear[1], "--fail-on", "maybe", check=False)
    assert outcome.code == 1
    assert "- Maybe Degradation   at f" in outcome.out


def test_json(perun: Callable[..., Any], history: Any) -> None:
    data = perun("check", "all", "--json").json
    assert data["schema"] == "perun.check/1"
    assert len(data["comparisons"]) == 3
    fix, new, root = data["comparisons"]
    assert fix == {
        "minor_version": history.head,
        "baseline": history.git("rev-parse", "search"),
        "target_profile": "p2.perf",
        "baseline_profile": "p1.perf",
        "collector": "complexity",
        "postprocessors": [],
        "cmd": "mybin",
        "args": "",
        "workload": "",
        "reason": None,
        "damage": None,
        "incomplete": None,
        "environment": None,
        "not_applied": [],
        "ignored": 0,
        "notes": [],
        "session": None,
        "same": False,
        "changes": [
            {"method": "average_amount_threshold", "result": "Optimization", "location": SEARCH,
             "type": "ratio", "from": "60677.98ms", "to": "135.29ms",
             "rate": pytest.approx(135.29 / 60677.98), "relative_rate": 0.0, "confidence_type": "no",
             "confidence": 0.0, "interval": None, "p_value": None, "sizes": None, "detectable": None,
             "rule": None, "ratio": None, "ratio_low": None, "ratio_high": None, "verdict": "Optimization",
             "reason": None, "decides": True, "limit": None, "confirmed": True,
             "from_value": {"value": 60677.98, "unit": "ms"}, "to_value": {"value": 135.29, "unit": "ms"},
             "factor": pytest.approx(135.29 / 60677.98),
             "percent": pytest.approx(100 * (135.29 / 60677.98 - 1)), "percent_interval": None,
             "acknowledged": None, "parts": []}
        ],
    }  # fmt: skip
    assert [change["result"] for change in new["changes"]] == ["Degradation"]
    assert (root["baseline"], root["baseline_profile"], root["changes"]) == (None, None, [])
    assert root["reason"] == "no ancestor has a profile of the same configuration"
    assert perun("check", "--json", "all").json == data


def test_nothing_compared_without_profiles(perun: Callable[..., Any], project: Any) -> None:
    assert perun("check", "head").out == (
        f"* {project.head[:6]}: Commit 3\nnothing compared: no profile is registered\n"
    )
    assert perun("check", "all").out == "nothing compared: no profile is registered (3x)\n"
    outcome = perun("check", "all", "--json")
    assert outcome.json["comparisons"] == []
    assert outcome.err == "nothing compared: no profile is registered (3x)\n"


def test_nothing_compared_without_a_baseline(perun, linear, register) -> None:
    reason = "no ancestor has a profile of the same configuration"
    register("HEAD", {"f": [1.0]})
    assert perun("check", "head").lines == [f"* {linear[-1][:6]}: Commit 6", f"nothing compared: {reason}"]
    # Beside others that are compared it is named, too.
    register("HEAD", {"f": [1.0]}, workload="a b")
    register("HEAD~1", {"f": [1.0]}, workload="a b")
    assert perun("check", "--format", "manual", "head").lines[1:] == [
        "| > collected by complexity for cmd: '$ mybin'",
        f"| > not compared: {reason}",
        "1 pair of profiles compared: no change",
    ]
    # Of the whole history this is only told on request: each configuration begins somewhere.
    assert "not compared" not in perun("check", "all").out
    assert perun("-v", "check", "all").out.count("not compared") == 2


def test_nothing_compared_in_a_shallow_clone(perun, project, linear, register, tmp_path) -> None:
    register(linear[2], {"f": [1.0]})
    register(linear[5], {"f": [5.0]})
    register(linear[4], {"f": [1.0]}, workload="other")
    clone = tmp_path / "clone"
    project.git("clone", "-q", "--depth", "2", f"file://{project.path}", str(clone))
    shutil.copytree(project.path / ".perun", clone / ".perun")
    reason = (
        "no ancestor has a profile of the same configuration "
        "(this is a shallow clone, get the rest with: git fetch --unshallow)"
    )
    assert perun("check", "head", cwd=clone).lines[-1] == f"nothing compared: {reason}"
    assert perun("check", "all", cwd=clone).lines[-1] == f"nothing compared: {reason} (2x)"
    subprocess.run(["git", "fetch", "-q", "--unshallow"], cwd=clone, check=True)
    assert perun("check", "--format", "manual", "head", cwd=clone).lines[-1].endswith("1 degradation(-)")


def test_two_profiles_wherever_they_are(perun, project, linear, register, tmp_path) -> None:
    register("HEAD", {"f": [1.0]})
    (project.path / ".perun/jobs/mine.perf").write_bytes(dumps_pending(made({"f": [3.0]})))
    (tmp_path / "elsewhere.perf").write_bytes(dumps_pending(made({"f": [9.0]})))
    for baseline, target, rate in (
        ("0@i", "0@p", 3.0),
        ("p0.perf", "mine.perf", 3.0),
        (str(tmp_path / "elsewhere.perf"), "mine", 1 / 3),
        ("0@p", "../elsewhere.perf", 3.0),
    ):
        data = perun("check", "profiles", baseline, target, "--json").json
        assert data["schema"] == "perun.check/1"
        (comparison,) = data["comparisons"]
        assert "minor_version" not in comparison
        assert comparison["changes"][0]["rate"] == pytest.approx(rate)
    assert perun("check", "--format", "manual", "profiles", "0@i", "0@p").lines == [
        "> collected by complexity for cmd: '$ mybin'",
        "> applying 'average_amount_threshold' method",
        "- Degradation         at f",
        "  from: 1.0ms -> to: 3.0ms (3x)",
        "",
        "1 pair of profiles compared: 0 optimizations(+), 1 degradation(-)",
    ]
    register("HEAD~1", {"f": [2.0]})
    assert perun("check", "profiles", "-m", "HEAD~1", "0@i", "0@p").lines[-1].endswith("no change")
    assert Store(project.path / ".perun").changes.read(linear[-1]) == []  # of no version, so not stored
    perun("check", "profiles", "0@i", "absent", code=6, err="no profile matches 'absent'")


DIFFERENT: list[tuple[dict[str, Any], str]] = [
    ({"cmd": "mybin3.11"}, "cmd ('mybin' and 'mybin3.11')"),
    ({"args": "-O2"}, "args (none and '-O2')"),
    ({"workload": "b"}, "workload (none and 'b')"),
    ({"collector": "time"}, "collector ('complexity' and 'time')"),
    ({"postprocessors": ["a", "b"]}, "postprocessors (none and 'a b')"),
]


def test_two_profiles_of_different_configurations(perun: Callable[..., Any], project: Any) -> None:
    for other, difference in DIFFERENT:
        for name, amount, configuration in (("one", 1.0, {}), ("two", 5.0, other)):
            (project.path / f"{name}.perf").write_bytes(dumps_pending(made({"f": [amount]}, **configuration)))
        assert perun("check", "profiles", "one.perf", "two.perf").out == (
            f"nothing compared: the configurations differ in {difference}; "
            "compare nevertheless with --force\n"
        )
        assert "  Degradation  f  " in perun("check", "profiles", "one.perf", "two.perf", "--force").out
        assert "  Degradation  f  " in perun("check", "-f", "profiles", "one.perf", "two.perf").out


def test_forced_comparison_of_versions(perun, linear, register) -> None:
    register(linear[0], {"f": [1.0]}, cmd="python3.10")
    register(linear[1], {"f": [2.5]}, cmd="python3.11")
    assert perun("check", "head", linear[1]).out.splitlines()[-1].startswith("nothing compared: ")
    outcome = perun("check", "--format", "manual", "--force", "head", linear[1])
    assert f"| | * {linear[0][:6]}: Commit 1" in outcome.lines
    assert "|   from: 1.0ms -> to: 2.5ms (2.5x)" in outcome.lines


def test_found_changes_are_stored_and_shown(perun, project, history, register) -> None:
    assert not list((project.path / ".perun/objects").rglob("*.changes"))
    perun("check", "all")
    file = project.path / ".perun/objects" / project.head[:2] / f"{project.head[2:]}.changes"
    search = project.git("rev-parse", "search")
    assert file.read_text() == (
        "SLList_search(SLList*,%20int) PerformanceChange.Optimization ratio 60677.98ms 135.29ms "
        f"{135.29 / 60677.98} no 0.0 0.0 {search} complexity mybin"
    )
    lines = perun("log", "--short").lines
    assert lines[1].endswith(" Fix the degradation of search +")
    (slow,) = [line for line in lines if "Implement" in line]
    assert slow.endswith(" Implement new version of search -")
    place = f"{SEARCH}  60.7 s -> 0.135 s  -99.8 %  0.00223x"
    assert perun("status").lines[-2:] == ["1 change: 1 optimization(+)", f"  Optimization  {place}"]
    assert f"Changes: 1 optimization(+)\n  Optimization  {place}\n" in perun("log").out
    assert "compared: 1 optimization\n" in perun("check", "head").out
    (change,) = perun("status", "--json").json["changes"]
    assert (change["result"], change["location"], change["baseline"]) == ("Optimization", SEARCH, search)


def test_a_later_check_replaces_and_adds(perun, project, linear, register, configure) -> None:
    store = Store(project.path / ".perun")

    def stored() -> list[tuple[str, str, str]]:
        perun("check", "head")
        return sorted(
            (record.command, record.info.location, record.info.result.name)
            for record in store.changes.read(linear[-1])
        )

    register(linear[0], {"f": [1.0], "g": [1.0], "old": [1.0]})
    register(linear[-1], {"f": [5.0], "g": [5.0], "new": [1.0]})
    before = [
        ("complexity mybin", "f", "Degradation"),
        ("complexity mybin", "g", "Degradation"),
        ("complexity mybin", "new", "NotInBaseline"),
        ("complexity mybin", "old", "NotInTarget"),
    ]
    assert stored() == before
    assert stored() == before
    # A configuration that is checked later comes in beside.
    register(linear[0], {"f": [5.0]}, workload="w")
    register(linear[-1], {"f": [1.0]}, workload="w")
    other = ("complexity mybin w", "f", "Optimization")
    assert stored() == [*before, other]
    # Measured anew in a nearer version, f got better, g is as it was, the rest is in neither.
    register(linear[-2], {"f": [50.0], "g": [5.0], "new": [1.0]})
    assert stored() == [("complexity mybin", "f", "Optimization"), other]
    configure("degradation: {average_amount_threshold: {optimization: 0.01}}\n")
    assert stored() == []
    assert perun("status").lines[-1] == "no pending profiles"
    assert "+" not in perun("log", "--short").lines[1]


MILD = """
from perun.plugin.api import CheckContext
from perun.plugin.params import NoParams
from perun.profile.changes import DegradationInfo, PerformanceChange


class Mild:
    name = "mild"
    short = "MILD"
    help = "Is never sure."
    Params = NoParams

    def compare(self, baseline, target, params, ctx: CheckContext):
        for kind in ("MaybeDegradation", "Unknown"):
            yield DegradationInfo(PerformanceChange[kind], "f", "1ms", "5ms", "ratio")


PLUGIN = Mild
"""


@pytest.mark.parametrize("methods", ["[{method: aat}, {method: mild}]", "[{method: mild}, {method: aat}]"])
def test_of_two_methods_the_worse_result_is_stored(
    perun, project, linear, register, configure, methods
) -> None:
    plugin = project.path / ".perun/plugins/check/mild.py"
    plugin.parent.mkdir(parents=True)
    plugin.write_text(MILD)
    perun("config", "--shared", "set", "plugins.trusted", f'["{project.path}"]')
    configure(f"degradation: {{apply: all, strategies: {methods}}}\n")
    register(linear[0], {"f": [1.0]})
    register(linear[-1], {"f": [5.0]})
    assert len(perun("check", "head", "--json").json["comparisons"][0]["changes"]) == 3
    stored = Store(project.path / ".perun").changes.read(linear[-1])
    assert [record.info.result.name for record in stored] == ["Degradation"]


def test_checking_again_writes_nothing(perun: Callable[..., Any], project: Any, history: Any) -> None:
    perun("check", "all")
    files = {
        path: path.stat().st_mtime_ns
        for path in (project.path / ".perun/objects").rglob("*")
        if path.is_file()
    }
    perun("check", "all")
    assert files == {
        path: path.stat().st_mtime_ns
        for path in (project.path / ".perun/objects").rglob("*")
        if path.is_file()
    }


def test_runs_of_versions_without_profiles_are_one_line(perun, project, linear, register) -> None:
    register(linear[4], {"f": [1.0]})
    register(linear[1], {"f": [1.0]})
    assert perun("check", "all").lines == [
        "| (1 version without a profile)",
        f"* {linear[4][:6]}: Commit 5",
        "| (2 versions without a profile)",
        f"* {linear[1][:6]}: Commit 2",
        "  (1 version without a profile)",
        "1 pair of profiles compared: no change",
    ]
    assert perun("check", "all", "HEAD~3").lines[0] == "| (1 version without a profile)"
    assert len(perun("-v", "check", "all").lines) > 6


def test_a_damaged_profile_is_named(perun, project, linear, register) -> None:
    register(linear[0], {"f": [1.0]})
    register(linear[1], {"f": [5.0]})
    (entry,) = Store(project.path / ".perun").indexes.read(linear[0])
    path = project.path / ".perun/objects" / entry.checksum[:2] / entry.checksum[2:]
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-3])
    outcome = perun("check", "head", linear[1], code=6)
    assert entry.checksum[2:] in outcome.err.replace("/", "")


def test_a_long_history_needs_few_calls_of_git(perun, git_repository, tmp_path) -> None:
    repository = git_repository()
    stream = "".join(
        "commit refs/heads/main\n"
        f"committer A <a@example.org> {1_700_000_000 + number * 60} +0000\n"
        f"data {len(f'Commit {number}')}\nCommit {number}\n"
        for number in range(24)
    )
    subprocess.run(
        ["git", "fast-import", "--quiet"], cwd=repository.path, input=stream, text=True, check=True
    )
    perun("init", cwd=repository.path)
    store = Store(repository.path / ".perun")
    for number, minor in enumerate(repository.git("rev-list", "--reverse", "main").split()):
        profile = made({f"f{n}": [1.0 + number % 7] for n in range(2)})
        link(store, minor, [(profile, "p.perf", 1_700_000_000 + number)])
    calls, script = tmp_path / "calls", tmp_path / "tools" / "git"
    script.parent.mkdir()
    script.write_text(f"#!/bin/sh\necho x >>'{calls}'\nexec {shutil.which('git')} \"$@\"\n")
    script.chmod(0o755)
    path = f"{script.parent}{os.pathsep}{os.environ['PATH']}"
    outcome = perun("check", "--format", "manual", "all", cwd=repository.path, env={"PATH": path})
    assert 0 < len(calls.read_text().splitlines()) < 20
    assert outcome.lines[-1].startswith("23 pairs of profiles compared: ")
    assert json.loads(perun("check", "all", "--json", cwd=repository.path).out)["schema"] == "perun.check/1"
