"""The pieces of the dashboard, of real repositories."""

import json
import os
import subprocess
import time
from pathlib import Path

import jsonschema
import pytest

import measured_history
from measured_history import SLOWER
from perun.core.errors import DamagedStore, ProfileNotFound, UsageError, VersionControlError
from perun.history import acknowledged
from perun.history.changes.finding import changes
from perun.profile.factory import Profile
from perun.profile.head import Configuration
from perun.repository import journal as journal_file
from perun.repository.init import init
from perun.repository.repository import open_repository
from perun.running.explain import kept
from perun.running.explain.data import (
    CaseReport,
    Cause,
    CostChange,
    Explanation,
    FunctionChange,
    GrowthChange,
    HunkLine,
    OtherFile,
)
from perun.running.explain.kept import as_json
from perun.running.run import journal as journals
from perun.running.run import matrix
from perun.store.pending import link
from perun.web.data import series as series_module
from perun.web.data import versions as versions_module
from perun.web.data.naming import group_of
from perun.web.data.pieces import PLAIN, Pieces, encoded, schema
from perun.web.data.state import load
from perun.web.data.versions import running


@pytest.fixture(scope="module")
def _state(measured_template):
    return load(measured_template.open())


@pytest.fixture
def made(measured_template):
    """The repository that `piece` is of; nobody changes it."""
    return measured_template


@pytest.fixture
def piece(_state):
    """Get a piece as its reader gets it."""
    return reading(_state)


@pytest.fixture
def piece_now(measured):
    """The same of the copy that a test changes, as it is at the first call."""
    found = []

    def get(name):
        found.extend([] if found else [reading(load(measured.open()))])
        return found[0](name)

    return get


def reading(state):
    pieces = Pieces(state, "name")
    return lambda name: json.loads(encoded(pieces.piece(name)))


def places(line):
    """The positions of a line, whose pieces have differences."""
    return [sum(line["at"][: number + 1]) for number in range(len(line["at"]))]


def test_positions_put_parents_before_children_and_name_branches(piece, made):
    found = piece("commits/0")["commits"]
    place = {one["checksum"]: number for number, one in enumerate(found)}
    assert set(place) == {*made.main, *made.side}
    assert all(parent < number for number, one in enumerate(found) for parent in one["parents"])
    assert [one["branch"] for one in found if one["checksum"] in made.side] == [1] * 4
    assert place[made.side[0]] > place[made.main[9]]
    assert place[made.side[0]] < place[made.main[20]]  # by its date, and not at the end
    site = piece("site")
    assert [(one["name"], one["at"]) for one in site["branches"]] == [
        ("main", place[made.main[-1]]), ("side", place[made.side[-1]])
    ]  # fmt: skip
    assert [(one["name"], one["at"]) for one in site["tags"]] == [("v1.0", place[made.main[20]])]


def test_the_history_in_short_agrees_with_the_commits(piece):
    short, whole = piece("history"), piece("commits/0")["commits"]
    assert places({"at": short["dates"]}) == [one["date"] for one in whole]
    assert short["line"] == [one["branch"] for one in whole]
    assert short["checksums"] == "".join(one["checksum"][:8] for one in whole)
    assert short["measured"] == "1" * 44


def test_a_branch_whose_clock_was_wrong_comes_after_its_parent(tmp_path):
    made = measured_history.make(tmp_path / "project", commits=12, measured=())
    stream = (
        f"commit refs/heads/old\nmark :1\ncommitter Ada <a@b> 1000 +0000\ndata 2\nx\nfrom {made.main[-1]}\n\n"
    )
    measured_history.import_stream(made.path, stream)
    found = json.loads(encoded(Pieces(load(made.open()), "").piece("commits/0")))["commits"]
    assert [one["branch"] for one in found] == [0] * 12 + [1]
    assert found[-1]["parents"] == [11]


