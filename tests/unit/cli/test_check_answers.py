"""The formats of `perun check`, told of versions and changes that are made up, also of hostile ones."""

import html
import io
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from math import inf, nan
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree
from markdown_it import MarkdownIt

from perun.cli.answers.changes import amounts_of, factor_of, importance, percent_of, ratio_of, sides_of
from perun.cli.answers.check import FORMATS, answer_in
from perun.cli.answers.check.markdown import LIMIT, Markdown, code, plain_text
from perun.cli.answers.check.wording import Page, confidence_of, marks, parts_of, size_of, values_of
from perun.cli.commands.check import ChangePlaces
from perun.core.errors import DamagedStore, JobFailed
from perun.history.check.report import Comparison, MethodResult, VersionReport, exit_code
from perun.plugin.api import MinorVersion
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.head import ProfileHeader
from perun.profile.helpers import ProfileInfo
from perun.repository.lookup import identity
from shared import examples

ROOT = Path(__file__).parents[3]
SARIF = json.loads((ROOT / "tests/data/schemas/sarif-2.1.0.json").read_text("utf-8"))
JUNIT = etree.XMLSchema(etree.parse(ROOT / "tests/data/schemas/junit-10.xsd"))
OWN = json.loads((ROOT / "docs/schemas/perun.check-1.schema.json").read_text("utf-8"))
NASTY = [
    "a|b",
    "\\|",
    "``x``",
    "`",
    "</code><script>alert(1)</script>",
    "<![CDATA[ ]]>",
    "&amp; &#124; \"'",
    "\x00\x01\x1b[31m\x7f\x9b",
    "line\nbreak\r\n\ttab",
    "@somebody fixes #123",
    "![x](http://example.org/a.png) [l](javascript:alert(1)) *b* _i_ ~~s~~",
    "\u202egnp.exe\u2028\ufffe\uffff",
    b"caf\xe9".decode("utf-8", "surrogateescape"),
    "\ud800",
    "日本語 👩\u200d💻",
    " ",
    "",
    "x" * 5000,
]
Kind = PerformanceChange


def strict(schema: Any) -> Any:
    """The schema, in which an object has no other keys than those that are named."""
    if isinstance(schema, list):
        return [strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: strict(value) for key, value in schema.items()}
    return {**made, "additionalProperties": False} if "properties" in made and "type" in made else made


def profile(name: str = "p.perf", cmd: str = "./app", **rest: Any) -> ProfileInfo:
    head = ProfileHeader(**{"type": "time", "cmd": cmd, "args": "-n 1", "collector": "time", **rest})
    return ProfileInfo(name, f"/{name}", head, 1, "c" * 40, is_registered=True)


def version(number: int = 1, subject: str = "Do it", parents: Sequence[str] = ()) -> MinorVersion:
    return MinorVersion(
        "2024-05-01 10:00:00", "Ada", "ada@example.org", f"{number:040x}", subject, tuple(parents)
    )


def change(kind: PerformanceChange, where: str = "f", **more: Any) -> DegradationInfo:
    values = {"fb": "1.5s", "tt": "3.0s", "t": "ratio", "rd": 2.0, **more}
    return DegradationInfo(kind, where, **values)


def report(*changes: DegradationInfo, number: int = 1, **rest: Any) -> VersionReport:
    pair = Comparison(
        profile(), profile("old.perf"), version(number + 1, "Before"), (MethodResult("aat", changes),)
    )
    return VersionReport(version(number), (pair,), **rest)


EVERYTHING = VersionReport(
    version(),
    (
        Comparison(profile(), profile("old.perf"), version(2, "Before"), (
            MethodResult("average_amount_threshold", tuple(change(kind, kind.name) for kind in Kind)),
            MethodResult("fast_check", reason="p.perf has no models"),
            MethodResult(
                "integral_comparison",
                (
                    change(
                        Kind.SevereDegradation, "g", t="linear", rd=inf, ct="r_square", cr=nan,
                        interval=(0.5, inf), p_value=1e-9,
                        pi=[(Kind.MaybeDegradation, 0.17, 16.0, 26.0), (Kind.Degradation, inf, 26.0, 100.0)]
                    ),
                ),
                ignored=2,
            ),
        )),
        Comparison(profile("first.perf", cmd="/usr/bin/other tool"), reason="no ancestor has a profile"),
        Comparison(
            profile("bad.perf"), profile("old.perf"), reason="ab/cdef is damaged",
            error=DamagedStore("ab/cdef is damaged", "perun fsck")
        ),
    ),
    failure="./app exited with status 3",
    errors=(JobFailed("./app exited with status 3"), DamagedStore("the index is damaged")),
    unpaired=(profile("lonely.perf", cmd="./gone"),),
)  # fmt: skip
EMPTY = VersionReport(version(), reason="no profile is registered")


def answer(name: str, *told: VersionReport | Comparison, **settings: Any) -> str:
    out = io.StringIO()
    made = answer_in(name, Page(out, "check all", **settings))
    for one in told:
        if isinstance(one, VersionReport):
            made.version(one)
        else:
            made.pair(one)
    made.end()
    return out.getvalue()


