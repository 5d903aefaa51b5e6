"""`perun check` in each format, to files, and as a gate: from real profiles to documents that are valid."""

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from lxml import etree

from perun.cli.answers.check import FORMATS
from perun.history.check.report import LEVELS
from perun.profile.factory import Profile
from perun.profile.format.json import dumps_pending
from perun.store import Store
from perun.store.pending import link
from profiles import columns_of, profile_of

ROOT = Path(__file__).parents[2]
SARIF = json.loads((ROOT / "tests/data/schemas/sarif-2.1.0.json").read_text("utf-8"))
JUNIT = etree.XMLSchema(etree.parse(ROOT / "tests/data/schemas/junit-10.xsd"))
OWN = json.loads((ROOT / "docs/schemas/perun.check-1.schema.json").read_text("utf-8"))
HOSTILE = "std::map<int, a|b>::find\x1b[31m`@x`"
GRADES = """\
from perun.utils.structs import DegradationInfo, PerformanceChange


def grades(baseline_profile, target_profile):
    for change in PerformanceChange:
        yield DegradationInfo(change, change.name, "1s", "2s", t="mean", rd=1)
"""
Amounts = Mapping[str, Sequence[float]]


def made(amounts: Amounts, **configuration: str) -> Profile:
    configuration = {"cmd": "./mybin", "collector": "complexity", **configuration}
    return profile_of(columns_of(amounts), "time", "ms", **configuration)


@pytest.fixture
def register(project: Any) -> Callable[..., None]:
    """Register a profile in a version: `register("HEAD~1", {"main": [1.5, 2.0]}, workload="a")`."""
    numbers = iter(range(10_000))

    def register(revision: str, amounts: Amounts, **configuration: str) -> None:
        number = next(numbers)
        minor = project.git("rev-parse", revision)
        stored = (made(amounts, **configuration), f"p{number}.perf", 1_700_000_000 + number)
        link(Store(project.path / ".perun"), minor, [stored])

    return register


@pytest.fixture
def history(project: Any, register: Callable[..., None]) -> Any:
    """Three versions: in the second one `f` got slower and `g` faster, in the third one `f` got better."""
    register("HEAD~2", {"f": [1.0], "g": [9.0], HOSTILE: [1.0]})
    register("HEAD~1", {"f": [5.0], "g": [1.0], HOSTILE: [9.0]})
    register("HEAD", {"f": [1.0], "g": [1.0], HOSTILE: [9.0]})
    return project


@pytest.fixture
def graded(project, register, share) -> Any:
    """A pair of versions, and a method that finds a change of every kind."""
    folder = project.path / ".perun/plugins/check"
    folder.mkdir(parents=True)
    (folder / "grades.py").write_text(GRADES)
    share(f"plugins: {{trusted: [{project.path}]}}\n")
    (project.path / ".perun/local.yml").write_text(
        "vcs: {type: git, url: ..}\ndegradation: {strategies: [{method: grades}]}\n"
    )
    register("HEAD~1", {"f": [1.0]})
    register("HEAD", {"f": [1.0]})
    return project


def damage(project: Any, revision: str) -> str:
    """Damage the profile of the version; the start of its path."""
    (entry,) = Store(project.path / ".perun").indexes.read(project.git("rev-parse", revision))
    path: Path = project.path / ".perun/objects" / entry.checksum[:2] / entry.checksum[2:]
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-3])
    return str(entry.checksum)


def validate(name: str, text: str) -> None:
    if name == "junit":
        JUNIT.assertValid(etree.fromstring(text.encode()))
    elif name == "sarif":
        jsonschema.Draft4Validator(SARIF).validate(json.loads(text))
    elif name == "json":
        jsonschema.Draft202012Validator(OWN).validate(json.loads(text))


COMMANDS = [
    ("check", "head"),
    ("check", "head", "HEAD~1"),
    ("check", "head", "HEAD~2"),  # without a baseline
    ("check", "head", "--baseline", "HEAD~2"),
    ("check", "all"),
    ("-v", "check", "all"),
    ("check", "diff", "HEAD~2", "HEAD"),
    ("check", "profiles", "old.perf", "new.perf"),
]


@pytest.mark.parametrize("name", ["text", "json", "markdown", "junit", "sarif"])
def test_every_command_in_every_format(perun: Callable[..., Any], history: Any, name: str) -> None:
    (history.path / "old.perf").write_bytes(dumps_pending(made({"f": [1.0], HOSTILE: [1.0]})))
    (history.path / "new.perf").write_bytes(dumps_pending(made({"f": [3.0], HOSTILE: [9.0]})))
    for command in COMMANDS:
        outcome = perun(*command, "--format", name)
        validate(name, outcome.out)
        assert "\x1b" not in outcome.out
        if command[0] != "-v" and (command[-1] != "HEAD~2" or "--baseline" in command):
            assert outcome.err == ""