def test_of_fifty_branches_each_is_a_line(tmp_path):
    made = measured_history.make(tmp_path / "project", commits=12, measured=range(12))
    stream = "".join(
        f"commit refs/heads/b{number:02}\nmark :{number + 1}\n"
        f"committer Ada <a@b> {1_800_000_000 + number} +0000\ndata 2\nx\nfrom {made.main[number % 12]}\n\n"
        for number in range(50)
    )
    measured_history.import_stream(made.path, stream)
    pieces = Pieces(load(made.open()), "")
    site = json.loads(encoded(pieces.piece("site")))
    assert [one["name"] for one in site["branches"]] == ["main", *(f"b{number:02}" for number in range(50))]
    assert site["commits"] == 62


def test_the_points_of_a_series_are_what_was_measured(piece, made):
    (one,) = [one for one in piece("series")["series"] if one["location"] == "./app [real]"]
    page = piece(f"series/{one['id']}")
    assert page["configuration"]["cmd"] == "./app"
    main, side = page["lines"]
    assert (main["branch"], side["branch"], main["machine"]) == (0, 1, 0)
    assert main["n"] == measured_history.RUNS
    commits = piece("commits/0")["commits"]
    assert [commits[place]["checksum"] for place in places(main)] == made.main
    assert main["value"][0] == pytest.approx(0.2, rel=0.02)
    assert main["value"][-1] == pytest.approx(0.4, rel=0.02)
    assert all(0 < half < 40_000 for half in main["half"])  # millionths: noise of 0.4 % of five runs
    assert one["latest"] == main["value"][-1]
    assert one["title"] == "real time of ./app --all big.txt"


def test_what_is_counted_is_of_no_machine_and_has_no_interval(piece):
    (one,) = [one for one in piece("series")["series"] if one["collector"] == "memory"]
    line = piece(f"series/{one['id']}")["lines"][0]
    assert (line["machine"], line["half"], line["n"]) == (None, None, 1)
    assert set(line["value"]) == {1000, 2000}


def test_old_points_are_in_chunks_and_all_together_are_the_whole(monkeypatch, piece):
    name = piece("series")["series"][0]["id"]
    whole = piece(f"series/{name}")["lines"][0]
    monkeypatch.setattr(series_module, "PIECE", 16)
    monkeypatch.setattr(series_module, "TAIL", 8)
    page = piece(f"series/{name}")
    assert (page["tail"], page["chunks"]) == (40, [0, 1, 2])
    parts = [piece(f"series/{name}/{number}") for number in page["chunks"]] + [page]
    joined = [
        (place, value)
        for part in parts
        for line in part["lines"] if line["branch"] == 0
        for place, value in zip(places(line), line["value"], strict=True)
    ]  # fmt: skip
    assert joined == list(zip(places(whole), whole["value"], strict=True))
    assert all(place < 40 for place, _ in joined[: -len(page["lines"][0]["at"])])


def test_values_are_the_transposed_points(piece):
    values = piece("values/0")
    for row, name in enumerate(values["series"]):
        line = piece(f"series/{name}")["lines"][0]
        there = [values["value"][row][place] for place in places(line)]
        assert there == line["value"]
        halves = values["half"][row]
        assert (halves and [halves[place] for place in places(line)]) == line["half"]


def test_values_stay_as_they_are_where_other_series_become_important(measured_template):
    state = load(measured_template.open())
    before = encoded(Pieces(state, "").piece("values/0"))
    groups = dict(reversed(state.groups.items()))
    state = load(measured_template.open())
    state.__dict__["groups"] = groups
    assert encoded(Pieces(state, "").piece("values/0")) == before


def test_changes_are_those_of_the_command(piece, made):
    answer = piece("changes")
    found = changes(made.open())
    told = {(one.version.checksum, step.series.location) for one in found.found for step in one.steps}
    assert {(one["version"]["checksum"], one["location"]) for one in answer["changes"]} == told
    assert told == {(made.main[measured_history.SLOWER], place) for place in ("./app [real]", "./app [peak]")}
    change = answer["changes"][0]
    assert (change["degradation"], change["possible"], change["report"]) == (True, 1, True)
    assert change["since"]["checksum"] == made.main[measured_history.SLOWER - 1]
    values, place = change["spark"]["value"], change["spark"]["change"]
    assert values[place] / values[place - 1] == pytest.approx(2, rel=0.05)