def validate(name: str, text: str) -> Any:
    """The parsed answer, which is valid."""
    if name == "junit":
        root = etree.fromstring(text.encode())
        JUNIT.assertValid(root)
        return root
    data = json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    if name == "sarif":
        jsonschema.Draft4Validator(SARIF).validate(data)
    else:
        jsonschema.Draft202012Validator(strict(OWN)).validate(data)
    return data


def hostile(text: str) -> VersionReport:
    info = profile(
        text, cmd=text, args=text, workload=text, collector=text or "time", postprocessors=(text or "none",)
    )
    found = (
        change(Kind.Degradation, text, fb=text, tt=text, t=text, ct=text),
        change(Kind.SevereDegradation, text, fb=text, tt=text),
    )
    results = (MethodResult("aat", found), MethodResult("fast", reason=text or "none"))
    return VersionReport(
        version(subject=text),
        (Comparison(info, info, version(2, text), results),
         Comparison(info, reason=text or "none", error=DamagedStore(text))),
        failure=text,
        errors=(JobFailed(text),),
        unpaired=(info,),
    )  # fmt: skip


@pytest.mark.parametrize("verbose", [False, True])
@pytest.mark.parametrize("name", ["json", "junit", "sarif"])
def test_everything_is_valid(name: str, verbose: bool) -> None:
    for told in ([], [EMPTY], [EVERYTHING], [EVERYTHING, EMPTY, report()], [*EVERYTHING.comparisons]):
        validate(name, answer(name, *told, verbose=verbose))


@pytest.mark.parametrize("name", ["json", "junit", "sarif"])
@pytest.mark.parametrize("text", NASTY)
def test_hostile_text_is_valid(name: str, text: str) -> None:
    told = hostile(text)
    validate(name, answer(name, told, *told.comparisons, verbose=True))


@pytest.mark.parametrize("name", ["junit", "sarif"])
@given(text=st.text(max_size=30))
@settings(max_examples=examples(30))
def test_any_text_is_valid(name: str, text: str) -> None:
    validate(name, answer(name, hostile(text)))


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("text", NASTY)
def test_no_control_character_comes_through(name: str, text: str) -> None:
    shown = answer(name, hostile(text))
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2028\u2029]", shown)


def test_junit() -> None:
    root = validate("junit", answer("junit", EVERYTHING))
    suites = {suite.get("name"): suite for suite in root}
    assert list(suites) == [
        "comparison 0000000000",
        "average_amount_threshold 0000000000",
        "fast_check 0000000000",
        "integral_comparison 0000000000",
    ]
    suite = suites["average_amount_threshold 0000000000"]
    assert {key: suite.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "12", "failures": "3", "errors": "0", "skipped": "1"
    }  # fmt: skip
    outcome = {case.get("name"): [child.tag for child in case] for case in suite.iter("testcase")}
    failing = [where for where, tags in outcome.items() if tags == ["failure"]]
    assert failing == ["TotalDegradation", "SevereDegradation", "Degradation"]
    assert outcome["Unknown"] == ["skipped"]
    assert outcome["NoChange"] == []
    assert outcome["MaybeDegradation"] == outcome["Optimization"] == ["system-out"]
    failure = suite.find(".//failure")
    assert failure.get("message") == "Total Degradation: from 1.50 s to 3.00 s, +100 % (2x)"
    assert failure.get("type") == "TotalDegradation"
    properties = {one.get("name"): one.get("value") for one in suite.iter("property")}
    assert properties == {"minor_version": f"{1:040x}", "subject": "Do it", "baseline": f"{2:040x}"}
    pairing = suites["comparison 0000000000"]
    assert [(case[0].tag, case[0].get("message")) for case in pairing.iter("testcase")] == [
        ("error", "not all profiles could be collected: ./app exited with status 3"),
        ("error", "damaged: the index is damaged"),
        ("skipped", "the target has no profile of it"),
        ("skipped", "no ancestor has a profile"),
        ("error", "ab/cdef is damaged"),
    ]
    assert suites["fast_check 0000000000"].find(".//skipped").get("message") == "p.perf has no models"


@pytest.mark.parametrize(("level", "failures"), [("severe", 2), ("degradation", 3), ("maybe", 4)])
def test_junit_fails_where_the_gate_does(level: str, failures: int) -> None:
    root = validate("junit", answer("junit", report(*map(change, Kind)), level=level))
    assert len(root.findall(".//failure")) == failures


