"""Stores and profiles that older releases wrote are opened, shown, checked and added to."""

import base64
import hashlib
import json
import shutil
import struct
import subprocess
import tarfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from perun.core.errors import DamagedStore
from perun.store import Store
from perun.store.index import parse, serialize

DATA = Path(__file__).parents[1] / "data"
SAMPLES = Path(__file__).parents[3] / "shared" / "samples"
FIRST, SECOND, THIRD = (
    "e072659850ccbd1a9f399554a142e9d3c156eb30",
    "5621354f1658366df005066d3019c042801bbe2c",
    "b64a172f95aea116f87e126e2daf85158c594eff",
)
"""The versions of the repository that 0.28.3 wrote."""


def snapshot(folder: Path) -> dict[str, bytes]:
    """The content of every file but the lock, and the cache, which lists may fill."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
    files = (path for path in files if ".perun/cache/measured.sqlite" not in str(path))
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def sound(project: Path) -> bool:
    """Whether nothing in the store is damaged or suspicious; what no index names is neither."""
    return {finding.severity for finding in Store(project / ".perun").fsck()} <= {"info"}


@pytest.fixture
def released(perun, tmp_path, environment, monkeypatch) -> Path:
    """The repository that 0.28.3 wrote, as if it had been written here; it is the current directory."""
    with tarfile.open(DATA / "store-0.28.3.tar.gz") as archive:
        archive.extractall(tmp_path / "archive", filter="data")
    project, config = tmp_path / "project", Path(environment["PERUN_CONFIG_DIR"])
    subprocess.run(
        ["git", "clone", "--quiet", "--branch", "main", tmp_path / "archive" / "project.bundle", project],
        check=True,
    )
    (tmp_path / "archive" / ".perun").rename(project / ".perun")
    config.mkdir()
    (tmp_path / "archive" / "shared.yml").rename(config / "shared.yml")
    local = project / ".perun" / "local.yml"
    text = local.read_text()
    assert "url: /home/ada/project\n" in text
    local.write_text(text.replace("/home/ada/project", str(project)))
    monkeypatch.chdir(project)
    return project


def test_status_of_a_released_store(released: Path, perun: Callable[..., Any]) -> None:
    before = snapshot(released)
    found = perun("status", "--json").json
    assert found["minor_version"]["checksum"] == THIRD
    assert [(one["cmd"], one["args"], one["workload"]) for one in found["registered"]] == [
        ("./work.sh", "", "1")
    ]
    assert [(one["workload"], one["postprocessors"]) for one in found["pending"]] == [
        ("1", ["regressogram"]),
        ("2", []),
    ]
    assert found["damaged"] == []
    assert len({one["checksum"] for one in perun("status", "--json").json["registered"]}) == 1
    perun("status")  # by the `format.status` of 0.28
    assert snapshot(released) == before


def test_the_history_of_a_released_store(released: Path, perun: Callable[..., Any]) -> None:
    before = snapshot(released)
    versions = perun("log", "--json").json["versions"]
    assert [version["checksum"] for version in versions] == [THIRD, SECOND, FIRST]
    assert [version["profiles"] for version in versions] == [{"time": 1}, {"time": 1}, {"time": 3}]
    assert perun("log").out.count("registered profile") == 3
    assert [line.split()[:2] for line in perun("log", "--short").lines[1:]] == [
        [THIRD[:8], "(1|0|0|1"],
        [SECOND[:8], "(1|0|0|1"],
        [FIRST[:8], "(3|0|0|3"],
    ]
    assert snapshot(released) == before


def test_profiles_of_a_released_store(released: Path, perun: Callable[..., Any]) -> None:
    before = snapshot(released)
    shown = perun("show", "-m", FIRST, "0@i", "raw").json
    assert shown["header"]["workload"] == "1"
    assert shown["machine"]["host"] == "example"
    assert sum(len(columns["amount"]) for columns in shown["resources"].values()) == 9
    assert perun("show", "-m", FIRST, "0@i", "tableof", "resources").out.count("./work.sh") == 9
    (model,) = perun("show", "0@p", "raw").json["models"]
    assert model["bucket_stats"] == [0.29, 0.29333333333333333]
    assert perun("fsck", "--json").json["errors"] == 0
    assert snapshot(released) == before


def test_a_released_store_is_checked(released: Path, perun: Callable[..., Any]) -> None:
    out = perun("check", "all").out
    assert THIRD[:6] in out
    assert "4 degradations" in out  # in real, user and system time, and in the sum of the latter two
    assert sound(released)
    assert "4 degradations(-)" in perun("status").out


def test_a_released_store_is_added_to(released: Path, perun: Callable[..., Any]) -> None:
    perun("trust")  # it came in an archive
    perun("add", "0@p-1@p")
    found = perun("status", "--json").json
    assert found["pending"] == []
    assert [(one["workload"], one["postprocessors"]) for one in found["registered"]] == [
        ("1", []),
        ("1", ["regressogram"]),
        ("2", []),
    ]
    assert sound(released)
    perun("rm", "-m", FIRST, "0@i-1@i")
    assert [version["profiles"] for version in perun("log", "--json").json["versions"]] == [
        {"time": 3},
        {"time": 1},
        {"time": 1},
    ]
    perun("collect", "-c", "./work.sh", "-w", "0", "time", "--repeat", "1", "--warmup", "0")
    perun("add", "0@p")
    assert len(perun("status", "--json").json["registered"]) == 4
    assert sound(released)


def test_the_configuration_of_a_released_store(released: Path, perun: Callable[..., Any]) -> None:
    assert json.loads(perun("config", "get", "--json", "format.sort_profiles_by").out)["value"] == [
        "time",
        "stem",
        "copy",
    ]
    text = (released / ".perun" / "local.yml").read_text()
    assert "sort_profiles_order: asc" in text  # a key that only 0.28 knows
    perun("config", "set", "general.paging", "never")
    changed = (released / ".perun" / "local.yml").read_text()
    assert [line for line in text.splitlines() if line not in changed.splitlines()] == []


# An index of ours with `b.perf`, to which 0.28.3 added `a.perf` before it and `c.perf` behind the checksum.
ADDED_BEHIND = base64.b64decode(
    "cGlkeAIAAAADAAAAggCSZeo0ACL/WyyaQYgvLE7WTUewoXNZYS5wZXJmAAQAAAB0aW1lCQAAAC4vd29yay5zaAEAAAAyAAAA"
    "AAQAAAB0aW1lAAAAAIEAkmUmfSJHu+34lw8qlBK8T2g7UwknwWIucGVyZgAEAAAAdGltZQkAAAAuL3dvcmsuc2gAAAAAAQAA"
    "ADIEAAAAdGltZQAAAABgcZpW4xDtxun43uK1JPQ8LJ9T7oMAkmXqNAAi/1ssmkGILyxO1k1HsKFzWWMucGVyZgAEAAAAdGlt"
    "ZQkAAAAuL3dvcmsuc2gBAAAAMgAAAAAEAAAAdGltZQAAAAA="
)


def test_an_index_of_ours_with_an_entry_behind_its_checksum() -> None:
    entries, certain = parse(ADDED_BEHIND, "f")
    assert not certain
    assert [(entry.path, entry.time) for entry in entries] == [
        ("a.perf", 1_704_067_202),
        ("b.perf", 1_704_067_201),
        ("c.perf", 1_704_067_203),
    ]
    assert entries[0].checksum == entries[2].checksum
    assert parse(serialize(entries), "f").entries == entries
    for position in range(12, len(ADDED_BEHIND)):
        with pytest.raises(DamagedStore):
            parse(ADDED_BEHIND[:position], "f")
    place = ADDED_BEHIND.rindex(b"c.perf") - 24  # where the last entry begins, and the checksum ends
    damaged = ADDED_BEHIND[: place - 1] + b"?" + ADDED_BEHIND[place:]
    with pytest.raises(DamagedStore, match="entry 3 of 3"):
        parse(damaged, "f")


BODY = {
    "header": {"type": "time", "cmd": "./a.out", "workload": "in.txt", "args": "-v", "units": {"time": "s"}},
    "collector_info": {"name": "time", "params": {}},
    "postprocessors": [{"name": "normalizer", "params": {}}],
    "resources": {"main#0": {"amount": [1.5, 2.5]}},
    "resource_type_map": {"main#0": {"uid": "main", "type": "time", "subtype": "real"}},
    "models": [],
}
LAYOUTS: Mapping[str, tuple[int, tuple[str, ...]]] = {
    "version 1": (1, ()),
    "0.17 to 0.21": (2, ("time", "./a.out", "-v", "in.txt", "time", "normalizer")),
    "early 2024": (2, ("time", "./a.out", "in.txt", "time", "normalizer")),
    "0.28": (2, ("time", "./a.out", "in.txt", "a label", "time", "normalizer")),
}


def old_store(folder: Path, minor: str, version: int, strings: tuple[str, ...], checksum: bool) -> None:
    """Write an object and an index that names it three times, byte by byte as the formats are documented."""
    header = dict(BODY["header"])
    if version == 2 and "-v" not in strings:
        del header["args"]
    body = json.dumps({**BODY, "header": header})
    content = f"profile time {len(body)}\0{body}".encode()
    name = hashlib.sha1(content).hexdigest()
    index = struct.pack("<4sii", b"pidx", version, 3)
    for number in range(3):
        index += (
            struct.pack("<I", 1_700_000_000 + number) + bytes.fromhex(name) + f"a{number}.perf\0".encode()
        )
        for text in strings:
            index += struct.pack("<I", len(text.encode())) + text.encode()
    index += hashlib.sha1(index).digest() if checksum else b""
    for key, data in ((name, zlib.compress(content)), (minor, index)):
        path = folder / "objects" / key[:2] / key[2:]
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)


# No release wrote the layout of 0.28 with a checksum, which is what tells Perun's own from it.
@pytest.mark.parametrize(("layout", "checksum"), [
    (layout, checksum)
    for layout in LAYOUTS
    for checksum in (False, True)
    if (layout, checksum) != ("0.28", True)
])  # fmt: skip
def test_indexes_of_every_layout(project, perun, write_profile, layout, checksum) -> None:
    version, strings = LAYOUTS[layout]
    old_store(project.path / ".perun", project.head, version, strings, checksum)
    args = "-v" if layout in ("version 1", "0.17 to 0.21") else ""
    expected = [(f"a{n}.perf", "time", "./a.out", args, "in.txt", "time", ["normalizer"]) for n in range(3)]

    def entries() -> list[tuple[Any, ...]]:
        keys = ("name", "type", "cmd", "args", "workload", "collector", "postprocessors")
        return [tuple(one[key] for key in keys) for one in perun("status", "--json").json["registered"]]

    before = snapshot(project.path)
    assert entries() == expected
    assert perun("log", "--short").lines[1].split()[1] == "(3|0|0|3"
    assert perun("show", "1@i", "raw").json["resources"] == BODY["resources"]
    assert snapshot(project.path) == before
    write_profile("b.perf")
    perun("add", "b.perf")
    perun("rm", "a0.perf")
    assert [entry for entry in entries() if entry[0] != "b.perf"] == expected[1:]
    assert sound(project.path)


needs_samples = pytest.mark.skipif(not SAMPLES.is_dir(), reason=f"the old profiles are not at {SAMPLES}")


@needs_samples
@pytest.mark.parametrize("kind", ["time", "complexity", "memory"])
def test_profiles_of_old_releases(project: Any, perun: Callable[..., Any], kind: str) -> None:
    (sample,) = SAMPLES.glob(f"prof-*-{kind}-*.perf")
    path = project.path / ".perun" / "jobs" / sample.name
    shutil.copyfile(sample, path)
    perun("add", sample.name, code=6, err=sample.name)
    perun("add", "--force", sample.name)
    assert not path.exists()
    regions = perun("show", "0@i", "raw").json
    rows = perun("show", "0@i", "tableof", "resources").out.rstrip().count("\n") - 1
    assert rows == {"time": 3, "complexity": 25, "memory": 34}[kind]
    assert regions["header"]["cmd"] == json.loads(sample.read_bytes())["header"]["cmd"]
    assert sound(project.path)


@needs_samples
@pytest.mark.parametrize("name", ["corrupted-global.perf", "corrupted-snapshots.perf"])
def test_damaged_profiles_of_old_releases(project: Any, perun: Callable[..., Any], name: str) -> None:
    path = project.path / ".perun" / "jobs" / name
    shutil.copyfile(SAMPLES / name, path)
    before = snapshot(project.path)
    for arguments in (("add", "--force", name), ("show", name, "raw")):
        perun(*arguments, code=6, err=f"error: {path}: ")
    assert snapshot(project.path) == before


# What Perun itself wrote before its modules were laid out anew: a repository of every kind.


KINDS = ("files", "sqlite", "svs", "tagit")


@pytest.fixture(params=KINDS)
def older(request, perun, tmp_path, monkeypatch) -> Path:
    """A repository that an earlier Perun wrote; it is the current directory."""
    return unpacked(tmp_path, request.param, monkeypatch)


def unpacked(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    with tarfile.open(DATA / "store-2026-11-23.tar.xz") as archive:
        archive.extractall(tmp_path / "ada", filter="data")
    for local in (tmp_path / "ada").glob("*/.perun/local.yml"):
        local.write_text(local.read_text().replace("/home/ada", str(tmp_path / "ada")))
    monkeypatch.chdir(tmp_path / "ada" / kind)
    return tmp_path / "ada" / kind


def expected(project: Path) -> dict[str, Any]:
    """What the Perun that wrote it said of it."""
    return json.loads((project.parent / "expected.json").read_text())[project.name]  # type: ignore[no-any-return]


def of_keys(found: list[dict[str, Any]], like: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: one[key] for key in wanted} for one, wanted in zip(found, like, strict=True)]


def kept(folder: Path) -> dict[str, bytes]:
    """The content of every file that is no cache."""
    return {name: content for name, content in snapshot(folder).items() if ".perun/cache/" not in name}


def test_an_earlier_store_is_read_as_before(older: Path, perun: Callable[..., Any]) -> None:
    trusted = {"PERUN_TRUST": "1"}  # a database is opened where the user trusts its address
    before, said = kept(older), expected(older)
    status = perun("status", "--json", said["version"], env=trusted).json
    assert of_keys(status["registered"], said["registered"]) == said["registered"]
    pending = perun("status", "--json", env=trusted).json["pending"]
    assert of_keys(pending[: len(said["pending"])], said["pending"]) == said["pending"]
    versions = perun("log", "--json", env=trusted).json["versions"][-len(said["versions"]) :]
    assert of_keys(versions, said["versions"]) == said["versions"]
    for number, digest in enumerate(said["raw"]):
        raw = perun("show", "-m", said["version"], f"{number}@i", "raw", env=trusted).out
        assert hashlib.sha256(raw.encode()).hexdigest() == digest, status["registered"][number]
    assert perun("fsck", "--json", env=trusted).json["errors"] == 0
    assert kept(older) == before


def test_an_earlier_store_is_checked_and_added_to(older: Path, perun: Callable[..., Any]) -> None:
    perun("trust")
    assert perun("check", "all", check=False).code in (0, 1)
    perun("config", "--local", "set", "profiles.register_after_run", "true")
    perun("trust")
    before = {one["checksum"] for one in perun("status", "--json").json["registered"]}
    perun("collect", "-c", "true", "-w", "1", "time", "--repeat", "1", "--warmup", "0")
    after = {one["checksum"] for one in perun("status", "--json").json["registered"]}
    assert (len(after - before), before - after) == (1, set())
    assert perun("fsck", "--json").json["errors"] == 0


def test_what_was_interrupted_before_goes_on(tmp_path, monkeypatch, perun) -> None:
    project = unpacked(tmp_path, "files", monkeypatch)
    assert "bisection is not finished" in perun("status").err + perun("status").out
    perun("trust")
    resumed = perun("bisect", "--resume", "--json", env={"PERUN_TRUST": "1"})
    assert resumed.json["first"]["version"] == expected(project)["version"]
    assert "wanted" in perun("ack", "--list").out
    assert perun("push", "team", "--json").json["schema"]
    replayed = perun("fuzz", "--replay", "fuzzed", "--json", check=False, env={"PERUN_TRUST": "1"})
    assert replayed.code in (0, 1, 8), replayed
    assert {one["kind"] for one in replayed.json["results"]} == {"slow"}
    rest = perun("run", "matrix", "--resume", check=False)
    assert "1 version skipped; known to fail: execute.pre_run: 'make' ended" in rest.err
    assert perun("fsck", "--json").json["errors"] == 0