def test_where_the_options_stand(perun: Callable[..., Any], history: Any) -> None:
    expected = perun("check", "head", "--format", "json").out
    assert perun("check", "--format", "json", "head").out == expected
    assert perun("check", "--json", "head").out == expected
    assert perun("check", "head", "--json", "--format", "json").out == expected
    outcome = perun("check", "--json", "head", "--format", "junit", check=False)
    assert (outcome.code, outcome.out) == (2, "")
    assert "--json and --format junit contradict each other" in outcome.err
    perun("check", "head", "--format", "yaml", code=2)


def test_diff(perun: Callable[..., Any], history: Any, register: Callable[..., None]) -> None:
    register("HEAD~2", {"f": [1.0]}, workload="gone")
    register("HEAD", {"f": [1.0]}, workload="new")
    outcome = perun("check", "--format", "manual", "diff", "HEAD~2", "HEAD")
    head, base = history.head[:6], history.git("rev-parse", "HEAD~2")[:6]
    assert outcome.lines[0] == f"* {head}: Commit 3 [+1 -1]"
    assert f"| | * {base}: Commit 1" in outcome.lines
    assert "| > not compared: the target has no profile of it" in outcome.lines
    assert outcome.lines[-1] == "1 pair of profiles compared: 1 optimization(+), 1 degradation(-)"
    # The other way round it is the other way round, and what is stored of the versions stays.
    assert "1.0ms -> to: 9.0ms (9x)" in perun("check", "--format", "manual", "diff", "HEAD", "HEAD~2").out
    assert perun("status", "--json").json["changes"] == []
    data = perun("check", "diff", "HEAD~2", "HEAD", "--json").json
    assert [one["workload"] for one in data["unpaired"]] == ["gone"]
    perun("check", "diff", "HEAD", code=2)
    perun("check", "diff", "HEAD", "nowhere", code=4)


def test_baseline(perun: Callable[..., Any], history: Any) -> None:
    history.git("tag", "v1", "HEAD~2")
    outcome = perun("check", "--format", "manual", "head", "--baseline", "v1")
    assert outcome.lines[-1] == "1 pair of profiles compared: 1 optimization(+), 1 degradation(-)"
    (comparison,) = perun("check", "head", "HEAD~1", "--baseline", "v1", "--json").json["comparisons"]
    assert comparison["baseline"] == history.git("rev-parse", "v1")


def test_ignore(perun: Callable[..., Any], history: Any) -> None:
    outcome = perun(
        "check", "head", "HEAD~1", "--ignore", "^f$", "--ignore", "map<", "--fail-on", "degradation",
        "--format", "manual",
    )  # fmt: skip
    assert outcome.code == 0
    assert outcome.lines[-1] == (
        "1 pair of profiles compared: 1 optimization(+), 0 degradations(-), 2 ignored"
    )
    outcome = perun("check", "--ignore", "^f$", "head", "HEAD~1", "--ignore", "^g$", "--json")
    (comparison,) = outcome.json["comparisons"]
    assert (comparison["ignored"], len(comparison["changes"])) == (2, 1)
    # What is stored is not touched by it.
    assert len(Store(history.path / ".perun").changes.read(history.git("rev-parse", "HEAD~1"))) == 3
    outcome = perun("check", "head", "--ignore", "(", check=False)
    assert (outcome.code, outcome.out) == (2, "")
    assert "'(' is not a regular expression" in outcome.err


@pytest.mark.parametrize(("ignore", "level", "code"), [
    ("nothing", "severe", 1),
    ("Severe|Total", "severe", 0),
    ("Severe|Total", "degradation", 1),
    ("(?<!Maybe)Degradation", "degradation", 0),
    ("(?<!Maybe)Degradation", "maybe", 1),
    ("Degradation", "maybe", 0),
])  # fmt: skip
def test_levels(perun: Callable[..., Any], graded: Any, ignore: str, level: str, code: int) -> None:
    for name in ("text", "sarif"):
        arguments = ("check", "head", "--fail-on", level, "--ignore", ignore, "--format", name)
        perun(*arguments, code=code)
    assert perun("check", "head").code == 0


def test_marks_and_colours(terminal: Callable[..., Any], graded: Any) -> None:
    outcome = terminal("check", "--format", "manual", "head", errors=False)
    plain = re.sub("\x1b[^m]*m", "", outcome.out).splitlines()
    assert plain[0] == f"* {graded.head[:6]}: Commit 3 [+4 -4 !!2]"
    assert "\x1b[1;31m!!2\x1b[0m" in outcome.out
    assert plain[-1] == (
        "1 pair of profiles compared: 4 optimizations(+), 4 degradations(-), 2 of them severe(!!), "
        "1 inconclusive, 2 new or gone"
    )
    assert "\x1b" not in terminal("--no-color", "check", "head", errors=False).out