def test_sarif() -> None:
    described = {"average_amount_threshold": "Compares averages."}
    text = answer("sarif", EVERYTHING, describe=lambda method: described.get(method, ""))
    (run,) = validate("sarif", text)["runs"]
    found = {
        result["locations"][0]["logicalLocations"][0]["name"]: result
        for result in run["results"]
        if result["ruleId"] == "average_amount_threshold"
    }
    assert {where: result["level"] for where, result in found.items()} == {
        "TotalDegradation": "error",
        "SevereDegradation": "error",
        "Degradation": "warning",
        "MaybeDegradation": "note",
    }
    assert {result["kind"] for result in found.values()} == {"fail"}
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["average_amount_threshold", "fast_check", "integral_comparison"]
    assert rules[0]["shortDescription"]["text"] == "Compares averages."
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    assert found["Degradation"]["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": "app"}
    assert found["Degradation"]["message"]["text"] == (
        "Degradation at Degradation: from 1.50 s to 3.00 s, +100 % (2x) "
        "(./app -n 1, collected by time; 0000000000 against 0000000000)"
    )
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is False
    told = [(one["level"], one["message"]["text"]) for one in invocation["toolExecutionNotifications"]]
    assert ("error", "ab/cdef is damaged") in told
    assert ("warning", "fast_check could not be applied: p.perf has no models") in told
    everything = validate("sarif", answer("sarif", EVERYTHING, verbose=True))["runs"][0]["results"]
    kinds = {one["properties"]["location"]: (one["kind"], one["level"]) for one in everything}
    assert kinds["NoChange"] == ("pass", "none")
    assert kinds["Unknown"] == ("open", "none")
    assert kinds["Optimization"] == kinds["NotInTarget"] == ("informational", "none")


def test_fingerprints_are_stable() -> None:
    def prints(*told: VersionReport) -> list[tuple[str, str]]:
        results = validate("sarif", answer("sarif", *told))["runs"][0]["results"]
        return [
            (one["fingerprints"]["perunChange/v1"], one["partialFingerprints"]["primaryLocationLineHash"])
            for one in results
        ]

    both = report(change(Kind.Degradation), change(Kind.SevereDegradation), change(Kind.Degradation, "g"))
    first = prints(both)
    assert first == prints(both)
    assert len({one for one, _ in first}) == len({one for _, one in first}) == 3
    # In another version it is another change, at the same place; a worse one is the same alarm.
    (other,) = prints(report(change(Kind.SevereDegradation), number=5))
    assert other[0] != prints(report(change(Kind.SevereDegradation)))[0][0]
    assert other[1] == prints(report(change(Kind.Degradation)))[0][1]


def test_json() -> None:
    data = validate("json", answer("json", EVERYTHING))
    assert data["summary"] == {
        "compared": 1, "optimizations": 4, "degradations": 5, "severe": 3, "other": 3, "inconclusive": 1,
        "ignored": 2,
        "acknowledged": 0,
    }  # fmt: skip
    assert data["nothing_compared"] is None
    assert [one["cmd"] for one in data["unpaired"]] == ["./gone"]
    assert [one["message"] for one in data["troubles"]] == [
        "not all profiles could be collected: ./app exited with status 3",
        "damaged: the index is damaged",
    ]
    pair, first, bad = data["comparisons"]
    assert (pair["ignored"], first["reason"], bad["damage"]) == (
        2, "no ancestor has a profile", "ab/cdef is damaged"
    )  # fmt: skip
    assert pair["not_applied"] == [{"method": "fast_check", "reason": "p.perf has no models"}]
    last = pair["changes"][-1]
    assert (last["rate"], last["confidence"], last["interval"]) == (None, None, [0.5, None])
    assert last["parts"] == [
        {"result": "MaybeDegradation", "rate": 0.17, "from": 16, "to": 26},
        {"result": "Degradation", "rate": None, "from": 26, "to": 100},
    ]
    assert (last["from_value"], last["to_value"]) == (
        {"value": 1.5, "unit": "s"},
        {"value": 3.0, "unit": "s"},
    )
    assert (last["factor"], last["percent"], last["percent_interval"]) == (2.0, 100.0, None)
    assert "NoChange" not in {one["result"] for one in pair["changes"]}
    verbose = validate("json", answer("json", EVERYTHING, verbose=True))
    assert "NoChange" in {one["result"] for one in verbose["comparisons"][0]["changes"]}
    assert validate("json", answer("json", EMPTY))["nothing_compared"].endswith("no profile is registered")


@pytest.mark.parametrize(("rest", "numbers"), [
    (
        {"values": (0.06949, 0.33012), "unit": "s", "rd": 4.75, "interval": (4.5, inf), "sizes": (8, 9)},
        [(0.06949, "s"), (0.33012, "s"), 4.75, 375.0, [350.0, None], [8, 9]],
    ),
    (
        {"fb": "500us (linear)", "tt": "2ms (power)", "t": "linear"},
        [(500, "us"), (2000, "us"), 4.0, 300.0, None, None],
    ),
    ({"fb": "1B", "tt": "2s", "t": "mean"}, [(1, "B"), (2, "s"), None, None, None, None]),
    ({"fb": "linear", "tt": "power", "t": "order"}, [None] * 6),
    ({"fb": "-", "tt": "7", "rd": 0.0}, [None, (7, ""), None, None, None, None]),
])  # fmt: skip
def test_json_has_numbers(rest: dict[str, Any], numbers: list[Any]) -> None:
    data = validate("json", answer("json", report(change(Kind.Degradation, **rest))))
    (found,) = data["comparisons"][0]["changes"]
    sides = [one and (one["value"], one["unit"]) for one in (found["from_value"], found["to_value"])]
    rest_of_it = [found[key] for key in ("factor", "percent", "percent_interval", "sizes")]
    assert [*sides, *rest_of_it] == numbers