def test_the_verdict_is_since_the_last_tag(piece):
    verdict = piece("overview")["verdict"]
    assert verdict["kind"] == "worse"
    assert verdict["tag"]["name"] == "v1.0"
    assert (verdict["worse"], verdict["better"], verdict["same"], verdict["unknown"]) == (2, 0, 0, 0)
    most = piece("overview")["changes"][0]
    told = f"2 changes made 2 of 2 benchmarks worse since v1.0: most {most['name']} {most['text']}."
    assert verdict["sentence"] == told


def test_a_tag_behind_the_change_has_no_part_in_it(measured, piece_now):
    subprocess.run(["git", "tag", "v2.0", measured.main[30]], cwd=measured.path, check=True)
    verdict = piece_now("overview")["verdict"]
    assert (verdict["kind"], verdict["tag"]["name"], verdict["worse"]) == ("same", "v2.0", 0)
    assert verdict["sentence"] == "Nothing changed since v2.0 in 2 benchmarks."


@pytest.mark.parametrize(("place", "tag"), [(35, "v2.0"), (36, "v1.0"), (38, "v1.0")])
def test_a_tag_counts_once_a_level_can_be_told_behind_it(measured, piece_now, place, tag):
    subprocess.run(["git", "tag", "v2.0", measured.main[place]], cwd=measured.path, check=True)
    assert piece_now("overview")["verdict"]["tag"]["name"] == tag


def test_what_is_acknowledged_makes_nothing_worse(measured, piece_now):
    repo = measured.open()
    acknowledged.acknowledge(repo, measured.main[measured_history.SLOWER], "*", because="it is correct now")
    overview = piece_now("overview")
    assert overview["verdict"]["kind"] == "same"
    assert overview["verdict"]["acknowledged"] == 2
    assert "2 got worse, which is acknowledged" in overview["verdict"]["details"]
    assert {one["acknowledged"]["because"] for one in overview["changes"]} == {"it is correct now"}
    month = time.strftime("%Y-%m", time.gmtime(overview["changes"][0]["version"]["date"]))
    assert overview["record"] == [{"month": month, "alerts": 2, "acknowledged": 2, "taken_back": 0}]


def test_a_series_on_two_machines_has_a_line_for_each(measured, piece_now):
    for number in range(20, 40):
        measured_history.measure(measured, measured.main[number], number, machine=1)
    site = piece_now("site")
    assert [name.partition(",")[0] for name in site["machines"]] == list(measured_history.MACHINES)
    (one,) = [one for one in piece_now("series")["series"] if one["location"] == "./app [real]"]
    lines = piece_now(f"series/{one['id']}")["lines"]
    assert [(line["machine"], line["branch"]) for line in lines] == [(0, 0), (0, 1), (1, 0)]
    assert lines[2]["value"][-1] / lines[0]["value"][-1] == pytest.approx(2, rel=0.05)
    benchmarks = piece_now("overview")["benchmarks"]
    lines = {(one["name"], one["metric"], one["members"][0]["machine"]): one["members"] for one in benchmarks}
    assert lines.keys() == {("./app", "real time", 0), ("./app", "peak", None), ("./app", "real time", 1)}
    (part,) = [one["id"] for one in piece_now("series")["series"] if one["location"] == "sort [real]"]
    assert lines["./app", "real time", 0][0]["parts"] == [part]  # it has no line of its own


