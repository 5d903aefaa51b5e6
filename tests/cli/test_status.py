"""`perun status` (manual 3.2.8 and 12.1)."""

import pytest

from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.store import Store
from perun.store.cache import FILE, Cache
from perun.store.changes import ChangeRecord


@pytest.fixture
def jobs(project):
    return project.path / ".perun" / "jobs"


def test_nothing_yet(perun, project):
    assert perun("status").out == (
        f"On major version main (minor version: {project.head})\n\n"
        "Author: Ada Lindqvist <ada@example.org> 2024-03-04 09:02:00\n\n"
        "    Commit 3\n\n"
        "no registered profiles\n\n"
        "no pending profiles\n"
    )


MANUAL = "| %type% | %cmd% | %args% | %workload% | %collector% | (%time%) |"
"""A format as the manual has it (12.1)."""


def test_the_tables(perun, project, write_profile):
    perun("config", "set", "format.status", MANUAL)
    write_profile("a.perf", workload="small.txt", args="-v")
    write_profile("b.perf", type_="memory", collector="memory", cmd="./other")
    write_profile("c.perf", type_="mixed")
    perun("add", "0@p")
    assert perun("status").out.partition("    Commit 3\n\n")[2] == (
        "1 registered profile:\n"
        "-----------------------------------------------------------------------------\n"
        "id  | type   | cmd   | args | workload  | collector | (time               ) |\n"
        "-----------------------------------------------------------------------------\n"
        "0@i | [time] | ./app | -v   | small.txt | time      | (2024-05-01 10:00:00) |\n"
        "-----------------------------------------------------------------------------\n"
        "\n"
        "2 pending profiles:\n"
        "---------------------------------------------------------------------------------\n"
        "id  | type     | cmd     | args | workload  | collector | (time               ) |\n"
        "---------------------------------------------------------------------------------\n"
        "0@p | [memory] | ./other |      | input.txt | memory    | (2024-05-01 10:00:01) |\n"
        "1@p | [mixed]  | ./app   |      | input.txt | time      | (2024-05-01 10:00:02) |\n"
        "---------------------------------------------------------------------------------\n"
    )


def test_short(perun, project, write_profile):
    write_profile()
    lines = perun("status", "--short").lines
    assert lines[0] == f"On major version main (minor version: {project.head[:12]})"
    assert "Ada Lindqvist" not in "\n".join(lines)
    assert lines[-2].startswith("0@p | time ")


ANY_VALUE = object()


def test_json(perun, project, write_profile):
    write_profile("a.perf", args="-v", postprocessors=["normalizer"])
    perun("add", "0@p")
    write_profile("b.perf")
    answer = perun("status", "--json").json
    checksum = answer["registered"][0].pop("checksum")
    ids = [answer[kind][0].pop("id") for kind in ("registered", "pending")]
    assert [one[-2:] for one in ids] == ["@i", "@p"]
    assert (project.path / ".perun" / "objects" / checksum[:2] / checksum[2:]).is_file()
    common = {
        **{"type": "time", "cmd": "./app", "workload": "input.txt", "collector": "time"},
        "other_machine": None, "incomplete": None, "difference": None, "measured": ANY_VALUE
    }  # fmt: skip
    for one in (*answer["registered"], *answer["pending"]):
        measured, one["measured"] = one["measured"], ANY_VALUE
        low, high = measured.pop("low"), measured.pop("high")
        assert measured == {"metric": "real time", "value": 1.5, "unit": "s", "n": 3}
        assert 0 < low < 1.0 < 2.0 < high
    assert answer == {
        "schema": "perun.status/2",
        "major_version": "main",
        "minor_version": {
            "date": "2024-03-04 09:02:00", "author": "Ada Lindqvist", "email": "ada@example.org",
            "checksum": project.head, "desc": "Commit 3", "parents": [project.git("rev-parse", "HEAD~1")]
        },
        "registered": [
            {**common, "tag": "0@i", "name": "a.perf", "args": "-v", "postprocessors": ["normalizer"],
             "time": 1714557600}
        ],
        "pending": [
            {**common, "tag": "0@p", "name": "b.perf", "args": "", "postprocessors": [],
             "time": 1714557601, "checksum": None}
        ],
        "damaged": [],
        "changes": [],
        "steps": [],
        "bisection": None,
    }  # fmt: skip