@pytest.mark.parametrize("name", ["text", "json"])
def test_versions_appear_as_they_are_checked(name: str) -> None:
    out = io.StringIO()
    made = answer_in(name, Page(out))
    made.version(report(change(Kind.Degradation, "first")))
    assert "first" in out.getvalue()
    assert "second" not in out.getvalue()
    made.version(report(change(Kind.Degradation, "second"), number=2))
    assert "second" in out.getvalue()


def test_the_lines_of_the_manual() -> None:
    assert (
        answer("manual", EVERYTHING, single=True)
        == """\
* 000000: Do it [+4 -5 !!3]
  > not all profiles could be collected: ./app exited with status 3
  > damaged: the index is damaged
  | * 000000: Before
  > collected by time for cmd: '$ ./app -n 1'
  > applying 'average_amount_threshold' method
  - Total Degradation   at TotalDegradation
    from: 1.5s -> to: 3.0s (2x)
  - Severe Degradation  at SevereDegradation
    from: 1.5s -> to: 3.0s (2x)
  - Degradation         at Degradation
    from: 1.5s -> to: 3.0s (2x)
  - Total Optimization  at TotalOptimization
    from: 1.5s -> to: 3.0s (2x)
  - Severe Optimization at SevereOptimization
    from: 1.5s -> to: 3.0s (2x)
  - Optimization        at Optimization
    from: 1.5s -> to: 3.0s (2x)
  - Maybe Degradation   at MaybeDegradation
    from: 1.5s -> to: 3.0s (2x)
  - Maybe Optimization  at MaybeOptimization
    from: 1.5s -> to: 3.0s (2x)
  - Unknown             at Unknown
    from: 1.5s -> to: 3.0s (2x)
  - Not in Baseline     at NotInBaseline
    from: 1.5s -> to: 3.0s (2x)
  - Not in Target       at NotInTarget
    from: 1.5s -> to: 3.0s (2x)
  > 'fast_check' method not applied: p.perf has no models
  > applying 'integral_comparison' method (2 ignored)
  - Severe Degradation  at g
    from: 1.5s -> to: 3.0s (2x, linear) (with confidence r_square = nan, interval 0.5 to inf, p < 0.0001)
    where it is 16 to 26: Maybe Degradation +17.0 %
    where it is 26 to 100: Degradation

  > collected by time for cmd: '$ /usr/bin/other tool -n 1'
  > not compared: no ancestor has a profile
  > collected by time for cmd: '$ ./app -n 1'
  > damaged: ab/cdef is damaged
  > collected by time for cmd: '$ ./gone -n 1'
  > not compared: the target has no profile of it
1 pair of profiles compared: 4 optimizations(+), 5 degradations(-), 3 of them severe(!!), \
1 inconclusive, 2 new or gone, 2 ignored
"""
    )


def test_text() -> None:
    """One line for each place, the worst first; what got worse in any workload comes before what did not."""
    clocks = Comparison(profile(workload="big"), profile("old.perf", workload="big"), version(2, "Before"), (
        MethodResult("hodges_lehmann_ratio", (
            change(
                Kind.Unknown, "./app [sys]", values=(0.00301, 0.00303), unit="s", rd=1.007,
                interval=(0.995, 1.031), p_value=0.15, sizes=(12, 10), detectable=1.05,
                rule="too wide",
            ),
            change(
                Kind.Degradation, "./app [cpu]", values=(0.06949, 0.33012), unit="s", rd=4.76,
                interval=(4.67, 4.87), p_value=1e-9, sizes=(10, 10),
            ),
            change(Kind.NoChange, "./app [real]", rd=1.0),
        )),
        MethodResult("average_amount_threshold", (change(Kind.Unknown, "./app [cpu]", rd=1.9),)),
    ))  # fmt: skip
    better = change(Kind.MaybeOptimization, "f(<a>, b)", rd=0.5, ct="r_square", cr=0.98)
    small = Comparison(
        profile(workload="small"), profile("old.perf"), version(2, "Before"),
        (MethodResult("aat", (better,)),)
    )  # fmt: skip
    told = VersionReport(version(), (small, clocks))
    assert answer("text", told, single=True).splitlines() == [
        "* 000000: Do it [+1 -1]",
        "  ./app -n 1 big (time), against 000000: Before",
        "    Degradation  cpu  69.5 ms -> 330 ms  +376 % [+367, +387]  4.76x  n = 10",
        "2 pairs of profiles compared: 1 degradation, 1 maybe, 1 unknown",
        "undecided in 2 pairs; to decide: perun compare 0000000000 0000000000 -c ./app -a '-n 1' "
        "-w small; list them with: -v",
        "why: perun collect -m 0000000000 -m 0000000000 -c ./app -a '-n 1' -w big instructions",
    ]
    verbose = answer("text", told, verbose=True)
    cells = " ".join(verbose.split())
    assert "Unknown sys 3.01 ms -> 3.03 ms +0.7 % [-0.5, +3.1] 1.007x n = 12, 10" in cells
    assert "Maybe Optimization f(<a>, b) 1.50 s -> 3.00 s -50.0 % 0.5x r_square = 0.98" in cells
    assert "p = 0.15, could show +5.0 %" in verbose
    assert "too wide" in verbose
    assert "No Change" in verbose


