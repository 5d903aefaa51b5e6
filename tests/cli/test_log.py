"""`perun log` (manual 3.2.9 and 12.2)."""

import subprocess

import pytest

from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.store import Store
from perun.store.changes import ChangeRecord

MANUAL = "%checksum:6% (%stats%) %desc% %changes%"
HEADER = "minor    (a|m|x|t profiles) info changes"


@pytest.fixture
def shortlog(perun, project):
    """Lines of `log --short` in a format, without the header."""

    def lines(format_, **options):
        perun("config", "set", "format.shortlog", format_)
        return perun("log", "--short", **options).lines

    return lines


@pytest.fixture
def merged(project):
    """A merge of a branch `side`, which has one commit, into main."""
    project.git("checkout", "--quiet", "-b", "side", "HEAD~1")
    project.commit("On the side", {"side.txt": "1"})
    project.git("checkout", "--quiet", "main")
    project.git("merge", "--quiet", "--no-ff", "-m", "Merge side", "side")
    return project


def test_short(perun, project, write_profile):
    for name, type_ in (("a", "time"), ("b", "time"), ("c", "memory"), ("d", "mixed")):
        write_profile(f"{name}.perf", type_=type_)
    write_profile("e.perf", origin="HEAD~1")
    perun("add", "--to-origin", "0@p-9@p")
    perun("config", "set", "format.shortlog", MANUAL)
    heads = [project.git("rev-parse", f"HEAD~{n}")[:8] for n in range(3)]
    assert perun("log", "--short").lines == [
        HEADER, f"{heads[0]} (4|1|1|2 profiles) Commit 3", f"{heads[1]} (1|0|0|1 profiles) Commit 2",
        f"{heads[2]} (--no--profiles--) Commit 1"
    ]  # fmt: skip


def test_long(perun, merged, write_profile):
    write_profile("a.perf")
    write_profile("b.perf", type_="memory")
    perun("add", "0@p-1@p")
    parents = merged.git("log", "-1", "--format=%P").split()
    text = perun("log").out
    assert text.startswith(
        f"Minor Version {merged.head}\n"
        "2 registered profiles (1 memory, 1 time)\n"
        f"Parents: {parents[0][:10]} {parents[1][:10]}\n"
        "Author: Ada Lindqvist <ada@example.org> 2024-03-04 09:00:00\n"
        "\n"
        "    Merge side\n"
        "\n"
        "Minor Version "
    )
    assert text.count("Minor Version") == 5
    assert [line[:8] for line in text.splitlines() if "Parent" in line] == ["Parents:", *["Parent: "] * 3]
    assert text.count("(no registered profiles)") == 4


def test_at_most_so_many(perun, merged):
    every = perun("log", "--json").json["versions"]
    for option in ("-n", "--max-count"):
        assert perun("log", option, "2", "--json").json["versions"] == every[:2]
    assert len(perun("log", "-s", "-n", "3").lines) == 1 + 3
    assert perun("log", "-n", "0").out == ""
    assert perun("log", "-n", "99").out.count("Minor Version") == len(every)
    assert "-1 is not in the range x>=0" in perun("log", "-n", "-1", check=False).err


def test_json(perun, merged, write_profile):
    write_profile()
    perun("add", "0@p")
    answer = perun("log", "--json").json
    assert answer["schema"] == "perun.log/2"
    versions = answer["versions"]
    assert [one["checksum"] for one in versions] == merged.git("log", "--date-order", "--format=%H").split()
    assert versions[0]["profiles"] == {"time": 1}
    assert versions[0]["parents"] == merged.git("log", "-1", "--format=%P").split()
    assert versions[1]["profiles"] == {}
    assert (versions[0]["degradations"], versions[0]["optimizations"]) == (0, 0)
    assert {one["author"] for one in versions} == {"Ada Lindqvist"}


@pytest.mark.parametrize("spelling", ["HEAD~1", "main~1", "v1", "{short}", "{full}", ":/Commit 2"])
def test_from_a_version(perun, project, spelling):
    project.git("tag", "-a", "-m", "one", "v1", "HEAD~1")
    full = project.git("rev-parse", "HEAD~1")
    lines = perun("log", "-s", spelling.format(full=full, short=full[:7])).lines
    assert [line.partition(") ")[2].strip() for line in lines[1:]] == ["Commit 2", "Commit 1"]


@pytest.mark.parametrize("option", [(), ("--short",), ("--json",)])
def test_an_unknown_version(perun, project, option):
    for revision in ("nope", "HEAD~9", "-x", "HEAD:file.txt"):
        assert perun("log", *option, "--", revision, code=4, err=repr(revision)).out == ""


@pytest.mark.parametrize("option", [(), ("--short",), ("--json",)])
def test_before_the_first_commit(perun, git_repository, option):
    repository = git_repository("unborn")
    perun("init", cwd=repository.path)
    assert perun("log", *option, cwd=repository.path, code=4, err="has no commits yet").out == ""