def test_the_grid_and_the_heat_map_hold_the_medians(piece, monkeypatch):
    whole = piece("grid")
    assert len(whole["at"]) == 40
    monkeypatch.setattr("perun.web.data.pieces.COLUMNS", 10)
    short = piece("grid")
    assert short["at"] == whole["at"][::4]
    rows = {row["series"]: row["value"] for row in whole["rows"]}
    for row in short["rows"]:
        first = sorted(rows[row["series"]][:4])
        assert row["value"][0] == pytest.approx((first[1] + first[2]) / 2, rel=1e-4)
    heat = piece("overview")["heat"]
    assert [one["at"] for one in heat["commits"]] == whole["at"]
    leading = {row["series"]: row["value"] for row in heat["rows"]}
    assert leading == {name: rows[name] for name in leading} and len(leading) == 2


def history_of(tmp_path, values, **head):
    """The state of a history in which a command took these times, in seconds, of the runs of each commit.

    :param head: by name of the workload, where there are several: what its times are multiplied by.
    """
    made = measured_history.make(tmp_path / "project", commits=len(values), measured=())
    for number, runs in enumerate(values):
        for workload, factor in (head or {"": 1}).items():
            header = {"type": "time", "units": {"time": "s"}, "cmd": "./app", "workload": workload}
            times = Profile({"header": header, "collector_info": {"name": "time", "params": {}}})
            times.update_resources(
                {"uid": "./app", "type": "time", "subtype": kind, "order": order, "amount": run * factor}
                for kind in ("real", "sys") for order, run in enumerate(runs)
            )  # fmt: skip
            at = measured_history.START + measured_history.HOUR * number
            link(made.open().store, made.main[number], [(times, f"{workload}-{number}.perf", at)])
    return load(made.open())


@pytest.mark.filterwarnings("error")
def test_zeros_are_values_with_intervals_and_changes_to_and_from_them_are_told(tmp_path):
    get = reading(history_of(tmp_path, [[0.0, 0.0, 0.001]] * 5 + [[0.0, 0.0, 0.0]] * 5 + [[3.0] * 3] * 6))
    for name in (*PLAIN, "values/0", "commits/0"):
        get(name)
    (one,) = [one for one in get("series")["series"] if one["location"] == "./app [real]"]
    page = get(f"series/{one['id']}")
    (line,) = page["lines"]
    assert line["value"][0] == 0 and line["half"][0] > 0
    assert {change["text"] for change in page["changes"]} <= {"+3 s", "-3 s"}
    overview = get("overview")
    assert overview["verdict"]["changes"] == sum(one["decides"] for one in overview["changes"])
    compared = get("compare/HEAD~7..HEAD")["cases"][0]["rows"][0]
    assert (compared["a"]["text"], compared["b"]["text"], compared["text"]) == ("0 s", "3 s", "+3 s")


def test_a_family_is_one_line_and_names_tell_its_workloads_apart(tmp_path):
    state = history_of(tmp_path, [[0.1, 0.101]] * 10, **{"1000": 1, "10000": 10})
    get = reading(state)
    assert [one["name"] for one in get("series")["series"] if one["metric"] == "real"] == [
        "./app 1000 [real]", "./app 10000 [real]"
    ]  # fmt: skip
    (line,) = get("overview")["benchmarks"]
    assert line["name"] == "./app (2 workloads)"
    assert {one["series"]["command"] for one in line["members"]} == {"./app 1000", "./app 10000"}


def test_versions_with_parts_alone_are_no_columns_of_the_heat_map(tmp_path):
    made = measured_history.make(tmp_path / "project", commits=20, measured=range(0, 20, 2))
    header = {"type": "time", "units": {"time": "s"}, "cmd": "./app", "args": "--all", "workload": "big.txt"}
    for number in range(1, 20, 2):
        times = Profile({"header": header, "collector_info": {"name": "time", "params": {}}})
        part = {"uid": "sort", "type": "time", "amount": 1.0}
        times.update_resources({**part, "subtype": one} for one in ("user", "sys"))
        link(made.open().store, made.main[number], [(times, f"{number}.perf", measured_history.START)])
    get = reading(load(made.open()))
    assert [one["at"] for one in get("overview")["heat"]["commits"]] == list(range(0, 20, 2))
    assert len(get("grid")["at"]) == 20