@pytest.mark.parametrize(("cmd", "clock", "collector"), [
    ("./app", "cpu", "instructions"),
    ("./app", "real", "trace"),
    ("python3 app.py", "cpu", "instructions --python"),
    ("/usr/bin/python3.12 -m app", "cpu", "instructions --python"),
    ("./app.py", "cpu", "instructions --python"),
    ("python3 app.py", "real", ""),
    ("./pythonic", "real", "trace"),
])  # fmt: skip
def test_the_last_line_names_what_sees_the_functions(cmd: str, clock: str, collector: str) -> None:
    info = profile("new.perf", cmd=cmd)
    found = change(Kind.Degradation, f"{cmd} [{clock}]", rd=2.0)
    pair = Comparison(info, profile("old.perf", cmd=cmd), version(2), (MethodResult("aat", (found,)),))
    last = answer("text", VersionReport(version(), (pair,)), single=True).splitlines()[-1]
    assert last.endswith(f" {collector}") == bool(collector)
    assert last.startswith("why: ") == bool(collector)


def test_what_was_seen_once_is_unconfirmed_in_all_formats() -> None:
    found = change(Kind.SevereDegradation, "./app [cpu]", rd=2.0, interval=(1.8, 2.2), confirmed=False)
    pair = Comparison(profile(), profile("old.perf"), version(2), (MethodResult("aat", (found,)),))
    told = VersionReport(version(parents=[f"{2:040x}"]), (pair,))
    asks = "to decide: perun compare {} -c ./app -a '-n 1'"
    text = answer("text", told, single=True, head=f"{1:040x}").splitlines()
    assert any("  Severe Degradation, unconfirmed  cpu  " in line for line in text)
    assert "unconfirmed: seen once; " + asks.format("HEAD~1 HEAD") in text
    asks = asks.format(f"{f'{2:040x}'[:10]} {f'{1:040x}'[:10]}")
    assert f"seen once; {asks}" in html.unescape(answer("markdown", told))
    assert "Severe Degradation, unconfirmed: from" in html.unescape(answer("junit", told))
    assert f"seen once; {asks}" in html.unescape(answer("junit", told))
    assert "Severe Degradation, unconfirmed at ./app [cpu]: " in answer("sarif", told)
    assert "unconfirmed, seen once: perun compare decides" in answer("manual", told)
    ((one,),) = (own["changes"] for own in json.loads(answer("json", told))["comparisons"])
    assert (one["verdict"], one["confirmed"]) == ("SevereDegradation", False)
    assert exit_code([told], "severe") == 1  # all the same


DECIDING = "to decide: perun compare HEAD~1 HEAD -c ./app -a '-n 1'; list them with: -v"


@pytest.mark.parametrize(("collector", "kind", "command"), [
    ("trace", Kind.Degradation, "why: perun show HEAD:{0}@i flamegraph --diff HEAD~1:{1}@i"),
    ("memory", Kind.MaybeDegradation, "why: perun show HEAD:{0}@i flamegraph --diff HEAD~1:{1}@i"),
    ("time", Kind.Unknown, f"undecided in 1 pair; {DECIDING}"),
    ("time", Kind.MaybeDegradation, f"undecided in 1 pair; {DECIDING}"),
    ("time", Kind.NoChange, ""),
])  # fmt: skip
def test_the_last_line_is_the_next_command(collector: str, kind: PerformanceChange, command: str) -> None:
    infos = profile("new.perf", collector=collector), profile("old.perf", collector=collector)
    pair = Comparison(*infos, version(2), (MethodResult("aat", (change(kind),)),))
    told = VersionReport(version(parents=[f"{2:040x}"]), (pair,))
    last = answer("text", told, single=True, head=f"{1:040x}").splitlines()[-1]
    assert last == (command.format(*map(identity, infos)) or "1 pair of profiles compared: no change")
    if collector == "trace":
        last = answer(
            "text", replace(pair, baseline_version=None), profiles=("old one.perf", "0@p")
        ).splitlines()[-1]
        assert last == "why: perun show 0@p flamegraph --diff 'old one.perf'"


@pytest.mark.parametrize(("kinds", "last"), [
    ({"real": Kind.Degradation, "cpu": Kind.Degradation}, "instructions"),
    ({"cpu": Kind.Degradation}, "instructions"),
    ({"real": Kind.Degradation}, "trace"),
    ({"real": Kind.Degradation, "cpu": Kind.MaybeOptimization}, "trace"),
    ({"real": Kind.NotInTarget}, "1 new or gone"),
])  # fmt: skip
def test_what_only_waits_is_to_be_traced(kinds: dict[str, PerformanceChange], last: str) -> None:
    told = report(*(change(kind, f"./app [{clock}]") for clock, kind in kinds.items()))
    assert answer("text", told).splitlines()[-1].endswith(f" {last}")


def test_a_comparison_side_by_side_needs_no_other() -> None:
    told = report(change(Kind.Unknown))
    pair = replace(told.comparisons[0], session={"pairs": 3})
    text = answer("text", replace(told, comparisons=(pair,)))
    assert "\n    Unknown  f  " in text and "to decide" not in text


