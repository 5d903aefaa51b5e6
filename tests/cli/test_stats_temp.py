"""`perun stats` and `perun temp` with every option of the manual's section 3.6, also as `perun utils ...`."""

import zlib

import pytest

from perun.store import Store


@pytest.fixture
def store(project):
    return Store(project.path / ".perun")


@pytest.fixture
def versions(project, store):
    """Statistics of the three commits, newest first: `calls` of all, the larger `blocks` of the oldest."""
    found = project.git("rev-list", "HEAD").split()
    for version in found:
        store.stats.add(
            version,
            project.git("show", "-s", "--format=%cd", "--date=format-local:%Y-%m-%d %H:%M:%S", version),
            "calls",
            {"id": {"x": 1}},
        )
    date = project.git("show", "-s", "--format=%cd", "--date=format-local:%Y-%m-%d %H:%M:%S", found[2])
    store.stats.add(found[2], date, "blocks", {str(number): {"value": number} for number in range(500)})
    return found


@pytest.mark.parametrize("utils", [(), ("utils",)])
def test_the_files(perun, store, versions, utils):
    done = perun(*utils, "stats", "list-files")
    assert done.lines[0].startswith("Total size of all the files: ")
    assert [line.split(" | ")[1:] for line in done.lines[1:]] == [
        [versions[0], "calls"],
        [versions[1], "calls"],
        [versions[2], "blocks"],
        [versions[2], "calls"],
    ]
    size = store.stats.size(versions[0], "calls")
    assert done.lines[1].split(" | ")[0].strip() == f"{size} B"


def test_the_files_as_wanted(perun, versions):
    assert perun("stats", "list-files", "-t", "-f", "-i").lines == ["calls", "calls", "blocks", "calls"]
    by_size = perun("stats", "list-files", "-tfi", "-s").lines
    assert by_size == ["blocks", "calls", "calls", "calls"]
    top = perun("stats", "list-files", "-tf", "-N", "1")
    assert top.lines == [f"{versions[0]} | calls"]
    assert "2 older versions not shown" in top.err
    assert len(perun("stats", "list-files", "-t", "--top", "0").lines) == 4
    older = perun("stats", "list-files", "-tf", "--from-minor", "HEAD~1", "-N1")
    assert older.lines == [f"{versions[1]} | calls"]
    answer = perun("stats", "list-files", "--json", "-N", "2").json
    assert answer["schema"] == "perun.stats/1"
    assert [file["name"] for file in answer["files"]] == ["calls", "calls"]
    assert answer["total_size"] == sum(file["size"] for file in answer["files"])
    assert answer["versions_left_out"] == 1


def test_the_versions(perun, versions):
    done = perun("stats", "list-versions")
    assert done.lines[0].startswith("Total size of all the versions: ")
    assert [line.split(" | ")[1:] for line in done.lines[1:]] == [
        [versions[0], "1 file"],
        [versions[1], "1 file"],
        [versions[2], "2 files"],
    ]
    assert perun("stats", "list-versions", "-tdf").lines == versions
    assert perun("stats", "list-versions", "-tdf", "-s").lines[0] == versions[2]
    assert perun("stats", "list-versions", "-tdf", "-m", "HEAD~1").lines == versions[1:]
    assert perun("stats", "list-versions", "--json").json["versions"][2]["files"] == 2
    perun("stats", "list-versions", "-m", "nope", code=4)


def test_deleting_files(perun, store, versions):
    perun("stats", "delete", "file", "calls")
    assert store.stats.found() == sorted(versions[1:])
    perun("stats", "delete", "file", "-k", "-m", "HEAD~1", "calls")
    assert store.stats.folder(versions[1]).is_dir()
    perun("stats", "delete", "file", "calls", code=6)
    assert (
        perun("stats", "delete", "file", "-m", ".", "calls").out == f"deleted calls of {versions[2][:10]}\n"
    )
    perun("stats", "delete", "file", "-m", ".", "calls", code=6)
    assert store.stats.names(versions[2]) == ["blocks"]


def test_deleting_versions(perun, store, versions):
    perun("stats", "delete", "minor", "HEAD")
    perun("stats", "delete", "minor", "--keep-directory", versions[1])
    assert store.stats.found() == sorted(versions[1:])
    assert [version for version, _ in store.stats.versions()] == versions[1:]
    unknown = "1" * 40
    store.stats.add(unknown, "2020-01-01 00:00:00", "calls", {})
    perun("stats", "delete", "minor", unknown)
    assert unknown not in store.stats.found()


@pytest.mark.parametrize("name", [".", "all", "ll"])
def test_deleting_everything(perun, store, versions, name):
    assert perun("stats", "delete", name, "-k").out == "deleted the statistics of 3 versions\n"
    assert store.stats.found() == sorted(versions)
    perun("utils", "stats", "delete", name)
    assert store.stats.found() == []
    assert perun("stats", "list-files").lines == ["Total size of all the files: 0 B"]