def test_format(perun, write_profile):
    write_profile("a.perf", cmd="./a-long-command", postprocessors=["one", "two"])
    perun("config", "set", "format.status", "%source% <%type:4%> %cmd:6% %postprocessors%")
    lines = perun("status", "-s").lines
    assert lines[-4] == "id  source <type  > cmd    postprocessors"
    assert lines[-2] == "0@p a.perf <[time]> ./a-lo one two"


def test_an_unknown_tag(perun, project, write_profile):
    write_profile()
    (project.path / ".perun" / "local.yml").write_text("format: {status: '%type% %colour%'}\n")
    failed = perun("status", code=5)
    assert failed.out == ""
    assert "format.status: there is no tag %colour%" in failed.err
    assert "%workload%" in failed.err.splitlines()[1]


def test_a_damaged_pending_file_is_shown(perun, jobs, write_profile):
    write_profile("good.perf")
    (jobs / "bad.perf").write_text("{")
    done = perun("status")
    assert "1 pending profile:" in done.out
    assert f"warning: {jobs / 'bad.perf'}: not JSON" in done.err
    assert "perun rm bad.perf" in done.err
    [damaged] = perun("status", "--json").json["damaged"]
    assert damaged["name"] == "bad.perf"
    assert str(jobs / "bad.perf") in damaged["reason"]


def test_changes_found_by_checks(perun, project):
    changes = [
        PerformanceChange.Degradation,
        PerformanceChange.SevereDegradation,
        PerformanceChange.Optimization,
    ]
    records = [
        ChangeRecord(
            DegradationInfo(change, f"f{n}", "1s", "2s", "ratio", 2.0),
            project.git("rev-parse", "HEAD~1"),
            "./app",
        )
        for n, change in enumerate(changes)
    ]
    Store(project.path / ".perun").changes.merge(project.head, records)
    assert perun("status").lines[-4:] == [
        "3 changes: 1 optimization(+), 2 degradations(-)",
        "  Severe Degradation  f1  1 s -> 2 s  +100 %  2x",
        "  Degradation         f0  1 s -> 2 s  +100 %  2x",
        "  Optimization        f2  1 s -> 2 s  +100 %  2x",
    ]
    answer = perun("status", "--json").json["changes"]
    assert sorted((one["location"], one["result"]) for one in answer) == [
        ("f0", "Degradation"),
        ("f1", "SevereDegradation"),
        ("f2", "Optimization"),
    ]


def test_changes_that_are_none_for_better_or_worse(perun, project):
    """What is unknown is said to be; what is of another workload is told apart; many are counted."""
    baseline = project.git("rev-parse", "HEAD~1")
    changes = Store(project.path / ".perun").changes
    unknown = DegradationInfo(PerformanceChange.Unknown, "f", "-", "2s")
    changes.merge(project.head, [ChangeRecord(unknown, baseline, "time ./app small")])
    assert perun("status").lines[-2:] == ["1 change: 1 unknown", "  Unknown  f  - -> 2 s"]
    assert "Changes: 1 unknown\n  Unknown  f  - -> 2 s\n" in perun("log").out
    new = DegradationInfo(PerformanceChange.NotInBaseline, "f", "-", "2s")
    changes.merge(project.head, [ChangeRecord(new, baseline, "time ./app big")])
    assert perun("status").lines[-3:] == [
        "2 changes: 1 unknown, 1 new or gone",
        "  Unknown          f  - -> 2 s  (time ./app small)",
        "  Not in Baseline  f  - -> 2 s  (time ./app big)",
    ]
    many = (DegradationInfo(PerformanceChange.Degradation, f"g{n}", "1s", "2s") for n in range(40))
    changes.merge(project.head, [ChangeRecord(info, baseline, "time ./app big") for info in many])
    assert perun("status").lines[-1] == "  and 22 more: perun -v status lists them"
    assert len(perun("-v", "status").lines) > 42


