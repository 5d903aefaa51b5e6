"""The view of lines: costs by line beside the sources of the profile's version."""

import io
import json
from typing import Any

import pytest

from perun.core.errors import UsageError
from perun.plugin.api import ViewContext
from perun.profile.factory import Profile
from perun.view.lines import LinesParams, LinesView, costs_of
from profiles import profile_of

SOURCE = "int twice(int n)\n{\n\treturn n > 0 ? twice(n - 1) : \x1b[31m;\n}\n\n\n\n\nint main()\n{\n}\n"


def frame(function: str, line: int, source: str = "a.c") -> dict[str, Any]:
    return {"function": function, "source": source, "line": line}


def sampled(*stacks: tuple[list[dict[str, Any]], float], subtype: str = "cpu") -> list[dict[str, Any]]:
    return [
        {"subtype": subtype, "uid": {"function": trace[0]["function"]}, "trace": trace, "amount": amount}
        for trace, amount in stacks
    ]


TWICE = [frame("twice", 3), frame("twice", 3), frame("main", 9)]
SAMPLES = profile_of(
    [
        *sampled((TWICE, 3.0), ([frame("main", 10)], 1.0)),
        *sampled(([frame("main", 11)], 7.0), subtype="waiting"),
    ],
    "sample",
)


def shown(profile: Profile, ctx: ViewContext | None = None, **params: Any) -> list[str]:
    out = io.StringIO()
    context = ctx or ViewContext(source={"a.c": SOURCE}.get)
    LinesView().render(profile, LinesParams(**params), out, context)
    return out.getvalue().splitlines()


def test_the_hottest_function_leads_and_recursion_counts_once() -> None:
    assert shown(SAMPLES, context=1) == [
        "./app: 4 s",
        "    own    incl.",
        "",
        "  75.0%    75.0%  twice  a.c",
        "                       2  {",
        "  75.0%    75.0%       3      return n > 0 ? twice(n - 1) : \\x1b[31m;",
        "                       4  }",
        "",
        "  25.0%   100.0%  main  a.c",
        "                       8",
        "           75.0%       9  int main()",
        "  25.0%    25.0%      10  {",
        "                      11  }",
    ]


def test_gaps_between_lines_are_shown() -> None:
    far = profile_of(sampled(([frame("f", 1)], 1.0), ([frame("f", 9)], 1.0)), "sample")
    assert "                     ..." in shown(far, context=1)


def test_waiting_is_apart_from_cpu_time() -> None:
    assert shown(SAMPLES, waiting=True, context=0)[3:] == [
        " 100.0%   100.0%  main  a.c",
        " 100.0%   100.0%      11  }",
    ]
    with pytest.raises(UsageError, match="--waiting"):
        shown(profile_of(sampled((TWICE, 1.0)), "time"), waiting=True)


def test_sources_and_lines_that_are_not_known_are_said() -> None:
    notes: list[str] = []
    assert shown(SAMPLES, ViewContext(), function="twice")[3:] == [
        "  75.0%    75.0%  twice  a.c",
        "                  (source unknown)",
        "  75.0%    75.0%       3",
    ]
    bare = profile_of(sampled(([frame("f", 0)], 1.0)), "sample")
    assert shown(bare, ViewContext(note=notes.append))[3:] == [" 100.0%   100.0%  f  a.c"]
    assert notes == ["the profile has no lines: compile with -g, and collect again"]
    # A file that has fewer lines than the profile says.
    assert shown(SAMPLES, ViewContext(source=lambda path: "one"), function="twice", context=0)[4:] == [
        "  75.0%    75.0%       3"
    ]


def test_uncommitted_changes_and_functions_left_out_are_noted() -> None:
    notes: list[str] = []
    profile = Profile(SAMPLES.serialize())
    profile["header"]["session"] = {"uncommitted": True}
    shown(profile, ViewContext(note=notes.append), top=1)
    assert [note.partition(";")[0] for note in notes] == [
        "measured with uncommitted changes",
        "1 more function",
    ]


def test_lines_of_counted_instructions() -> None:
    profile = profile_of(
        sampled(([frame("twice", 0)], 60), ([frame("main", 0)], 40)), "instructions", "instructions",
        lines={
            "functions": [{"function": "main", "source": "a.c"}], "files": ["a.c", "b.h"],
            "costs": [[0, 0, 9, 30], [0, 1, 3, 10], [0, 0, 99]],
            "calls": [[0, 0, 9, 0, 2, 500]],
        },
    )  # fmt: skip
    total, found = costs_of(profile)
    assert total == 100
    lines = {place: (cost.own, cost.inclusive) for place, cost in found["main", "a.c"].lines.items()}
    assert lines == {("a.c", 9): (30, 30), ("b.h", 3): (10, 10)}
    text = shown(profile, function="main", context=0)
    assert text[5:] == [
        "                  b.h",
        "                  (source unknown)",
        "  10.0%    10.0%       3",
    ]


def test_as_json() -> None:
    answer = json.loads("\n".join(shown(SAMPLES, json=True, top=1)))
    (function,) = answer.pop("functions")
    assert answer == {"schema": "perun.lines/1", "command": "./app", "unit": "s", "total": 4.0, "of": 2}
    assert function["lines"][0]["text"].startswith("\treturn n")
    assert (function["function"], function["own"], function["inclusive"]) == ("twice", 3.0, 3.0)


def test_what_is_refused() -> None:
    with pytest.raises(UsageError, match="no function has 'nope' in its name"):
        shown(SAMPLES, function="nope")
    for wrong in ({"top": 0}, {"context": -1}):
        with pytest.raises(ValueError, match="at least"):
            LinesParams(**wrong)