def test_cleaning(perun, store, versions):
    folder = store.root / "stats"
    strange = ["readme", "custom/file", "ab/cd", f"{versions[0][:2]}/x", "zz/" + "0" * 38]
    for path in strange:
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text("mine")
    store.stats.add("1" * 40, "2020-01-01 00:00:00", "calls", {})
    damaged = store.stats.path(versions[1], "damaged")
    damaged.write_bytes(zlib.compress(b"[1]"))
    store.stats.delete(versions[1], "calls", keep_folder=True)
    perun("stats", "delete", "file", "-k", "calls")

    perun("stats", "clean", "--keep-custom", "--keep-empty")
    assert all((folder / path).exists() for path in strange)
    assert damaged.exists()
    assert store.stats.folder(versions[0]).is_dir()
    removed = perun("stats", "clean", "--unknown").lines
    assert f"removed .perun/stats/{versions[0][:2]}/x" in removed
    assert "removed .perun/stats/custom" in removed
    assert store.stats.found() == [versions[2]]
    assert [version for version, _ in store.stats.versions()] == [versions[2]]
    assert sorted(path.name for path in folder.iterdir()) == sorted([".index", versions[2][:2]])
    assert perun("stats", "clean").out == ""


def test_cleaning_with_a_broken_repository_removes_nothing(perun, project, store, versions):
    (project.path / ".git" / "HEAD").write_text("nonsense")
    for command in ("clean", "sync"):
        perun("stats", command, code=4)
    assert len(store.stats.found()) == 3


def test_syncing(perun, store, versions):
    (store.root / "stats" / ".index").unlink()
    assert perun("stats", "list-versions", "-tdf").lines == []
    assert perun("stats", "sync").out == "3 versions with statistics\n"
    assert perun("stats", "list-versions", "-tdf").lines == versions


def test_before_the_first_commit(perun, tmp_path):
    perun("init")
    assert perun("stats", "list-files").lines == ["Total size of all the files: 0 B"]
    assert perun("stats", "clean").out == ""


@pytest.fixture
def temporary(store):
    store.temp.write("a/small", "x")
    store.temp.write("a/b/large", "x" * 3000)
    store.temp.write("c", {"x": 1}, json_=True, protect=True)
    return store.temp


@pytest.mark.parametrize("utils", [(), ("utils",)])
def test_temporary_files(perun, temporary, utils):
    assert perun(*utils, "temp", "list").lines == [
        "Total size of all the files: 2.94 KiB",
        "  2.93 KiB | unprotected | a/b/large",
        "       1 B | unprotected | a/small",
        "      12 B | protected   | c",
    ]


def test_temporary_files_as_wanted(perun, project, temporary):
    assert perun("temp", "list", "-tfp").lines == ["a/b/large", "a/small", "c"]
    assert perun("temp", "list", "-tfp", "-s", "size").lines == ["a/b/large", "c", "a/small"]
    assert perun("temp", "list", "-tfp", "-s", "protection").lines == ["c", "a/b/large", "a/small"]
    assert perun("temp", "list", "-tfp", "-fp", "protected").lines == ["c"]
    assert perun("temp", "list", "-tfp", "-fp", "unprotected", "a").lines == ["a/b/large", "a/small"]
    assert perun("temp", "list", "-tfp", project.path / ".perun" / "tmp" / "a" / "b").lines == ["a/b/large"]
    perun("temp", "list", "nope", code=6)
    perun("temp", "list", "../objects", code=2)
    answer = perun("temp", "list", "--json").json
    assert answer["schema"] == "perun.temp/1"
    assert answer["total_size"] == 3013
    assert answer["files"][2] == {
        "path": "c", "size": 12, "json": True, "protected": True, "compressed": False,
    }  # fmt: skip


def test_deleting_temporary_files(perun, store, temporary):
    perun("temp", "delete", "--warn", ".", code=2, err="c")
    assert len(temporary.files()) == 3
    done = perun("temp", "delete", "-k", ".")
    assert done.out == "deleted 2 files\n"
    assert "protected, so kept: c" in done.err
    assert (store.root / "tmp" / "a" / "b").is_dir()
    perun("temp", "delete", ".")
    assert not (store.root / "tmp" / "a").exists()
    assert perun("temp", "delete", "-w", "-f", "c").out == "deleted 1 file\n"
    perun("temp", "delete", "c", code=6)


def test_syncing_temporary_files(perun, store, temporary):
    temporary.path("c").unlink()
    assert perun("temp", "sync").out == "removed the flags of c, which is gone\n"
    assert perun("temp", "sync").out == "every file that has flags exists\n"
    temporary.write("d", {}, json_=True)
    temporary.path("d").unlink()
    perun("temp", "list")
    assert temporary.stale() == []


def test_completion(perun, versions, temporary):
    def complete(*words):
        env = {
            "COMP_WORDS": " ".join(words),
            "COMP_CWORD": str(len(words) - 1),
            "_PERUN_COMPLETE": "bash_complete",
        }
        return [line.partition(",")[2] for line in perun(env=env).lines]

    assert complete("perun", "stats", "delete", "file", "b") == ["blocks"]
    assert complete("perun", "utils", "temp", "delete", "a/") == ["a/b", "a/b/large", "a/small"]
    assert complete("perun", "utils", "s") == ["stats"]
    assert complete("perun", "stats", "delete", "m") == ["minor"]