def test_before_the_first_commit(perun, git_repository):
    repository = git_repository("unborn")
    perun("init", cwd=repository.path)
    for option in ((), ("--short",)):
        lines = perun("status", *option, cwd=repository.path).lines
        assert lines[0] == "On major version main (minor version: none yet)"
        assert lines[2] == "no registered profiles"
    answer = perun("status", "--json", cwd=repository.path).json
    assert (answer["major_version"], answer["minor_version"]) == ("main", None)


def test_a_branch_that_names_no_commit_is_not_called_new(perun, project):
    (project.path / ".git" / "refs" / "heads" / "main").write_text("1" * 40 + "\n")
    assert perun("status", code=4).out == ""


def test_with_head_detached(perun, project):
    project.git("checkout", "--quiet", "--detach", "HEAD~1")
    lines = perun("status").lines
    assert lines[0] == f"On no major version, HEAD is detached (minor version: {project.head})"
    assert lines[4].strip() == "Commit 2"


def test_profiles_of_another_version_are_not_shown(perun, project, write_profile):
    write_profile()
    perun("add", "0@p")
    project.git("checkout", "--quiet", "-b", "side", "HEAD~1")
    perun("status", out=("On major version side", "no registered profiles"))


def test_from_a_folder_below(perun, project, write_profile):
    write_profile()
    folder = project.path / "a" / "b"
    folder.mkdir(parents=True)
    assert perun("status", cwd=folder).out == perun("status").out


@pytest.mark.parametrize("place", ["outside", "project/inside"])
def test_a_linked_working_tree_uses_the_main_one(perun, project, write_profile, tmp_path, place):
    write_profile("main.perf")
    perun("add", "0@p")
    linked = tmp_path / place
    project.git("worktree", "add", "--quiet", "-b", "side", str(linked), "HEAD~1")
    below = linked / "deep"
    below.mkdir()
    for folder in (linked, below):
        lines = perun("status", cwd=folder).lines
        assert lines[0].startswith(
            f"On major version side (minor version: {project.git('rev-parse', 'side')}"
        )
        assert "no registered profiles" in lines
    write_profile("side.perf", origin="side")
    perun("add", "0@p", cwd=linked)
    assert "1 registered profile:" in perun("status", cwd=linked).out
    assert perun("config", "--local", "get", "vcs.type", cwd=linked).out == "vcs.type: git\n"
    perun("config", "set", "cmds", "./x", cwd=linked)
    assert perun("config", "get", "cmds").out == 'cmds: ["./x"]\n'
    assert [one["name"] for one in perun("status", "--json").json["registered"]] == ["main.perf"]


def test_a_submodule_belongs_to_the_project(perun, project, git_repository, tmp_path):
    git_repository("library", commits=1)
    source = str(tmp_path / "library")
    project.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", source, "library")
    assert project.head in perun("status", cwd=project.path / "library").out


def test_a_linked_working_tree_of_a_project_without_perun(perun, git_repository, tmp_path):
    repository = git_repository(commits=1)
    repository.git("worktree", "add", "--quiet", "--detach", str(tmp_path / "linked"))
    perun("status", cwd=tmp_path / "linked", code=3, err="no Perun repository at")


def test_sort_by(perun, project, write_profile):
    for name, workload in (("a", "2"), ("b", "1")):
        write_profile(f"{name}.perf", workload=workload)
    assert [line[:3] for line in perun("status", "-sb", "workload").lines if "@p" in line] == ["0@p", "1@p"]
    pending = perun("status", "--json").json["pending"]
    assert [(one["tag"], one["name"]) for one in pending] == [("0@p", "b.perf"), ("1@p", "a.perf")]
    perun("status", "--sort-by", "colour", code=2, err="realpath")