def test_output(perun: Callable[..., Any], terminal: Callable[..., Any], history: Any) -> None:
    file = history.path / "report/check.xml"
    refused = perun("check", "head", "--output", "report/check.xml", check=False)
    assert (refused.code, refused.out, file.parent.exists()) == (2, "", False)
    assert "cannot write report/check.xml: there is no folder report\nhint: make the folder" in refused.err
    file.parent.mkdir()
    outcome = perun("check", "head", "HEAD~1", "--format", "junit", "--output", "report/check.xml")
    summary = "1 pair of profiles compared: 2 degradations, 1 optimization"
    assert outcome.out == f"{summary}; see report/check.xml\n"
    expected = perun("check", "head", "HEAD~1", "--format", "junit").out
    assert file.read_text("utf-8") == expected
    assert perun("check", "head", "HEAD~1", "--format", "junit", "--output", "-").out == expected
    assert [one.name for one in file.parent.iterdir()] == ["check.xml"]
    # A file gets no colours.
    terminal("check", "--output", str(file), "all")
    assert file.read_text("utf-8") == perun("check", "all").out


def test_output_of_a_gate_that_fails(perun: Callable[..., Any], history: Any) -> None:
    perun("check", "head", "HEAD~1", "--fail-on", "degradation", "--output", "a.txt", code=1)
    assert "Degradation" in (history.path / "a.txt").read_text("utf-8")


def test_output_is_whole_or_as_it_was(perun: Callable[..., Any], history: Any) -> None:
    file = history.path / "a.json"
    file.write_text("before")
    local = history.path / ".perun/local.yml"
    before = local.read_text()
    local.write_text("vcs: {type: git, url: ..}\ndegradation: {apply: frist}\n")
    for name in ("json", "sarif", "junit"):
        outcome = perun("check", "all", "--format", name, "--output", "a.json", check=False)
        assert (outcome.code, outcome.out) == (5, "")
        # Nothing half done on standard output either.
        assert perun("check", "all", "--format", name, check=False).out == ""
    assert file.read_text() == "before"
    local.write_text(before)
    assert sorted(one.name for one in history.path.iterdir() if "tmp" in one.name) == []
    link = history.path / "link.json"
    link.symlink_to("a.json")
    perun("check", "all", "--json", "--output", "link.json")
    assert link.is_symlink()
    validate("json", file.read_text("utf-8"))


def test_output_that_cannot_be_written(perun: Callable[..., Any], history: Any) -> None:
    perun("check", "head", "--output", ".", code=2, err="is a folder")
    (history.path / "file.txt").touch()
    outcome = perun("check", "head", "--output", "file.txt/x", check=False)
    assert (outcome.code, outcome.out) == (2, "")
    assert "file.txt" in outcome.err
    if Path("/dev/full").exists():
        perun("check", "head", "--output", "/dev/full", code=3, err="No space left")
    assert perun("check", "head", "--json", "--output", "/dev/stderr").err.startswith('{"schema"')
    assert perun("check", "head", "--output", os.devnull).out.endswith(f"; see {os.devnull}\n")


@pytest.mark.parametrize("name", ["text", "json", "markdown", "junit", "sarif"])
def test_damage(perun: Callable[..., Any], history: Any, name: str) -> None:
    """What can be compared is; the damaged profile is named in the answer, and in the exit code."""
    checksum = damage(history, "HEAD~2")
    outcome = perun("check", "all", "--format", name, code=6, err=checksum[2:], out=checksum[2:])
    validate(name, outcome.out)
    assert perun("check", "head", "--format", name).code == 0
    # The gate comes first: a degradation was found all the same.
    arguments = ("check", "all", "HEAD~1", "--fail-on", "degradation", "--format", name)
    perun(*arguments, code=6)
    if name == "json":
        assert [one["damage"] is not None for one in outcome.json["comparisons"]] == [False, True, False]
    if name == "sarif":
        assert outcome.json["runs"][0]["invocations"][0]["executionSuccessful"] is False


def test_nothing_compared(perun: Callable[..., Any], project: Any) -> None:
    for name in ("json", "markdown", "junit", "sarif"):
        outcome = perun("check", "all", "--format", name)
        validate(name, outcome.out)
        assert outcome.err == "nothing compared: no profile is registered (3x)\n"
    assert perun("check", "all", "--format", "markdown").lines == [
        "## Performance: nothing compared",
        "",
        "Nothing compared: `no profile is registered (3x)`",
        "",
    ]


def test_descriptions_of_methods(perun: Callable[..., Any], history: Any) -> None:
    data = perun("check", "head", "HEAD~1", "--format", "sarif").json
    (rule,) = data["runs"][0]["tool"]["driver"]["rules"]
    assert rule["id"] == "average_amount_threshold"
    assert rule["shortDescription"]["text"].startswith("Compares the average amounts")


def test_the_page_knows_all_formats_and_levels() -> None:
    page = (ROOT / "docs/checking.md").read_text("utf-8")
    for name in (*FORMATS, *LEVELS):
        assert f"\n| `{name}` |" in page