def test_text_of_a_history_counts_methods_that_were_not_applied() -> None:
    lacking = Comparison(
        profile(), profile(), version(9),
        (MethodResult("aat", (change(Kind.NoChange),)), MethodResult("fast", reason="p.perf has no models"))
    )  # fmt: skip
    reports = [VersionReport(version(n, parents=[f"{n - 1:040x}"]), (lacking,)) for n in (3, 2)]
    assert answer("text", *reports).splitlines()[-2:] == [
        "2 pairs of profiles compared: no change",
        "'fast' not applied to 2 pairs, first: p.perf has no models",
    ]


def test_nothing_compared_where_every_method_refuses() -> None:
    refused = Comparison(
        profile(), profile(), version(9), (MethodResult("fast", reason="p.perf has no models"),)
    )
    told = VersionReport(version(), (refused,))
    assert answer("text", told, single=True).splitlines()[-1] == "nothing compared: p.perf has no models"
    assert validate("json", answer("json", told))["summary"]["compared"] == 0
    assert answer("markdown", told).startswith("## Performance: nothing compared\n")


@pytest.mark.parametrize(("kinds", "title", "summary"), [
    ([Kind.Unknown, Kind.Unknown], "inconclusive (2 unknown)", "2 unknown"),
    ([Kind.Unknown, Kind.NoChange], "inconclusive (1 unknown)", "1 unknown"),
    ([Kind.Degradation, Kind.Unknown], "1 degradation, 1 unknown", "1 unknown"),
    ([Kind.NoChange], "no change", "no change"),
    ([Kind.NotInTarget], "no change", "1 new or gone"),
])  # fmt: skip
def test_what_is_unknown_is_not_called_no_change(kinds: list[Kind], title: str, summary: str) -> None:
    told = report(*(change(kind, f"f{number}") for number, kind in enumerate(kinds)))
    assert answer("markdown", told).splitlines()[0] == f"## Performance: {title}"
    (tally,) = (line for line in answer("text", told).splitlines() if "compared" in line)
    assert tally == f"1 pair of profiles compared: {summary}" or tally.endswith(f", {summary}")
    assert "0 " not in tally.partition(":")[2]
    data = validate("json", answer("json", told))["summary"]
    assert data["inconclusive"] == kinds.count(Kind.Unknown)


def test_both_sides_the_same_is_an_answer() -> None:
    told = VersionReport(version(), (Comparison(profile(), reason="all files are the same", same=True),))
    assert answer("markdown", told).startswith("## Performance: no change\n")
    assert answer("text", told).splitlines()[-1] == "no change: all files are the same"
    data = validate("json", answer("json", told))
    assert (data["nothing_compared"], data["comparisons"][0]["same"]) == (None, True)
    for level in (None, "degradation", "inconclusive"):
        assert exit_code([told], level) == 0
        assert exit_code([EMPTY], level) == (13 if level else 0)
        assert exit_code([], level) == (13 if level else 0)


def cells(text: str) -> list[list[list[Any]]]:
    """The tokens of each cell of each row of all tables, as a reader of Markdown sees them."""
    rows: list[list[list[Any]]] = []
    for token in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text):
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline" and rows and token.level == 4:
            rows[-1].append(token.children or [])
    return rows


def test_markdown() -> None:
    shown = answer("markdown", EVERYTHING)
    lines = shown.splitlines()
    assert lines[0] == "## Performance: 4 degradations (3 severe), 3 optimizations, 2 maybe, 1 unknown"
    assert "### `0000000000` `Do it`" in lines
    assert "`time` of `./app -n 1` against `0000000000` `Before`" in lines
    table = [line for line in lines if line.startswith("| ") and "`" in line]
    assert table[0] == (
        "| **Total Degradation** :rotating_light: | `TotalDegradation` | `1.50 s` | `3.00 s` | +100 % (2x) "
        "|  | `average_amount_threshold` |"
    )
    assert [line.split("|")[2].strip() for line in table] == [
        "`TotalDegradation`", "`SevereDegradation`", "`g`", "`Degradation`",
        "`TotalOptimization`", "`SevereOptimization`", "`Optimization`",
        "`MaybeDegradation`", "`MaybeOptimization`", "`Unknown`", "`NotInBaseline`", "`NotInTarget`",
    ]  # fmt: skip
    assert "- `ab/cdef is damaged`" in lines
    assert "- `fast_check (1 pair): p.perf has no models`" in lines
    assert "NoChange" not in shown
    assert "NoChange" in answer("markdown", EVERYTHING, verbose=True)


@pytest.mark.parametrize("text", NASTY)
def test_markdown_obeys_nothing(text: str) -> None:
    check_obeys_nothing(text)


@given(st.text("|\\`<>&*_[]()!#@~: ab\n", max_size=20))
def test_markdown_obeys_no_text(text: str) -> None:
    check_obeys_nothing(text)


def check_obeys_nothing(text: str) -> None:
    shown = answer("markdown", hostile(text))
    for row in cells(shown):
        assert len(row) == 7
    known = {"text", "code_inline", "strong_open", "strong_close", "softbreak"}
    for token in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(shown):
        assert token.type not in ("html_block", "fence", "code_block", "blockquote_open", "hr")
        for child in token.children or []:
            if child.type == "html_inline":
                assert child.content in ("<code>", "</code>")
            else:
                assert child.type in known, child


