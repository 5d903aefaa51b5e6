"""`perun show flamegraph` and `perun show heapmap`: options, files, other profiles, and what is refused."""

import json
import re

import pytest

from perun.profile.factory import Profile
from perun.profile.format.json import dumps_pending


@pytest.fixture
def write_memory(project):
    """Write a pending memory profile: stacks (outermost call first, joined by `;`) and their amounts."""

    def write(name="memory.perf", unit="B", cmd="./app", **stacks):
        profile = Profile(
            header={"type": "memory", "cmd": cmd, "args": "", "workload": "", "units": {"memory": unit}},
            collector_info={"name": "memory", "params": {}}, postprocessors=[], origin=project.head
        )  # fmt: skip
        profile.update_resources(
            {
                "type": "memory",
                "subtype": "malloc",
                "amount": amount,
                "address": 4096 + 64 * number,
                "uid": stack.split("__")[-1],
                "trace": [
                    {"function": one, "source": "a.c", "line": 1} for one in reversed(stack.split("__"))
                ],
            }
            for number, (stack, amount) in enumerate((stacks or {"main__f": 3, "main": 1}).items())
        )
        (project.path / ".perun" / "jobs" / name).write_bytes(dumps_pending(profile))

    return write


def data_of(path):
    return json.loads(re.search(r'id="data">(.*?)</script>', path.read_text("utf-8"))[1])


@pytest.mark.parametrize("view", ["flamegraph", "heapmap"])
def test_a_page_is_written_and_named(perun, project, write_memory, view):
    write_memory()
    assert perun("show", "0@p", view).out == f"{view}-memory-app.html\n"
    assert perun("show", "0@p", view).out == f"{view}-memory-app(1).html\n"
    assert perun("show", "0@p", view, "-f", "my page.html", "-gt", "My <title>").out == "my page.html\n"
    assert "<title>My &lt;title&gt;</title>" in (project.path / "my page.html").read_text("utf-8")
    perun("show", "0@p", view, "--filename", "my page.html")
    assert "My &lt;title&gt;" not in (project.path / "my page.html").read_text("utf-8")


@pytest.mark.parametrize("view", ["flamegraph", "heapmap"])
def test_no_browser_is_a_message(perun, project, write_memory, view):
    write_memory()
    nothing = {"BROWSER": "/no/such/browser", "DISPLAY": None, "WAYLAND_DISPLAY": None}
    shown = perun("show", "0@p", view, "-v", "-f", "x.html", env=nothing)
    assert shown.out == "x.html\n"
    assert shown.err == "cannot open a browser; open x.html in one\n"
    assert (project.path / "x.html").exists()


def test_the_browser_of_the_user_is_given_the_page(perun, project, write_memory, tmp_path):
    write_memory()
    script = tmp_path / "browser"
    script.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened\n')
    script.chmod(0o755)
    shown = perun("show", "0@p", "flamegraph", "-v", "-f", "x.html", env={"BROWSER": str(script)})
    assert (shown.out, shown.err) == ("x.html\n", "")
    assert (tmp_path / "opened").read_text().strip() == (project.path / "x.html").as_uri()