def test_coverage_tells_what_lacks_profiles(tmp_path):
    made = measured_history.make(tmp_path / "project", commits=20, measured=[*range(5), *range(8, 20)])
    measured_history.measure(made, made.main[6], 6)
    assert len(made.open().store.indexes.read(made.main[6])) == 2
    answer = json.loads(encoded(Pieces(load(made.open()), "").piece("coverage")))
    assert {row["collector"]: row["cells"] for row in answer["rows"]} == {
        "time": "11111.1.111111111111"[:5] + ".1." + "1" * 12, "memory": "11111.1." + "1" * 12
    }  # fmt: skip
    assert [(one["count"], one["command"].split()[0]) for one in answer["missing"]] == [(2, "perun")] * 2
    assert places(answer) == list(range(20))


def test_kept_inputs_of_the_fuzzer_say_how_often_they_are_measured(measured, tmp_path):
    folder = measured.path / ".perun" / "workloads" / "fuzz"
    folder.mkdir(parents=True)
    (folder / "slow.txt").write_bytes(b"x" * 100)
    (folder / "hang.txt").write_bytes(b"y")
    (folder / ".hidden").write_bytes(b"")
    (folder / "link").symlink_to(tmp_path)
    header = {"type": "time", "units": {"time": "s"}, "cmd": "./app", "workload": "< fuzz/slow.txt"}
    for number in (38, 39):
        measured_history.measure(measured, measured.main[number], number, machine=1, header=header)
    fuzzed = json.loads(encoded(Pieces(load(measured.open()), "").piece("coverage")))["fuzzed"]
    assert [(one["name"], one["size"], one["measured"]) for one in fuzzed] == [
        ("hang.txt", 1, 0), ("slow.txt", 100, 2)
    ]  # fmt: skip
    assert fuzzed[1]["titles"] == ["./app < fuzz/slow.txt (time)"]


def test_an_incomplete_profile_is_told_and_not_drawn(tmp_path):
    made = measured_history.make(tmp_path / "project", commits=12, measured=range(11))
    why = [{"reason": "timeout", "amount": 3, "unit": "s"}]
    header = {"type": "time", "units": {"time": "s"}, "cmd": "./app", "args": "--all", "workload": "big.txt"}
    measured_history.measure(made, made.main[11], 11, header={**header, "incomplete": why})
    pieces = Pieces(load(made.open()), "")
    rows = json.loads(encoded(pieces.piece("coverage")))["rows"]
    assert {row["cells"] for row in rows if row["collector"] == "time"} == {"1" * 11 + ".", "." * 11 + "i"}
    profiles = json.loads(encoded(pieces.piece("commits/0")))["commits"][11]["profiles"]
    assert [bool(one["incomplete"]) for one in profiles] == [False, True]
    (one,) = [one for one in pieces.state.groups.values() if one.key.location == "./app [real]"]
    assert json.loads(encoded(pieces.piece(f"series/{one.id}")))["lines"][0]["at"] == [0] + [1] * 10


def test_damage_is_told_and_the_rest_is_shown(measured):
    measured.open().store.cache.clear()  # what was read once is known, however the profile ends
    index = measured.open().store.indexes.path(measured.main[3])
    index.write_bytes(b"nothing that an index is")
    entries = measured.open().store.indexes.read(measured.main[5])
    entry = next(one for one in entries if one.head.type == "time")
    measured.open().store.object_path(entry.checksum).write_bytes(b"spoiled")
    pieces = Pieces(load(measured.open()), "")
    for name in PLAIN:
        assert encoded(pieces.piece(name))
    site = json.loads(encoded(pieces.piece("site")))
    assert site["measured"] == 43
    assert len(site["problems"]) == 2
    assert str(measured.path) not in json.dumps(site["problems"])
    damaged = json.loads(encoded(pieces.piece("commits/0")))["commits"]
    told = {one["checksum"] for one in damaged if one["damaged"]}
    assert told == {measured.main[3], measured.main[5]}


