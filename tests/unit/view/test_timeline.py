"""The view of timelines: what the page gets, other formats, and what it refuses."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from islands import READ, SLEEP, WRITE, Call, profile, real, timeline, usage
from perun.core.errors import ProfileError, UsageError
from perun.profile.factory import Profile
from perun.view.timeline import TimelineView

MS = 1_000_000
CALLS: list[Call] = [
    (0, WRITE, "/tmp/a,b#1", 100 * MS, 200 * MS, 800),
    (0, SLEEP, "", 400 * MS, 300 * MS, 300 * MS),
    (1, READ, "/etc/hosts#1", 200 * MS, 100 * MS, 40),
]


def made() -> Profile:
    line = timeline(["MainThread", "worker"], CALLS, stops=[(450 * MS, 100 * MS)])
    return profile([real(1.0), usage("filewrite", 800, uid="/tmp/a,b#1", calls=1, seconds=0.2)], line)


def written(form: str, **options: Any) -> str:
    out = io.StringIO()
    TimelineView().render(made(), TimelineView.Params(format=form, **options), out)
    return out.getvalue()


def test_the_page_has_the_calls_and_the_tables(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    assert written("html", filename=str(path)) == f"{path}\n"
    block = path.read_text().partition('id="data">')[2].partition("</script>")[0]
    data = json.loads(block)
    assert data["columns"]["start"] == [100 * MS, 400 * MS, 200 * MS]
    assert data["stops"] == [[450 * MS, 100 * MS]]
    assert data["rows"] == [["MainThread", "disk", "filewrite", "/tmp/a,b#1", 800, "B", 1, 0.2]]
    assert "1 s, 2 threads, 3 calls, stopped for 100 ms by 1 stop" in path.read_text()


def test_events_as_csv_are_in_the_order_of_time() -> None:
    head, *rows = csv.reader(io.StringIO(written("csv")))
    assert head[:3] == ["time", "thread", "api"]
    assert [float(row[0]) for row in rows] == sorted(float(row[0]) for row in rows)
    assert ["0.300000000", "MainThread", "file.write", "/tmp/a,b#1", "800"] in rows
    assert ["0.450000000", "ALL", "Stopped", "", "0.1"] in rows
    assert sum(row[2] == "thread created" for row in rows) == 2


def test_events_as_lines_of_json_and_as_text() -> None:
    events = [json.loads(line) for line in written("json").splitlines()]
    assert {
        "time": 0.3,
        "thread": "MainThread",
        "api": "file.write",
        "object": "/tmp/a,b#1",
        "amount": 800,
    } in events
    assert "start time.sleep" in written("text")


def test_traces_for_other_programs(tmp_path: Path) -> None:
    trace = json.loads(written("chrome"))
    calls = {one["name"]: one for one in trace["traceEvents"] if one["ph"] == "X"}
    assert (calls["file.write"]["ts"], calls["file.write"]["dur"]) == (100_000, 200_000)
    assert "Stopped" in calls
    path = tmp_path / "trace.json"
    assert written("speedscope", filename=str(path)) == f"{path}\n"
    scope = json.loads(path.read_text())
    assert scope["$schema"].endswith("file-format-schema.json")
    assert {one["name"] for one in scope["profiles"]} >= {"MainThread", "worker"}


def test_a_browser_shows_pages_only() -> None:
    with pytest.raises(UsageError, match="browser cannot show"):
        written("csv", view_in_browser=True)


def test_a_profile_without_timeline_is_refused() -> None:
    with pytest.raises(ProfileError, match="no timeline") as refusal:
        TimelineView().render(profile(), TimelineView.Params(), io.StringIO())
    assert "perun collect" in str(refusal.value.hint)


@pytest.mark.parametrize(("where", "value"), [
    (("columns", "thread"), [0, 0, 7]),
    (("columns", "object"), [0, -3, 1]),
    (("columns", "start"), [1, 2]),
    (("columns", "start"), [1, "2", 3]),
    (("columns", "amount"), [1, 10**30, 3]),
    (("columns", "busy"), 7),
    (("stops",), [[1, 0.5]]),
    (("end",), float("inf")),
    (("threads",), [["a", 5, 0, 1], ["b", 0, 0, 1]]),
    (("apis",), [["a"]]),
    (("stops",), 7),
    (("end",), None),
])  # fmt: skip
def test_a_damaged_timeline_is_refused(where: tuple[str, ...], value: Any) -> None:
    damaged = made()
    place = damaged["timeline"]
    for key in where[:-1]:
        place = place[key]
    place[where[-1]] = value
    with pytest.raises(ProfileError, match="timeline of the profile is damaged"):
        TimelineView().render(damaged, TimelineView.Params(format="text"), io.StringIO())
