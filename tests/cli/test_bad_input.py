"""Whatever lies in a file of the store or stands on the command line: a named error, and nothing changes."""

import hashlib
import json
import os
import re
import resource
import shutil
import subprocess
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perun.core.errors import DamagedStore, ProfileError, UsageError
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.repository.copies import read_journal
from perun.repository.repository import Repository, open_repository
from perun.store import Store
from perun.store.changes import ChangeRecord
from perun.store.index import serialize
from perun.store.objects import FileObjects, encode
from perun.store.stats import deflate, inflate
from shared import examples

DEEP = b"[" * 100_000
HUGE = b'{"header": ' + b"9" * 20_000 + b"}"
GIBIBYTE = 1 << 30


def flip(path: Path) -> None:
    """Change one bit in the middle."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x10
    path.write_bytes(data)


def replace(path: Path, make: Callable[[Path], object]) -> None:
    """Put something that is no file in the place of the file."""
    path.unlink()
    make(path)


BINARY: Mapping[str, Callable[[Path], object]] = {
    "truncated": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "flipped": flip,
    "empty": lambda path: path.write_bytes(b""),
    "directory": lambda path: replace(path, Path.mkdir),
    "loop": lambda path: replace(path, lambda place: place.symlink_to(place.name)),
    "pipe": lambda path: replace(path, os.mkfifo),
    "bytes": lambda path: path.write_bytes(bytes(range(256)) * 2),
}
DAMAGE: Mapping[str, Callable[[Path], object]] = {
    **BINARY, "deep": lambda path: path.write_bytes(DEEP), "huge": lambda path: path.write_bytes(HUGE),
    "types": lambda path: path.write_bytes(b'[1, {"a": null}, "b"]')
}  # fmt: skip


def damages(of: Mapping[str, Any], often: str, *but: str) -> pytest.MarkDecorator:
    """Parametrize by all kinds of damage but those; `make test` goes through the kinds that `often` names.

    All files are opened by the same function, so that each kind is tried on some of them.
    """
    return pytest.mark.parametrize("damage", [
        pytest.param(name, marks=[pytest.mark.slow] * (name not in often.split()))
        for name in of
        if name not in but
    ])  # fmt: skip


def damaged(project: Any) -> list[Path]:
    """The files that `perun fsck` finds damaged; what it prints is the matter of other tests."""
    return [one.path for one in Store(project.path / ".perun").fsck() if one.severity == "error"]


def snapshot(project: Any) -> dict[str, tuple[int, bytes | str]]:
    """Time and content of all that is in `.perun`, but for the lock."""
    folder = project.path / ".perun"
    found: dict[str, tuple[int, bytes | str]] = {}
    for path in folder.rglob("*"):
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else ""
        found[str(path.relative_to(folder))] = (path.lstat().st_mtime_ns, content)
    found.pop(".lock", None)
    return found


CACHES = ("cache/measured.sqlite", "jobs/.index")


@pytest.fixture(scope="module")
def _filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("filled") / "perun"


@pytest.fixture
def filled(project: Any, perun: Callable[..., Any], write_profile: Any, _filled: Path) -> Any:
    """The project: `r.perf` and `s.perf` in two versions, a change, pending `p.perf` and `q.perf`."""
    folder = project.path / ".perun"
    if _filled.exists():
        shutil.rmtree(folder)
        shutil.copytree(_filled, folder)
        return project
    # A method that finds nothing to say of the whole profiles, whichever others are damaged.
    perun("config", "set", "degradation.strategies", "[{method: average_amount_threshold}]")
    for minor in ("HEAD~1", "HEAD"):
        write_profile("r.perf", origin=minor, workload="other.txt")
        write_profile("s.perf", origin=minor)
        perun("add", "-m", minor, "r.perf", "s.perf")
    store = Store(folder)
    info = DegradationInfo(PerformanceChange.Degradation, "main", "1s", "2s", "real", 2.0, "no", 0.0)
    baseline = project.git("rev-parse", "HEAD~1")
    store.changes.merge(project.head, [ChangeRecord(info, baseline, "./app input.txt")])
    store.summaries.update([project.head])
    store.pending.save(store.pending.load(write_profile("p.perf")), "q.perf")
    perun("rm", "q.perf")
    write_profile("q.perf", workload="other.txt")
    assert all((folder / name).exists() for name in CACHES)
    shutil.copytree(folder, _filled)
    return project


@pytest.fixture
def places(filled: Any) -> dict[str, Path]:
    """The files of the store, by what they are."""
    folder = filled.path / ".perun"
    store = Store(folder)
    entry = next(entry for entry in store.indexes.read(filled.head) if entry.path == "r.perf")
    return {
        "object": folder / "objects" / entry.checksum[:2] / entry.checksum[2:],
        "index": store.indexes.path(filled.head), "changes": store.changes.path(filled.head),
        "pending": folder / "jobs" / "p.perf", "journal": folder / "in-place.json"
    }  # fmt: skip


@pytest.fixture
def refused(perun: Callable[..., Any], filled: Any) -> Callable[..., Any]:
    """Run a command that must end in an error with the code, which names `what`, and must change nothing."""

    def run(code: int, what: str, *arguments: str) -> Any:
        before = snapshot(filled)
        outcome = perun(*arguments, code=code)
        assert what in (outcome.out if code == 10 else outcome.err), (arguments, outcome)
        assert outcome.err.startswith("error: ") or code == 10
        assert snapshot(filled) == before, arguments
        return outcome

    return run


@damages(BINARY, "truncated flipped directory")
def test_objects(places: dict[str, Path], filled: Any, refused: Any, damage: str) -> None:
    path = places["object"]
    DAMAGE[damage](path)
    refused(6, str(path), "show", "r.perf", "raw")
    refused(6, str(path), "check", "head")
    assert damaged(filled) == [path]


@pytest.mark.parametrize("body", [DEEP, HUGE, b"{}", b"[1]", b"\xff", b""], ids=lambda body: ascii(body[:4]))
def test_objects_that_are_whole_but_no_profiles(filled: Any, body: bytes) -> None:
    objects = Store(filled.path / ".perun").objects
    checksum, content = encode("time", body) if body != b"\xff" else ("ab" * 20, b"profile time 1\0\xff")
    path = objects.root / checksum[:2] / checksum[2:]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(zlib.compress(content))
    with pytest.raises(ProfileError, match=re.escape(str(path))):
        objects.get(checksum)
    assert damaged(filled) == [path]


@damages(BINARY, "empty flipped pipe")
def test_indexes(places: dict[str, Path], filled: Any, refused: Any, damage: str) -> None:
    path = places["index"]
    DAMAGE[damage](path)
    refused(6, str(path), "status")
    refused(6, str(path), "add", "p.perf")
    refused(6, str(path), "check", "head")
    assert damaged(filled) == [path]


@damages(BINARY, "truncated loop")
def test_one_damaged_index_in_the_log(places: dict[str, Path], filled: Any, perun: Any, damage: str) -> None:
    DAMAGE[damage](places["index"])
    kept = snapshot(filled)
    outcome = perun("log", "--short", code=6)
    first, parent, root = outcome.lines[1:]
    assert first.startswith(filled.head[:6])
    assert "--damaged--" in first
    assert "(2|0|0|2 profiles) " in parent and parent.endswith(" Commit 2")
    assert "--no--profiles--" in root
    assert f"warning: {places['index']}" in outcome.err
    assert snapshot(filled) == kept


def test_damage_in_the_long_log_and_in_json(places: dict[str, Path], filled: Any, perun: Any) -> None:
    DAMAGE["truncated"](places["index"])
    outcome = perun("log", code=6)
    assert outcome.out.count(f"damaged: {places['index']}") == 1
    assert outcome.out.count("Minor Version") == 3
    assert outcome.out.count("2 registered profiles") == 1
    assert f"warning: {places['index']}" in outcome.err
    outcome = perun("log", "--json", code=6)
    first, second, third = outcome.json["versions"]
    assert str(places["index"]) in first["damage"]
    assert first["profiles"] == {}
    assert (second["damage"], third["damage"]) == (None, None)
    assert second["profiles"] == {"time": 2}


@damages(BINARY, "bytes flipped directory", "empty")
def test_changes(places: dict[str, Path], filled: Any, refused: Any, perun: Any, damage: str) -> None:
    path = places["changes"]
    DAMAGE[damage](path)
    refused(6, str(path), "status")
    refused(6, str(path), "check", "head")
    assert damaged(filled) == [path]
    assert "--damaged--" in perun("log", "--short", check=False).lines[1]


@damages(DAMAGE, "empty loop deep huge types")
def test_pending_profiles(places, filled, refused, perun, damage) -> None:
    path = places["pending"]
    DAMAGE[damage](path)
    refused(6, str(path), "add", "q.perf", "p.perf")
    refused(6, str(path), "show", "p.perf", "raw")
    assert damaged(filled) == [path]
    outcome = perun("status", "--json")
    assert [one["name"] for one in outcome.json["pending"]] == ["q.perf"]
    assert [one["name"] for one in outcome.json["damaged"]] == ["p.perf"]


@damages(DAMAGE, "truncated pipe bytes types")
def test_the_journal_of_a_run_in_place(places: dict[str, Path], refused: Any, damage: str) -> None:
    path = places["journal"]
    path.write_text('{"saved": true, "state": "main", "stash": "", "folder": "/nowhere"}')
    DAMAGE[damage](path)
    refused(6, str(path), "recover")
    refused(6, str(path), "collect", "-c", "true", "time")


@damages(DAMAGE, "truncated directory types", "flipped", "empty", "bytes", "huge")
def test_caches_do_not_matter(filled: Any, perun: Any, damage: str) -> None:
    before = perun("status").out, perun("log", "--short").out
    for name in CACHES:
        DAMAGE[damage](filled.path / ".perun" / name)
    assert (perun("status").out, perun("log", "--short").out) == before
    perun("add", "p.perf")
    assert damaged(filled) == []
    assert perun("log", "--short").lines[1].split()[1] == "(3|0|0|3"


CONFIGURATIONS: Mapping[str, Callable[[Path], object]] = {
    **{name: DAMAGE[name] for name in ("directory", "loop", "pipe", "bytes", "deep", "huge", "types")},
    "section": lambda path: path.write_bytes(b"format: 5\n"),
    "unknown": lambda path: path.write_bytes(b"general:\n  edidor: vim\n"),
    "twice": lambda path: path.write_bytes(b"general:\n  editor: a\n  editor: b\n"),
    "bomb": lambda path: path.write_bytes(
        b"a: &a [x, x, x, x, x, x, x, x, x]\n"
        + b"".join(b"%c: &%c [%s]\n" % (c, c, b", ".join([b"*%c" % (c - 1)] * 9)) for c in range(98, 110))
    ),
    "large": lambda path: path.write_bytes(b"# comment\n" * 200_000),
}


@pytest.mark.each_value("damage", "name")
@pytest.mark.parametrize("damage", CONFIGURATIONS)
@pytest.mark.parametrize("name", ["local.yml", "shared.yml"])
def test_configurations(filled, environment, refused, name, damage) -> None:
    folder = filled.path / ".perun" if name == "local.yml" else Path(environment["PERUN_CONFIG_DIR"])
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("general:\n  editor: vim\n")
    CONFIGURATIONS[damage](folder / name)
    refused(5, str(folder / name), *(("status",) if name == "shared.yml" else ("add", "p.perf")))


WRONG_TYPES: list[tuple[str, Callable[[Any], object]]] = [
    ("header", lambda regions: regions.pop("header")),
    ("header", lambda regions: regions.update(header=[])),
    ("header.type", lambda regions: regions["header"].update(type=5)),
    ("header.type", lambda regions: regions["header"].update(type="../time")),
    ("header.type", lambda regions: regions["header"].update(type="x" * 300)),
    ("header.cmd", lambda regions: regions["header"].update(cmd={"a": 1})),
    ("header.workload", lambda regions: regions["header"].update(workload="half a pair \ud800")),
    ("collector_info.name", lambda regions: regions["collector_info"].update(name=None)),
    ("postprocessors[0].name", lambda regions: regions.update(postprocessors=[{"name": "a b"}])),
    ("resources", lambda regions: regions.update(resources=7)),
    ("resource_type_map", lambda regions: regions.update(resource_type_map=None)),
    ("models[0].coeffs", lambda regions: regions.update(models=[{"coeffs": {"b0": 1}}])),
    ("origin", lambda regions: regions.update(origin=12)),
]


def test_wrong_types_in_a_profile(places: dict[str, Path], refused: Any) -> None:
    path = places["pending"]
    whole = path.read_bytes()
    for name, edit in WRONG_TYPES:
        regions = json.loads(whole)
        edit(regions)
        path.write_text(json.dumps(regions))
        refused(6, f"{path}: {name}", "add", "q.perf", "p.perf")


@pytest.mark.parametrize("number", [
    "1e999",
    "1" + "0" * 400,
    '"x"',
    *(pytest.param(number, marks=pytest.mark.slow) for number in ("NaN", "1e308")),
])  # fmt: skip
def test_numbers_that_are_huge_or_none(places: dict[str, Path], perun: Any, number: str) -> None:
    """They are no damage: JSON can spell them, so they are stored, shown and compared."""
    path = places["pending"]
    path.write_text(path.read_text().replace("1.0", number))
    resources = json.loads(path.read_bytes())["resources"]
    perun("show", "p.perf", "tableof", "resources")
    perun("check", "profiles", "s.perf", "p.perf")
    perun("add", "p.perf")
    assert repr(perun("show", "p.perf", "raw").json["resources"]) == repr(resources)


def test_a_profile_of_another_commit(places: dict[str, Path], filled: Any, refused: Any) -> None:
    path = places["pending"]
    other = filled.git("rev-parse", "HEAD~1")
    path.write_text(path.read_text().replace(filled.head, other))
    outcome = refused(6, f"p.perf was collected for {other[:10]}", "add", "q.perf", "p.perf")
    assert "--to-origin" in outcome.err


@pytest.mark.parametrize(
    "origin", ["../../../etc/passwd", "a\0b", "--output=x", "HEAD", "a" * 40, "a" * 100_000]
)
def test_origins_that_are_no_version(places: dict[str, Path], refused: Any, origin: str) -> None:
    path = places["pending"]
    path.write_text(json.dumps({**json.loads(path.read_bytes()), "origin": origin}))
    refused(6, "p.perf", "add", "p.perf")
    refused(4, "", "add", "--to-origin", "p.perf")


LONG = "n" * 300
NAMES = ("../../../etc/passwd", "/etc/passwd", "/", "..", "", LONG, f"a/{LONG}/b", "x/" * 3000, "\udcff.perf")


def test_names_that_lead_elsewhere(refused: Any) -> None:
    for name in NAMES:
        refused(6, "", "add", name)
        refused(6, "", "rm", name)
        refused(6, "", "show", name, "raw")


NO_NAMES = ["../x", "/tmp/x", "..", "", ".hidden", ".tmp-1", ".index", "a/b"]


def test_names_that_no_profile_can_have(refused: Any) -> None:
    for name in NO_NAMES:
        refused(2, repr(name), "collect", "-pn", name, "-c", "true", "time")


def test_a_name_that_is_too_long_is_cut(perun: Any, filled: Any) -> None:
    perun("collect", "-pn", LONG, "-c", "true", "-w", LONG, "time", "--repeat", "1")
    perun("collect", "-c", "true", "-w", LONG, "time", "--repeat", "1")
    perun("add", *(one["name"] for one in perun("status", "--json").json["pending"]))
    assert perun("fsck", "--json").json["errors"] == 0


NO_REVISIONS = ["--help", "", "HEAD..HEAD~1", "x" * 300, "../..", "a\nb", "\udcff"]


def test_revisions_that_are_none(refused: Any) -> None:
    for revision in NO_REVISIONS:
        refused(4, "", "add", "-m", revision, "p.perf")


@pytest.mark.parametrize("name", ["../../../victim", "/etc/passwd", "\x1b[31m", LONG])
def test_names_in_an_index_lead_nowhere(places: dict[str, Path], filled: Any, perun: Any, name: str) -> None:
    victim = filled.path.parent / "victim"
    victim.write_text("untouched")
    store = Store(filled.path / ".perun")
    entries = store.indexes.read(filled.head)
    places["index"].write_bytes(serialize([entries[0]._replace(path=name)]))
    assert perun("status", "--json").json["registered"][0]["name"] == name
    assert perun("show", "0@i", "raw").json["header"]["cmd"] == "./app"
    messages = [one.message for one in store.fsck()]
    assert any("not the plain name" in message for message in messages) == ("/" in name)
    assert "\x1b" not in perun("rm", "0@i").out
    assert store.indexes.read(filled.head) == []
    assert victim.read_text() == "untouched"


def bomb(header: bytes, size: int) -> bytes:
    """Compressed zeros behind a header, about a thousandth of `size`; quick to make, as it repeats itself."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    start = packer.compress(header) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    return b"\x78\xda" + start + block * (size >> 20) + packer.flush()