def test_before_the_first_commit_every_piece_says_what_to_do(tmp_path, monkeypatch):
    subprocess.run(["git", "init", "-q", "-b", "main", tmp_path], check=True)
    monkeypatch.chdir(tmp_path)
    init(tmp_path, os.environ)
    pieces = Pieces(load(open_repository(tmp_path, os.environ)), "")
    found = {name: json.loads(encoded(pieces.piece(name))) for name in PLAIN}
    assert found["site"]["head"] is None
    assert "no commits yet" in found["site"]["problems"][0]
    assert found["site"]["hint"] == "commit something, and measure it: perun run matrix"
    assert found["overview"]["verdict"]["kind"] == "unknown"


def test_what_is_measured_on_a_branch_alone_makes_no_empty_rows(tmp_path):
    pieces = Pieces(load(measured_history.make(tmp_path, 12, side=2, measured=()).open()), "")
    found = json.loads(encoded(pieces.piece("overview")))
    assert (found["heat"]["rows"], found["heat"]["commits"], found["benchmarks"]) == ([], [], [])
    assert found["verdict"]["sentence"] == "Too few versions are measured to tell a change from noise."
    assert json.loads(encoded(pieces.piece("series")))["series"]


def test_without_profiles_the_hint_says_what_to_run(tmp_path):
    made = measured_history.make(tmp_path / "project", commits=3, measured=())
    pieces = Pieces(load(made.open()), "")
    found = {name: json.loads(encoded(pieces.piece(name))) for name in PLAIN}
    assert found["site"]["hint"] == "measure this version: perun run matrix"
    assert found["overview"]["verdict"]["sentence"] == "No version has a profile yet."
    assert len(json.loads(encoded(pieces.piece("commits/0")))["commits"]) == 3


def test_to_compare_two_versions_no_others_are_looked_for(piece, made, monkeypatch):
    monkeypatch.setattr("perun.store.index.Indexes.minors", lambda indexes: pytest.fail("all are read"))
    assert piece(f"compare/{made.main[SLOWER - 1]}..{made.main[SLOWER]}")["cases"]


def test_two_versions_are_compared_as_check_compares_them(piece, made):
    pair = f"{made.main[measured_history.SLOWER - 1]}..{made.main[measured_history.SLOWER]}"
    found = piece(f"compare/{pair}")
    assert [one["title"].rpartition(" ")[2] for one in found["cases"]] == ["(time)", "(memory)"]
    rows = {row["location"]: row for case in found["cases"] for row in case["rows"]}
    slower = rows["./app [real]"]
    assert slower["result"].endswith("Degradation")
    assert slower["interval"][0] < slower["ratio"] < slower["interval"][1]
    assert slower["ratio"] == pytest.approx(2, rel=0.03)
    assert (rows["./app [peak]"]["ratio"], rows["./app [peak]"]["exact"]) == (2, True)
    assert rows["sort [real]"]["result"] in ("NoChange", "Unknown")
    assert slower["series"] in {one["id"] for one in piece("series")["series"]}
    (times,) = [case for case in found["cases"] if "(time)" in case["title"]]
    assert times["rows"][0]["location"] == "./app [real]"  # the worst first
    assert {len(sample["a"]) for sample in times["samples"]} == {measured_history.RUNS}


@pytest.mark.parametrize(
    "name",
    ["", "sit", "site/", "commits/01", "commits/9", "commits/-1", "values/99999999999", "series/../site",
     "series/000000000000", "series/0123456789AB", "../site", "compare/", "site\n", "explained/../site"],
)  # fmt: skip
def test_other_names_are_no_pieces(piece, name):
    with pytest.raises(ProfileNotFound):
        piece(name)


@pytest.mark.parametrize("pair", ["main", "..main", "main..", "--output=x..main", "main..-c"])
def test_what_is_compared_has_to_be_named(piece, pair):
    with pytest.raises(UsageError):
        piece(f"compare/{pair}")