def test_merges_in_the_order_of_git(perun, merged):
    expected = merged.git("log", "--date-order", "--format=%s").splitlines()
    assert [line.partition(") ")[2].strip() for line in perun("log", "-s").lines[1:]] == expected


def test_tags(shortlog, project):
    assert shortlog("%checksum% %desc% by %author% <%email%> on %date%|%parents%|%changes%")[:2] == [
        "checksum info by author <email> on date|parents|changes".replace("checksum", "minor"),
        f"{project.head} Commit 3 by Ada Lindqvist <ada@example.org> on 2024-03-04 09:02:00"
        f"|{project.git('rev-parse', 'HEAD~1')}|",
    ]


def test_widths(shortlog, project):
    """A column is never narrower than the name of its tag (manual 12.2)."""
    head = project.head
    assert shortlog("%checksum:12%|%desc:5%|%author:2%|%parents:10%|.")[:2] == [
        "minor       |info |author|parents|.".replace("parents", "parents   "),
        f"{head[:12]}|Commi|Ada Li|{project.git('rev-parse', 'HEAD~1')[:10]}|.",
    ]
    assert shortlog("%checksum:3%|")[1] == f"{head[:8]}|"
    assert shortlog("%desc:20%|")[1] == "Commit 3            |"


def test_raw_text_and_lone_percent_signs(shortlog, project):
    assert shortlog("100% [%desc%] %")[:2] == ["100% [info] %", "100% [Commit 3] %"]


def test_an_unknown_tag(perun, project):
    (project.path / ".perun" / "local.yml").write_text("format: {shortlog: '%checksum% %colour%'}\n")
    failed = perun("log", "--short", code=5, err="format.shortlog: there is no tag %colour%")
    assert "%checksum%" in failed.err.splitlines()[1]
    assert failed.out == ""
    perun("log")


def test_changes(perun, project):
    changes = {
        "f": PerformanceChange.Degradation,
        "g": PerformanceChange.Optimization,
        "h": PerformanceChange.NoChange,
    }
    records = [
        ChangeRecord(DegradationInfo(change, name, "1", "2", "ratio", 2.0), "HEAD", "./app")
        for name, change in changes.items()
    ]
    Store(project.path / ".perun").changes.merge(project.head, records)
    assert perun("log", "-s").lines[1].endswith("Commit 3 +-")
    assert (
        "Changes: 1 optimization(+), 1 degradation(-)\n"
        "  Degradation   f  1 -> 2  +100 %  2x\n"
        "  Optimization  g  1 -> 2  +100 %  2x\n"
    ) in perun("log").out
    [newest, *_] = perun("log", "--json").json["versions"]
    assert (newest["degradations"], newest["optimizations"]) == (1, 1)
    assert "\x1b[1;32m+\x1b[0m\x1b[1;31m-\x1b[0m" in perun("log", "-s", env={"CLICOLOR_FORCE": "1"}).out


def test_messages_that_a_terminal_would_obey(perun, project):
    message = "Red \x1b[31m subject\twith \u202e order\n\nBody \x1b]0;title\x07\n\n    indented\n"
    project.git(
        *("-c", "user.name=x", "commit", "--quiet", "--allow-empty", "--cleanup=verbatim", "-m", message),
        environ={"GIT_AUTHOR_NAME": "Eve \x1b[2J"},
    )
    short = perun("log", "-s").lines[1]
    assert short.endswith("Red \\x1b[31m subject\\twith \\u202e order")
    text = perun("log").out
    assert "Author: Eve \\x1b[2J <ada@example.org>" in text
    assert "    Body \\x1b]0;title\\x07\n" in text
    assert "        indented\n" in text
    for output in (short, text, perun("status").out):
        assert "\x1b" not in output
        assert "\x07" not in output
    assert perun("log", "--json").json["versions"][0]["desc"].startswith("Red \x1b[31m subject")


def test_odd_encodings(perun, project):
    message = project.path / ".git" / "message"
    message.write_bytes("Opraveno: žluťoučký kůň\n".encode("iso-8859-2"))
    project.git("-c", "i18n.commitEncoding=ISO-8859-2", "commit", "-q", "--allow-empty", "-F", str(message))
    message.write_bytes(b"Not text: \xff\xfe\n")
    project.git("commit", "--quiet", "--allow-empty", "-F", str(message))
    message.write_text("日本語の件名 🎉\n")
    project.git(
        "commit", "--quiet", "--allow-empty", "-F", str(message), environ={"GIT_AUTHOR_NAME": "Zdeněk"}
    )
    subjects = [line.rpartition("profiles--) ")[2].strip() for line in perun("log", "-s").lines[1:4]]
    assert subjects[0] == "日本語の件名 🎉"
    assert subjects[1].startswith("Not text: ")
    assert subjects[2] == "Opraveno: žluťoučký kůň"
    for encoding in ("ascii", "latin-1"):
        perun("log", env={"PYTHONIOENCODING": encoding}, out=("\\u65e5\\u672c", "Author: Zden\\u011bk <"))