def test_on_a_narrow_terminal_columns_are_shortened(terminal, write_profile):
    write_profile("a.perf", cmd="./a-very-long-command-that-takes-much-room", workload="w" * 60)
    wide = terminal("--no-color", "status", columns=250, errors=False).out.splitlines()
    narrow = terminal("--no-color", "status", columns=90, errors=False).out.splitlines()
    assert max(map(len, wide)) > 120
    assert max(map(len, narrow)) == 90
    assert ".." in narrow[-2]


def test_on_a_narrow_terminal_the_command_is_more_than_the_count(terminal, write_profile):
    write_profile("a.perf", cmd="./list_bench", workload="10000 --all-of-it", amounts=(1.5, 1.52, 1.48))
    for columns, value in ((100, "1.50 s ± 0.06 (n = 3)"), (84, "1.50 s ± 0.06")):
        row = terminal("--no-color", "status", columns=columns, errors=False).out.splitlines()[-2]
        assert row.startswith(f"0@p | time      | ./list_bench 10000 --all-of-it | {value}")
        assert ("(n = 3)" in row) == ("(n = 3)" in value)


def test_colours(perun, terminal, write_profile):
    write_profile()
    shown = terminal("status").out
    assert "\x1b[1m./app input.txt\x1b[0m" in shown
    assert "\x1b[31m0@p\x1b[0m" in shown  # pending
    assert "\x1b" not in terminal("status", env={"NO_COLOR": "1"}).out
    assert "\x1b" not in terminal("status", env={"TERM": "dumb"}).out
    assert "\x1b" not in terminal("--no-color", "status").out
    assert "\x1b" not in perun("status").out
    assert "\x1b[1m./app input.txt\x1b[0m" in perun("status", env={"CLICOLOR_FORCE": "1"}).out


def test_paging(perun, terminal, project, tmp_path):
    pager = tmp_path / "pager"
    pager.write_text("#!/bin/sh\necho paged\ncat\n")
    pager.chmod(0o755)
    env = {"PAGER": str(pager)}
    assert not terminal("status", env=env).out.startswith("paged")  # only log is, by default
    perun("config", "set", "general.paging", "always")
    assert terminal("status", env=env, errors=False).out.startswith("paged\nOn major version")
    assert terminal("status", env={**env, "PERUN_PAGER": "cat"}, errors=False).out.startswith(
        "On major version"
    )
    assert terminal("--no-pager", "status", env=env, errors=False).out.startswith("On major version")
    assert perun("status", env=env).out.startswith("On major version")


def test_it_writes_nothing(perun, project, write_profile):
    write_profile()
    perun("status")  # it may note what it had to read from profiles
    before = {path: path.stat().st_mtime_ns for path in (project.path / ".perun").rglob("*")}
    perun("status")
    perun("log")
    assert {path: path.stat().st_mtime_ns for path in (project.path / ".perun").rglob("*")} == before


@pytest.fixture
def measured(project, write_profile, perun):
    """Profiles of two versions, registered: HEAD is slower than HEAD~1; one more of HEAD is pending."""
    write_profile("old.perf", origin="HEAD~1", amounts=(1.0, 1.02, 0.98))
    write_profile("new.perf", amounts=(1.5, 1.52, 1.48), args="")
    write_profile("other.perf", cmd="./other", workload="", amounts=(0.25,))
    perun("add", "--to-origin", "0@p-2@p")
    write_profile("more.perf", amounts=(1.0, 1.02, 0.98))
    return project


def test_what_was_measured_and_how_it_differs(perun, measured):
    registered, pending = perun("status").out.split("    Commit 3\n\n")[1].split("\n\n")
    assert registered.splitlines()[2].split(" | ") == [
        *("id ", "collector", "command        ", "value                ", "difference"),
        *registered.splitlines()[2].split(" | ")[5:],
    ]
    rows = [[cell.strip() for cell in line.split("|")] for line in registered.splitlines()[4:6]]
    assert [row[:5] for row in rows] == [
        ["0@i", "time", "./app input.txt", "1.50 s ± 0.06 (n = 3)", "+50.0 %"],
        ["1@i", "time", "./other", "250 ms", ""],
    ]
    assert all(row[5].endswith(" years ago") for row in rows)
    # The pending profile is of HEAD, and is compared with HEAD~1 as well.
    row = [cell.strip() for cell in pending.splitlines()[4].split("|")]
    assert row[:5] == ["0@p", "time", "./app input.txt", "1.00 s ± 0.06 (n = 3)", "0.0 %"]