def test_an_unknown_version_is_an_error(piece):
    with pytest.raises(VersionControlError):
        piece("compare/main..nonsense")
    with pytest.raises(VersionControlError):
        piece("message/nonsense")


def test_the_message_of_a_version_is_whole(piece, made):
    assert piece(f"message/{made.main[3]}")["text"].strip() == "Change number 3"


def test_the_schema_in_the_manual_is_that_of_the_pieces(piece_now, measured):
    piece, made = piece_now, measured
    kept.keep(made.open(), made.main[measured_history.SLOWER], explanation(made))
    path = Path(__file__).parents[3] / "docs" / "schemas" / "perun.web-1.schema.json"
    written = json.loads(path.read_text(encoding="utf-8"))
    assert written == schema(), "write perun.web.data.pieces.schema() there"
    validator = jsonschema.Draft202012Validator(written)
    series = next(iter(piece("series")["series"]))["id"]
    pair = f"{made.main[measured_history.SLOWER - 1]}..{made.main[measured_history.SLOWER]}"
    names = [*PLAIN, "commits/0", "values/0", f"series/{series}", f"series/{series}/0", f"compare/{pair}"]
    names.append(f"explained/{made.main[measured_history.SLOWER]}")
    found = {}
    for name in [*names, f"message/{made.main[0]}"]:
        one = piece(name)
        validator.validate(one)
        found[one["schema"]] = name
    assert len(found) == len(written["anyOf"])
    with pytest.raises(jsonschema.ValidationError):
        validator.validate({**piece("grid"), "at": "text"})


def explanation(made):
    """An answer of `perun explain` on the version that became slower."""
    place = measured_history.SLOWER
    base, head = (made.open().vcs.get_minor_version_info(made.main[one]) for one in (place - 1, place))
    lines = (
        HunkLine(" ", 1, 1, "int f() {"),
        *(HunkLine("+", 0, 2 + number, "<b>g();</b>") for number in range(60)),
    )
    function = FunctionChange(
        "f", "app.c", "app.c", 1, 70, (CostChange("instructions", "instr", 1e6, 2e6, 4e6),), lines=lines,
        near=(("app.h", HunkLine("+", 0, 9, "#define N 2")),),
        growth=GrowthChange(True, True, "2 * n", "2 * n^2", ""),
    )  # fmt: skip
    smaller = FunctionChange("g", "app.c", "", 0, 0, (CostChange("peak", "B", 200.0, 0.0, 4e3),))
    line = HunkLine("+", 0, 3, "x")
    causes = (Cause("function", "f", "app.c", 1, 9, 1e6, 2e6, 0.9, lines=(line,)),
              Cause("definition", "N", "app.h", 3, 3, 0, 0, 0.5, lines=(line,), amounts=(7.0,)))  # fmt: skip
    whole = CostChange("time", "s", 0.2, 0.4, 0.2, 1.9, 2.1)
    case = CaseReport("./app big.txt", (whole,), (function, smaller), 3, (), ("calls: not recorded",), causes)
    other = OtherFile("Makefile", "build", 1, 2)
    return as_json(Explanation(base, head, (case,), (other,), 2, ("a note",)))