@pytest.mark.parametrize(
    "text", ["SLList_search(SLList*, int)", "std::map<int, a>", "a|b", "`a\\|b`", "x  y"]
)
def test_code_shows_the_text_itself(text: str) -> None:
    markdown = MarkdownIt("commonmark").enable("table")
    tokens = markdown.parse(f"| a |\n| - |\n| {code(text)} |\n")
    inline = [token for token in tokens if token.type == "inline"][-1]
    assert "".join(child.content for child in inline.children or [] if child.type != "html_inline") == text


def test_plain_text_keeps_words() -> None:
    assert plain_text("3 pairs (2.5x), +1") == "3 pairs (2.5x), +1"
    assert plain_text("r_square <b>") == "r&#95;square &#60;b&#62;"


@pytest.mark.parametrize(
    "text", ["日" * 500, *(pytest.param(text, marks=pytest.mark.slow) for text in ("f", "`" * 400))]
)
def test_markdown_is_cut(text: str) -> None:
    """The least severe are left out, wherever they are, and what is left says so."""
    out = io.StringIO()
    made = Markdown(Page(out, "check all"))
    for number in range(60):
        found = [change(Kind.MaybeDegradation, f"{text}{n}") for n in range(100)]
        made.version(report(*found, change(Kind.SevereDegradation, f"worst {number}"), number=number))
    made.end()
    shown = out.getvalue()
    assert len(shown) < LIMIT
    assert shown.count("**Severe Degradation**") == 60
    left = 6060 - sum("Degradation**" in line for line in shown.splitlines())
    assert shown.endswith(
        f"**{left} more changes** did not fit here, the least severe ones: "
        "`perun check all` shows all of them.\n"
    )
    assert made._kept < 5000


def test_everything_fits_into_a_comment() -> None:
    """Also where all that is told beside the tables is long."""
    long = "`" * 1000
    reports = []
    for number in range(200):
        lacking = tuple(MethodResult(f"m{n}", reason=f"{long}{n}") for n in range(10))
        pair = Comparison(
            profile(), profile(), version(2),
            (*lacking, MethodResult("aat", (change(Kind.Degradation, long),)))
        )  # fmt: skip
        reports.append(
            VersionReport(
                version(number, long), (pair,), failure=f"{number}{long}", errors=(JobFailed(long),)
            )
        )
    shown = answer("markdown", *reports)
    assert len(shown) < LIMIT
    assert "more change" in shown


@pytest.mark.parametrize(("before", "after", "rest", "size"), [
    ("1.5s", "3.0s", {"t": "ratio", "rd": 2.0}, "+100 % (2x)"),
    ("500ms", "2s", {"t": "mean", "rd": 0}, "+300 % (4x, mean)"),
    ("2 MiB", "1 MiB", {"t": "-", "rd": -0.5}, "-50.0 % (0.5x)"),
    ("1e3", "2e3", {"t": "-", "rd": 1}, "+100 % (2x)"),
    ("304.79us (quadratic)", "39.7963ms (power)", {"t": "linear", "rd": 9740}, "+12,957 % (131x, linear)"),
    ("1B", "2s", {"t": "mean", "rd": 1}, "mean +1"),
    ("0s", "2s", {"t": "mean", "rd": 0}, ""),
    ("-1s", "2s", {"t": "-", "rd": 3}, "+3"),
    ("linear", "power", {"t": "order", "rd": 3}, "order +3"),
    ("-", "2s", {"t": "ratio", "rd": 0}, ""),
    ("a", "b", {"t": "ratio", "rd": inf}, ""),
    ("a", "b", {"t": "x", "rd": nan}, ""),
])  # fmt: skip
def test_size(before: str, after: str, rest: dict[str, Any], size: str) -> None:
    assert size_of(change(Kind.Degradation, fb=before, tt=after, **rest)) == size


@pytest.mark.parametrize(("before", "after", "shown"), [
    ("156.48ms", "60677.98ms", ("0.156 s", "60.7 s")),
    ("0.07s", "0.33s", ("70 ms", "330 ms")),
    ("900us", "1.1ms", ("0.900 ms", "1.10 ms")),
    ("2us", "60s", ("2 µs", "60 s")),
    ("0s", "0.25s", ("0 s", "250 ms")),
    ("0s", "0s", ("0 s", "0 s")),
    ("100B", "3145728B", ("100 B", "3 MiB")),
    ("1048576B", "3145728B", ("1 MiB", "3 MiB")),
    ("1234567", "2345678", ("1.23 M", "2.35 M")),
    ("1.000", "1.004", ("1.000", "1.004")),
    ("304.79us (quadratic)", "39.7963ms (power)", ("0.305 ms (quadratic)", "39.8 ms (power)")),
    ("3B", "2s", ("3 B", "2 s")),
    ("15.8ms", "22.0ms", ("15.8 ms", "22.0 ms")),
    ("156.00ms", "320.00ms", ("156 ms", "320 ms")),
    ("-", "1.0ms", ("-", "1 ms")),
    ("linear", "power", ("linear", "power")),
    ("-1s", "2s", ("-1 s", "2 s")),
])  # fmt: skip
def test_both_sides_have_one_unit(before: str, after: str, shown: tuple[str, str]) -> None:
    assert sides_of(change(Kind.Degradation, fb=before, tt=after)) == shown