def test_verbose_names_files_and_versions(perun, measured):
    before = measured.git("rev-parse", "HEAD~1")
    line = next(line for line in perun("-v", "status").lines if line.startswith("0@i"))
    assert f"+50.0 % [-25.4, +202] since {before[:7]}" in line
    assert line.endswith("| new.perf")
    assert "new.perf" not in perun("status").out
    perun("config", "set", "format.status", "%source% %value%")
    assert perun("-v", "status", "-s").out.count("new.perf") == 1


def test_numbers_in_json(perun, measured):
    answer = perun("status", "--json").json
    first, second = answer["registered"]
    assert first["measured"] == {
        "metric": "real time", "value": pytest.approx(1.5), "low": pytest.approx(1.439, abs=1e-3),
        "high": pytest.approx(1.564, abs=1e-3), "n": 3, "unit": "s"
    }  # fmt: skip
    difference = first["difference"]
    assert difference.pop("reason").endswith("measure in rounds, perun compare does")
    assert difference == {
        "ratio": pytest.approx(1.5), "ratio_low": pytest.approx(0.746, abs=1e-3),
        "ratio_high": pytest.approx(3.018, abs=1e-3), "verdict": "Unknown", "decides": False, "limit": None,
        "confirmed": True, "since": measured.git("rev-parse", "HEAD~1"), "shares": None,
    }  # fmt: skip
    assert second["measured"]["low"] is second["measured"]["high"] is None
    assert second["difference"] is None


def test_of_another_version(perun, measured):
    before = measured.git("rev-parse", "HEAD~1")
    for revision in ("HEAD~1", "main~1", before):
        done = perun("status", revision)
        assert done.lines[0] == f"Minor version {before}"
        assert "    Commit 2" in done.lines
        assert "pending" not in done.out
        tag = f"{before[:10]}:0@i" if revision == before else f"{revision}:0@i"
        assert done.lines[-2].startswith(f"{tag} | time ")
        answer = perun("status", revision, "--json").json
        assert (answer["minor_version"]["checksum"], answer["pending"]) == (before, [])
        assert [one["tag"] for one in answer["registered"]] == [tag]
        assert '"amount"' in perun("show", tag, "raw").out
    failed = perun("status", "no-such-branch", check=False)
    assert (failed.code, failed.out) == (4, "")


def test_colours_of_differences(terminal, measured, perun, write_profile):
    # Where each was measured once, that may be the machine: no mark, and no colour.
    assert " +50.0 % " in terminal("status").out
    write_profile("old.perf", origin="HEAD~1", amounts=(1.01, 1.02, 0.99))
    perun("add", "--to-origin", "1@p")
    write_profile("new.perf", amounts=(1.51, 1.5, 1.49))
    perun("add", "1@p")
    shown = terminal("status").out
    assert "\x1b[1;31m+49.3 % !!\x1b[0m" in shown
    assert "marks: !! severe" in shown


def test_a_store_without_facts_shows_values_too(perun, measured):
    expected = perun("status").out
    path = measured.path / ".perun/cache" / FILE
    known = Cache(path).all("facts", bytes)
    path.unlink()
    assert perun("status").out == expected
    assert Cache(path).all("facts", bytes).keys() <= known.keys()
    assert len(Cache(path).all("facts", bytes)) > 1


def test_large_profiles_are_not_read_for_a_list(perun, project, write_profile):
    write_profile("large.perf", amounts=[n / 7 for n in range(80_000)])
    done = perun("status")
    assert "(n =" not in done.out
    assert done.err == (
        "note: the values of 1 profile are not known yet; read them all with: perun fsck --repair\n"
    )
    assert perun("status", "--json").json["pending"][0]["measured"] is None