@pytest.fixture
def within(command: list[str], environment: Mapping[str, str], filled: Any) -> Callable[..., Any]:
    """Run a command that may have no more than so many bytes of memory."""

    def run(size: int, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, *arguments], cwd=filled.path, env=dict(environment), capture_output=True, text=True,
            check=False, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size))
        )  # fmt: skip

    return run


@pytest.mark.parametrize("length", [GIBIBYTE + GIBIBYTE // 10, 1_000])
def test_an_object_that_expands_to_more_than_a_gibibyte(places, within, length) -> None:
    data = bomb(b"profile time %d\0" % length, GIBIBYTE + GIBIBYTE // 10)
    assert len(data) < 2_000_000
    places["object"].write_bytes(data)
    for arguments, code in ((("show", "r.perf", "raw"), 6), (("fsck",), 10)):
        done = within(GIBIBYTE // 2, *arguments)
        assert done.returncode == code, done
        assert str(places["object"]) in done.stdout + done.stderr
        assert ("profiles.max_size" in done.stdout + done.stderr) == (length > GIBIBYTE)


@pytest.mark.slow
def test_an_object_within_the_limit_that_expands_to_much(places, within, filled, share) -> None:
    size = 256 << 20
    objects = FileObjects(places["object"].parents[1])
    body = objects.get_body("".join(places["object"].parts[-2:]))
    start, end = b"profile time %d\0" % (size + len(body)) + body[:-1], body[-1:]
    sha1 = hashlib.sha1(start)
    for _ in range(size >> 20):
        sha1.update(b" " * (1 << 20))
    sha1.update(end)
    name = sha1.hexdigest()
    path = objects.root / name[:2] / name[2:]
    path.parent.mkdir(exist_ok=True)
    packer = zlib.compressobj(1)
    data = [packer.compress(start), *(packer.compress(b" " * (1 << 20)) for _ in range(size >> 20))]
    path.write_bytes(b"".join(data) + packer.compress(end) + packer.flush())
    # What only verifies it needs no more memory than usual.
    done = within(size, "fsck")
    assert done.returncode == 0, done
    assert objects.head(name).cmd == objects.head("".join(places["object"].parts[-2:])).cmd
    share("profiles: {max_size: 100}\n")
    done = within(size, "fsck")
    assert done.returncode == 10
    assert f"{path} holds {size + len(body)} characters, more than the limit of {100 << 20}" in done.stdout
    # A repository cannot choose its own limit.
    with open(filled.path / ".perun" / "local.yml", "a") as local:
        local.write("profiles: {max_size: 4096}\n")
    done = within(size, "fsck")
    assert done.returncode == 5
    assert "profiles.max_size" in done.stderr


def test_heads_of_large_pending_files(within: Callable[..., Any], filled: Any) -> None:
    jobs = filled.path / ".perun" / "jobs"
    whole = (jobs / "p.perf").read_bytes().rstrip()
    for name, start, size, end in (
        ("sparse", b"", 2 * GIBIBYTE, b""),
        ("cut", b'{"resources": {', GIBIBYTE // 4, b""),
        ("spaces", whole[:-1], 0, b" " * (1 << 25) + b"}"),
    ):
        with open(jobs / f"{name}.perf", "wb") as file:
            file.write(start)
            file.truncate(size or len(start))
            file.seek(0, os.SEEK_END)
            file.write(end)
    done = within(GIBIBYTE // 4, "status")
    assert done.returncode == 0, done
    assert "sparse.perf" in done.stderr and "profiles.max_size" in done.stderr
    assert "cut.perf: not JSON" in done.stderr
    assert "spaces.perf" not in done.stderr


def test_statistics_that_expand_to_a_gibibyte(within: Callable[..., Any], filled: Any) -> None:
    folder = Store(filled.path / ".perun").stats.folder(filled.head)
    folder.mkdir(parents=True)
    (folder / "zeros").write_bytes(bomb(b"{", GIBIBYTE))
    (folder / "good").write_bytes(zlib.compress(b"{}"))
    done = within(GIBIBYTE // 4, "stats", "clean")
    assert done.returncode == 0, done
    assert [path.name for path in folder.iterdir()] == ["good"]


def test_limits_of_what_is_unpacked(project: Any, write_profile: Any) -> None:
    profile = Store(project.path / ".perun").pending.load(write_profile("p.perf"))
    checksum = Store(project.path / ".perun").objects.put(profile)
    size = len(Store(project.path / ".perun").objects.get_body(checksum))
    root = project.path / ".perun" / "objects"
    assert FileObjects(root, limit=size).get(checksum).type == "time"
    with pytest.raises(DamagedStore, match=f"more than the limit of {size - 1}"):
        FileObjects(root, limit=size - 1).get(checksum)
    # What could not be read again is not stored in the first place.
    with pytest.raises(ProfileError, match=f"more than the limit of {size - 1}"):
        FileObjects(root / "other", limit=size - 1).put(profile)
    assert not (root / "other").exists()
    assert inflate(deflate(b"x" * 5, "f", 5), 5) == b"x" * 5
    with pytest.raises(UsageError, match="f would hold 5 bytes, more than 4"):
        deflate(b"x" * 5, "f", 4)
    with pytest.raises(ValueError, match="more than 4 bytes"):
        inflate(zlib.compress(b"x" * 5), 4)
    with pytest.raises(ValueError, match="more than 1000 bytes"):
        inflate(bomb(b"", 1 << 30), 1_000)
    with pytest.raises(ValueError, match="cut short"):
        inflate(zlib.compress(b"x" * 5)[:-1])


@pytest.fixture
def repository(project: Any, environment: Mapping[str, str]) -> Repository:
    return open_repository(project.path, environment)


def edges(data: bytes) -> st.SearchStrategy[bytes]:
    """Random bytes, random JSON, and `data` cut and with bytes replaced."""
    scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
    keys = st.sampled_from(["saved", "state", "stash", "folder", "json", "protected", "a"]) | st.text(
        max_size=3
    )
    trees = st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
        max_leaves=8,
    )
    cut = st.integers(0, len(data)).map(lambda size: data[:size])
    replaced = st.tuples(st.integers(0, len(data) - 1), st.binary(min_size=1, max_size=3)).map(
        lambda change: data[: change[0]] + change[1] + data[change[0] + len(change[1]) :]
    )
    return st.binary(max_size=60) | trees.map(lambda tree: json.dumps(tree).encode()) | cut | replaced


quick = settings(
    max_examples=examples(100),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@quick
@given(data=edges(b'{"saved": true, "state": "main", "stash": "0123", "folder": "/tmp"}'))
def test_any_journal_is_one_or_damaged(repository: Repository, data: bytes) -> None:
    path = repository.in_place_journal
    path.write_bytes(data)
    try:
        assert read_journal(repository) is not None
    except DamagedStore as problem:
        assert str(path) in problem.message
    assert path.read_bytes() == data


@quick
@given(data=edges(b'{"id": {"calls": 5}}'), pack=st.booleans())
def test_any_statistics_are_some_or_damaged(project: Any, data: bytes, pack: bool) -> None:
    stats, minor = Store(project.path / ".perun").stats, "ab" * 20
    path = stats.path(minor, "calls")
    path.parent.mkdir(parents=True, exist_ok=True)
    content = zlib.compress(data) if pack else data
    for place, read in ((path, lambda: stats.get(minor, "calls")), (stats.root / ".index", stats.versions)):
        place.write_bytes(content)
        try:
            read()
        except DamagedStore as problem:
            assert str(place) in problem.message
        assert place.read_bytes() == content


@quick
@given(
    data=edges(b'{"/p/.perun/tmp/a": {"json": true, "compressed": true, "protected": false}}'),
    pack=st.booleans(),
)
def test_any_index_of_temporary_files_is_one_or_damaged(project: Any, data: bytes, pack: bool) -> None:
    temp = Store(project.path / ".perun").temp
    (temp.root / "a").write_bytes(b"content")
    (temp.root / ".index").write_bytes(zlib.compress(data) if pack else data)
    try:
        assert [file.path for file in temp.files()] == ["a"]
        assert temp.read("a") is not None
    except DamagedStore as problem:
        assert str(temp.root) in problem.message


@quick
@given(length=st.integers(0, 1 << 80), size=st.integers(0, 3000), content=st.binary(max_size=40))
def test_no_header_makes_an_object_larger_than_the_limit(project, length, size, content) -> None:
    objects = FileObjects(project.path / ".perun" / "objects", limit=1_000)
    path = objects.root / "ab" / ("c" * 38)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(zlib.compress(b"profile time %d\0" % length + content + b" " * size))
    with pytest.raises(DamagedStore, match=str(path)):
        objects.get("ab" + "c" * 38)


def test_parameters_that_are_not_utf8(perun: Any, project: Any) -> None:
    given = os.fsdecode(b"warmup=\xff")
    perun("run", "job", "-b", "true", "-c", "time", "-cp", "time", given, code=5, err="is not UTF-8")