def test_what_explains_a_version_is_told_as_it_was_found(measured):
    culprit = measured.main[measured_history.SLOWER]
    kept.keep(measured.open(), culprit, explanation(measured))
    kept.keep(measured.open(), "f" * 40, {})  # of a version that is not known
    get = reading(load(measured.open()))
    assert get("site")["explained"] == [get("history")["checksums"].index(culprit[:8]) // 8]
    found = get(f"explained/{culprit}")
    assert (found["a"]["checksum"], found["b"]["checksum"]) == tuple(measured.main[23:25])
    (case,) = found["cases"]
    slower, used, freed = case["functions"]
    assert slower["sentence"].startswith("f() executes 2x, 1 M instr -> 2 M instr [exact]; 1 line of it")
    assert (used["location"], used["sentence"], used["costs"]) == ("N", "N changed (app.h:3)", [])
    assert (slower["worse"], freed["worse"], slower["growth"]) == (True, False, ["2 * n", "2 * n^2"])
    assert [(one["place"], len(one["lines"]), one["more"]) for one in slower["diffs"]] == [
        ("app.c", 40, 21), ("app.h", 1, 0)
    ]  # fmt: skip
    assert case["totals"][0]["interval"] == [1.9, 2.1]
    assert found["others"] == ["Makefile (build): +1 -2"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"base": 1}'])
def test_an_explanation_that_cannot_be_read_says_how_to_make_it_again(measured, text):
    culprit = measured.main[measured_history.SLOWER]
    kept.keep(measured.open(), culprit, {})
    (kept.folder_of(measured.open()) / f"{culprit}.json").write_text(text)
    with pytest.raises(DamagedStore) as problem:
        reading(load(measured.open()))(f"explained/{culprit}")
    assert problem.value.hint == f"explain it: perun explain {culprit[:10]}"


def test_a_version_that_was_not_explained_has_no_such_piece(piece, made):
    with pytest.raises(ProfileNotFound, match="was not explained"):
        piece(f"explained/{made.main[0]}")


def test_half_characters_are_no_reason_to_fail(piece):
    found = versions_module.form.Message("half \ud800 a character")
    assert json.loads(encoded(found))["text"] == "half \ud800 a character"


# -- a batch that is measured --------------------------------------------------------------------------------


def test_a_batch_is_told_while_a_process_works_on_it(measured):
    repo = measured.open()
    assert running(repo) is None
    plan = {"versions": [1, 2], "stops": [["a", 0, [[0, 0], [1, 1]]], ["b", 0, [[2, 0]]]]}
    journal = journal_file.create(matrix.folder(repo), plan)
    found = running(repo)
    assert (found.title, found.done, found.total, found.seconds_left) == ("measuring 2 versions", 0, 3, None)
    for line in (["saving", 0, "x"], ["done", 0], ["failed", 1, "why"]):
        journal.append(*line)
    found = running(repo)
    assert (found.done, found.total) == (2, 3)
    assert 0 <= found.seconds_left < 3600
    journal.close()
    assert running(repo) is None


def test_a_pause_does_not_count(measured):
    """A batch that was begun years ago, whose failures are measured again now."""
    repo = measured.open()
    journal = journal_file.create(matrix.folder(repo), {"versions": [1], "stops": [["a", 0, [[0, 0]] * 4]]})
    for line in (["done", 0], ["failed", 1, "why"]):
        journal.append(*line)
    journal.close()
    journal.path.rename(journal.path.with_name("20200101-000000-000000-1.jsonl"))
    with journals.newest(matrix.folder(repo)) as resumed:
        resumed.resumed()
        found = running(repo)
        assert (found.done, found.total, found.seconds_left) == (1, 4, None)
        resumed.done(1)
        found = running(repo)
        assert (found.done, found.total) == (2, 4)
        assert 0 <= found.seconds_left < 3600


def test_a_journal_of_another_form_is_told_without_numbers(measured):
    repo = measured.open()
    journal = journal_file.create(matrix.folder(repo), {"stops": "nonsense", "versions": None})
    assert (running(repo).done, running(repo).total) == (0, 0)
    journal.close()


@pytest.mark.parametrize(
    ("name", "group"),
    [("tests/test_a.py::Test::test_b", "tests/test_a.py::Test"), ("tab.BenchmarkSum", "tab"), ("plain", ""),
     ("org.x.Bench.sum", "org.x.Bench"), ("group/parse", "group")],
)  # fmt: skip
def test_a_benchmark_of_a_suite_belongs_to_its_file_or_package(name: str, group: str) -> None:
    of_suite = Configuration.of("go.memory", "go test -bench", name, "n=1", ())
    assert group_of(of_suite) == group
    assert group_of(of_suite._replace(collector="time")) == ""