def test_numbers_are_more_exact_than_the_texts() -> None:
    exact = change(Kind.Degradation, fb="0.07s", tt="0.33s", values=(0.06949, 0.33012), unit="s")
    assert sides_of(exact) == ("69.5 ms", "330 ms")
    assert amounts_of(exact) == ((0.06949, "s", ""), (0.33012, "s", ""))
    unknown = change(Kind.Unknown, fb="a", tt="2s", values=(nan, 2.0), unit="s")
    assert amounts_of(unknown) == (None, (2.0, "s", ""))


@pytest.mark.parametrize(("rest", "shown", "factor"), [
    ({"rd": 1.012, "interval": (0.996, 1.029)}, "+1.2 % [-0.4, +2.9]", "1.012x"),
    ({"rd": 0.5, "interval": (0.25, inf)}, "-50.0 % [-75.0, ...]", "0.5x"),
    ({"rd": 388.0}, "+38,700 %", "388x"),
    ({"rd": 3.0, "interval": (3.0, 3.0)}, "+200 %", "3x"),
    ({"rd": 2.0, "interval": (0.0, inf)}, "+100 %", "2x"),
    ({"t": "exponent", "rd": 2.0, "fb": "a", "interval": (1.5, 2.5)}, "", "exponent +2"),
])  # fmt: skip
def test_percent_and_factor(rest: dict[str, Any], shown: str, factor: str) -> None:
    found = change(Kind.Degradation, **rest)
    assert (percent_of(found), factor_of(found)) == (shown, factor)


def test_confidence() -> None:
    sure = change(Kind.Degradation, ct="r_square", cr=0.98, interval=(1.8, 2.25), p_value=0.00312)
    assert confidence_of(sure) == "confidence r_square = 0.98, p = 0.0031"
    order = change(Kind.Degradation, t="order", rd=1.0, interval=(1.8, 2.25))
    assert confidence_of(order) == "interval 1.8 to 2.25"
    assert confidence_of(change(Kind.Degradation)) == ""
    assert values_of(sure) == (
        "from 1.50 s to 3.00 s, +100 % [+80.0, +125] (2x), confidence r_square = 0.98, p = 0.0031"
    )


def test_many_parts_are_counted() -> None:
    parts = [(Kind.Degradation, 0.5, float(n), n + 1.0) for n in range(7)]
    told = parts_of(change(Kind.Degradation, pi=parts))
    assert told[0] == "where it is 0 to 1: Degradation +50.0 %"
    assert (len(told), told[-1]) == (6, "and 2 parts more")
    assert parts_of(change(Kind.Degradation)) == []


@pytest.mark.parametrize(
    ("share", "told"),
    [(-0.203, " -20.3 %"), (0.58, " +58.0 %"), (1628.4, " +162,840 %"), (0.0, " 0.0 %"), (nan, "")],
)
def test_the_rate_of_a_part_is_a_share(share: float, told: str) -> None:
    (line,) = parts_of(change(Kind.Degradation, pi=[(Kind.Degradation, share, 1.0, 2.0)]))
    assert line == f"where it is 1 to 2: Degradation{told}"


def test_importance() -> None:
    mild, large = change(Kind.Degradation, rd=2.0), change(Kind.Degradation, rd=90.0)
    better, best = change(Kind.Optimization, rd=0.5), change(Kind.Optimization, rd=0.01)
    odd = change(Kind.Degradation, t="x", fb="a", tt="b", rd=nan)
    severe = change(Kind.SevereDegradation, rd=2.0)
    assert sorted([better, odd, mild, best, large, severe], key=importance) == [
        severe, large, mild, odd, best, better
    ]  # fmt: skip
    assert ratio_of(odd) is None
    # Differences in time are sorted by themselves, not by how small the function was before.
    tiny = change(Kind.Degradation, t="time", fb="0.001ms", tt="1.0ms", rd=0.999)
    long = change(Kind.Degradation, t="time", fb="100.0ms", tt="150.0ms", rd=50.0)
    assert sorted([tiny, long], key=importance) == [long, tiny]


def test_marks() -> None:
    assert marks([]) == marks([Kind.NoChange, Kind.Unknown, Kind.NotInTarget, Kind.NotInBaseline]) == []
    assert [mark for mark, _ in marks(Kind)] == ["+4", "-4", "!!2"]


def test_what_explains_a_benchmark_of_a_suite_is_its_place() -> None:
    session: Any = None  # no profile is asked for the lines of functions
    place = ChangePlaces(session, {"sum [x] n=1": ("src/sum.c", 4), "./app -n 1": ("main.c", 9)})
    names = "sum [x] n=1 [cpu]", "sum [x] n=1", "./app [real]"
    found = report(*(change(Kind.Degradation, name) for name in names))
    (run,) = json.loads(answer("sarif", found, place=place))["runs"]
    physical = [one["locations"][0]["physicalLocation"] for one in run["results"]]
    told = [(one["artifactLocation"]["uri"], one["region"]["startLine"]) for one in physical]
    assert sorted(told) == [("main.c", 9), ("src/sum.c", 4), ("src/sum.c", 4)]