def test_colours(perun, terminal, project):
    assert "\x1b[33m" in terminal("log", "-s").out
    assert "\x1b[33m" in perun("log", env={"CLICOLOR_FORCE": "1"}).out
    assert "\x1b" not in perun("log").out
    assert "\x1b" not in perun("log", env={"CLICOLOR_FORCE": "0"}).out
    assert "\x1b" not in perun("log", env={"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}).out
    assert "\x1b" not in perun("--no-color", "log", env={"CLICOLOR_FORCE": "1"}).out
    assert "\x1b" not in perun("-nc", "log", env={"CLICOLOR_FORCE": "1"}).out


def test_only_versions_with_changes(perun, project):
    changes = Store(project.path / ".perun").changes
    first, second, third = project.git("rev-list", "HEAD").split()
    for minor, change in ((third, "Degradation"), (second, "NotInTarget"), (first, "MaybeOptimization")):
        info = DegradationInfo(PerformanceChange[change], "f", "1ms", "2ms")
        changes.merge(minor, [ChangeRecord(info, third, "time ./app")])
    for way in ([], ["--dev-mode"]):
        shown = perun(*way, "log", "--changes-only", "-s").lines
        assert [line[:6] for line in shown[1:]] == [first[:6], third[:6]]
        told = perun(*way, "log", "--changes-only", "--json").json["versions"]
        assert [(one["optimizations"], one["degradations"]) for one in told] == [(1, 0), (0, 1)]
        assert perun(*way, "log", "--changes-only").out.count("Minor Version") == 2
    assert perun("log", "--changes-only", "HEAD~1").out.startswith(f"Minor Version {third}\n")
    changes.merge(
        third, [ChangeRecord(DegradationInfo(PerformanceChange.NoChange, "f", "", ""), third, "time ./app")]
    )
    done = perun("log", "--changes-only", "HEAD~1")
    assert (done.out, done.err) == ("", "no version has stored changes; find them with: perun check all\n")
    # Where it cannot be told, the version is shown.
    changes.path(second).write_text("nonsense")
    done = perun("log", "--changes-only", "-s", "HEAD~1", check=False)
    assert (done.code, len(done.lines)) == (6, 2)
    assert "nonsense" not in done.out and changes.path(second).name in done.err


def test_it_is_paged_on_a_terminal(terminal, project, tmp_path):
    pager = tmp_path / "pager"
    pager.write_text("#!/bin/sh\nhead -n 1\n")
    pager.chmod(0o755)
    done = terminal("-nc", "log", env={"PAGER": str(pager)})
    assert (done.code, done.out) == (0, f"Minor Version {project.head}\n")
    assert terminal("-nc", "--no-pager", "log", env={"PAGER": str(pager)}).out.count("Minor Version") == 3


def test_a_shallow_clone_ends_where_it_was_cut(perun, project, tmp_path):
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", "--depth=2", f"file://{project.path}", str(clone)], check=True)
    perun("init", cwd=clone)
    assert [line.rpartition(") ")[2].strip() for line in perun("log", "-s", cwd=clone).lines[1:]] == [
        "Commit 3",
        "Commit 2",
    ]
    unknown = perun("changes", "v0.1", cwd=clone, check=False)
    assert "this is a shallow clone, get the rest with: git fetch --unshallow" in unknown.err


def test_a_long_history(perun, git_repository):
    repository = git_repository("long")
    lines = []
    for number in range(1, 3001):
        lines += [
            "commit refs/heads/main",
            f"mark :{number}",
            f"committer A <a@b> {1700000000 + number} +0000",
        ]
        lines += [f"data {len(str(number))}", str(number)]
        lines += [f"from :{number - 1}"] if number > 1 else []
    subprocess.run(
        ["git", "fast-import", "--quiet"], cwd=repository.path, input="\n".join(lines).encode() + b"\n",
        check=True
    )  # fmt: skip
    perun("init", cwd=repository.path)
    shown = perun("log", "-s", cwd=repository.path).lines
    subjects = [line.rpartition(") ")[2].strip() for line in shown[1:]]
    assert subjects == [str(number) for number in range(3000, 0, -1)]
    assert len(perun("log", "--json", cwd=repository.path).json["versions"]) == 3000


def test_values_and_differences(perun, merged, write_profile):
    """Those of the first configuration that was measured, beside the version before, which of a merge is the
    first parent."""
    side, first = merged.git("rev-parse", "side", "HEAD~1").split()
    write_profile("a.perf", origin=first, amounts=(1.0, 1.02, 0.98))
    write_profile("b.perf", origin=side, amounts=(2.0, 2.02, 1.98))
    write_profile("c.perf", amounts=(3.0, 3.02, 2.98))
    write_profile("d.perf", cmd="./other", amounts=(0.25,))
    perun("add", "--to-origin", "0@p-3@p")
    lines = perun("log", "-s").lines
    assert lines[0] == "minor    (a|m|x|t profiles) value                 difference info changes"
    shown = {line.split()[0]: line for line in lines[1:]}
    assert [line[28:60] for line in lines[1:]].count(" " * 21 + " " + " " * 10) == 2
    assert shown[merged.head[:8]][28:] == "3.00 s ± 0.06 (+1)    +200 % !?  Merge side"
    assert shown[side[:8]][28:] == f"{'2.00 s ± 0.06':21} {'':10} On the side"
    assert shown[first[:8]][28:] == f"{'1.00 s ± 0.06':21} {'':10} Commit 3"
    versions = {one["checksum"]: one for one in perun("log", "--json").json["versions"]}
    value, other = versions[merged.head]["values"]
    assert (value["cmd"], value["workload"], value["collector"]) == ("./app", "input.txt", "time")
    assert value["measured"]["value"] == pytest.approx(3.0)
    difference = value["difference"]
    assert difference["since"] == first
    assert difference["ratio"] == pytest.approx(3.0)
    # Twice as much may be the machine, as it was measured once at each.
    assert 1.25 < difference["ratio_low"] < 3 < difference["ratio_high"]
    assert (difference["verdict"], difference["decides"]) == ("SevereDegradation", True)
    assert other["difference"] is None
    assert versions[side]["values"][0]["difference"] is None  # it branched off before
    # Of one profile each: unconfirmed, and yellow.
    assert "\x1b[33m+200 % !?\x1b[0m" in perun("log", "-s", env={"CLICOLOR_FORCE": "1"}).out


def test_the_values_of_a_column_are_of_one_configuration(perun, merged, write_profile):
    first = merged.git("rev-parse", "HEAD~1")
    write_profile("a.perf", cmd="./other", origin=first, amounts=(0.25,))
    write_profile("b.perf", origin=first, amounts=(1.0,))
    write_profile("c.perf", amounts=(2.0,))
    perun("add", "--to-origin", "0@p-2@p")
    lines = {line.split()[0]: line[28:57].split() for line in perun("log", "-s").lines[1:]}
    assert lines[merged.head[:8]][:4] == ["2", "s", "+100", "%"]
    assert lines[first[:8]][:3] == ["1", "s", "(+1)"]


def test_widths_of_numbers(shortlog, perun, write_profile):
    write_profile("a.perf", amounts=(1.0, 1.02, 0.98))
    perun("add", "0@p")
    assert shortlog("%value:3%|%desc%")[:3] == [
        "value|info",
        "1.00 s ± 0.06|Commit 3",  # a part of a number is another number
        "     |Commit 2",
    ]


def test_a_graph_before_short_lines(perun, merged):
    def subjects(lines):
        return [line.replace(" (--no--profiles--)", "").split() for line in lines]

    lines = perun("log", "--graph", "-s").lines
    short = [merged.git("rev-parse", name)[:8] for name in ("HEAD", "side", "HEAD~1", "HEAD~2", "HEAD~3")]
    assert lines[0].startswith("  minor ")
    assert subjects(lines[1:]) == [
        ["*", short[0], "Merge", "side"],
        ["|\\"],
        ["|", "*", short[1], "On", "the", "side"],
        ["*", "|", short[2], "Commit", "3"],
        ["|/"],
        ["*", short[3], "Commit", "2"],
        ["*", short[4], "Commit", "1"],
    ]
    assert perun("log", "-s", "--graph", "-n", "2").lines == lines[:4]


def test_a_graph_before_whole_versions(perun, merged):
    lines = perun("log", "--graph").lines
    assert lines[:4] == [
        f"* Minor Version {merged.head}",
        "| (no registered profiles)",
        f"| Parents: {merged.git('rev-parse', 'HEAD~1')[:10]} {merged.git('rev-parse', 'side')[:10]}",
        "| Author: Ada Lindqvist <ada@example.org> 2024-03-04 09:00:00",
    ]
    assert "|     Merge side" in lines
    plain = [line.lstrip("*|\\/ ") for line in lines]
    assert [line for line in plain if line] == [line.strip() for line in perun("log").lines if line.strip()]


def test_a_graph_of_a_part_is_refused(perun, project):
    for option in ("--changes-only", "--json"):
        failed = perun("log", "--graph", option, check=False)
        assert (failed.code, failed.out) == (2, "")
        assert f"--graph and {option} contradict each other" in failed.err