def test_stacks_for_other_tools(perun, project, write_memory):
    write_memory()
    assert perun("show", "0@p", "flamegraph", "--format", "folded").out == "main 1\nmain;f 3\n"
    assert (
        perun("show", "0@p", "flamegraph", "--format", "folded", "--of", "count").out == "main 1\nmain;f 1\n"
    )
    found = json.loads(perun("show", "0@p", "flamegraph", "--format", "speedscope").out)
    assert found["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert found["profiles"][0]["unit"] == "bytes"
    assert perun("show", "0@p", "flamegraph", "--format", "folded", "-f", "x").out == "x\n"
    assert (project.path / "x").read_text() == "main 1\nmain;f 3\n"


def test_calls_as_a_chrome_trace(perun, project, write_memory):
    profile = Profile(
        header={"type": "mixed", "cmd": "./app", "args": "", "workload": "", "units": {"mixed": "us"}},
        collector_info={"name": "trace", "params": {}}, postprocessors=[], origin=project.head
    )  # fmt: skip
    profile.update_resources(
        {"type": "mixed", "uid": uid, "timestamp": start, "amount": amount, "thread": 3,
         "structure-unit-size": 4}
        for uid, start, amount in (("main", 0.0, 9.5), ("f", 1.0, 2.25))
    )  # fmt: skip
    (project.path / ".perun" / "jobs" / "trace.perf").write_bytes(dumps_pending(profile))
    assert perun("show", "0@p", "flamegraph", "--format", "folded").out == "main 7.25\nmain;f 2.25\n"
    shown = perun("show", "0@p", "flamegraph", "--format", "chrome")
    assert [event for event in shown.json["traceEvents"] if event["ph"] == "X"] == [
        {"ph": "X", "pid": 1, "tid": 3, "name": name, "ts": start, "dur": amount, "args": {"size": 4}}
        for name, start, amount in (("main", 0, 9.5), ("f", 1, 2.25))
    ]
    assert perun("show", "0@p", "flamegraph", "--format", "chrome", "-f", "x.json").out == "x.json\n"
    assert (project.path / "x.json").read_text() == shown.out
    write_memory("zz.perf")
    failed = perun("show", "zz.perf", "flamegraph", "--format", "chrome", check=False)
    assert "those of the profile are in B" in failed.err
    assert failed.code != 0


def test_the_difference_to_another_profile(perun, project, write_memory):
    write_memory("old.perf", main__f=3, main=1)
    perun("add", "0@p")
    project.commit("Allocate more", {"file.txt": "more"})
    write_memory("new.perf", main__f=5, main__g=2)
    shown = perun("show", "-m", "HEAD~1", "0@p", "flamegraph", "--diff", "0@i", "-f", "x.html")
    assert shown.out == "x.html\n"
    data = data_of(project.path / "x.html")
    assert dict(zip(data["names"], zip(*data["modes"][0]["amounts"], strict=True), strict=False)) == {
        "main": (0, 1), "f": (5, 3), "g": (2, 0),
    }  # fmt: skip
    perun("show", "0@p", "flamegraph", "--diff", "nope", code=6, err="no profile matches 'nope'")


def test_options_of_the_manual(perun, project, write_memory):
    write_memory()
    perun("show", "0@p", "flamegraph", "-f", "x.html", "-h", "30")
    assert data_of(project.path / "x.html")["frameHeight"] == 30
    perun("show", "0@p", "flamegraph", "--filename", "x.html", "--graph-height", "20")
    assert data_of(project.path / "x.html")["frameHeight"] == 20
    assert "--graph-height" in perun("show", "0@p", "flamegraph", "--help").out


@pytest.mark.parametrize(("arguments", "code", "message"), [
    (("flamegraph", "--of", "size"), 2, "the profile has: address, amount, count"),
    (("flamegraph", "--format", "svg"), 2, "'html', 'folded', 'speedscope', 'chrome'"),
    (("flamegraph", "-h", "2"), 2, "2 is not in the range"),
    (("flamegraph", "--diff", "0@p", "--format", "folded"), 2, "--diff needs --format html"),
    (("flamegraph", "--diff", "other.perf"), 2, "name a baseline of the same type and unit"),
    (("flamegraph", "-f", "file.txt/x.html"), 2, "cannot write"),
    (("heapmap", "-f", "file.txt/x.html"), 2, "cannot write"),
])  # fmt: skip
def test_what_is_refused(perun, project, write_memory, arguments, code, message):
    write_memory()
    write_memory("other.perf", unit="kB")
    assert perun("show", "memory.perf", *arguments, code=code, err=message).out == ""
    assert not list(project.path.glob("*.html"))


@pytest.mark.parametrize(
    ("view", "message"),
    [("flamegraph", "no resource has a trace"), ("heapmap", "no resource has an address")],
)
def test_a_time_profile_has_no_stacks_and_no_heap(perun, project, write_profile, view, message):
    write_profile()
    perun("show", "0@p", view, code=6, err=(message, "hint: "))
