import subprocess
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.core.errors import VersionControlError
from perun.plugin.api import MinorVersion
from perun.vcs._common import history
from perun.vcs.git import Git

Make = Callable[..., Any]


def raw_commit(
    repo: Any, message: bytes, *headers: bytes, author: bytes = b"A <a@b>", parents: tuple[str, ...] = ()
) -> str:
    """A commit written byte by byte; the branch main is set to it."""
    tree = repo.git("mktree", data=b"")
    lines = [b"tree " + tree.encode()]
    lines += [b"parent " + parent.encode() for parent in parents]
    lines += [b"author " + author + b" 1000000000 +0000", b"committer C <c@d> 1000000000 +0000", *headers]
    data = b"\n".join(lines) + b"\n\n" + message
    checksum = repo.git("hash-object", "-t", "commit", "-w", "--stdin", "--literally", data=data)
    repo.git("update-ref", "refs/heads/main", checksum)
    return str(checksum)


def test_fields_of_a_version(repo: Any) -> None:
    head = repo.commit("Subject line\n\nBody of two\nlines.\n\nEnd.")
    parent = repo.git("rev-parse", "HEAD~1")
    version = repo.vcs.get_minor_version_info(head)
    assert version == MinorVersion(
        date="2019-12-31 22:30:00", author="Ada Lovelace", email="ada@example.org", checksum=head,
        desc="Subject line\n\nBody of two\nlines.\n\nEnd.", parents=(parent,)
    )  # fmt: skip
    assert version.subject == "Subject line" and next(repo.vcs.walk_minor_versions(head)) == version
    assert next(repo.vcs.walk_subjects(head)) == version._replace(desc="Subject line")


def test_info_of_a_spelling_other_than_a_checksum(repo: Any) -> None:
    assert repo.vcs.get_minor_version_info("HEAD~2").subject == "one"
    assert [version.desc for version in repo.vcs.walk_subjects("main~1")] == ["two", "one"]


def test_walk_is_complete_and_children_come_first_whatever_the_dates(make: Make) -> None:
    repo = make()
    environ = repo.environ
    # The merged line lies in the past of the commit that it starts from: clocks differ.
    dates = iter([1500000000, 1600000000, 1400000000, 1300000000, 1200000000])

    def commit(name: str) -> str:
        environ["GIT_COMMITTER_DATE"] = f"{next(dates)} +0000"
        return str(repo.commit(name, {name: name}))

    root = commit("root")
    fork = commit("fork")
    repo.git("switch", "--quiet", "-c", "side")
    side = commit("side")
    repo.git("switch", "--quiet", "main")
    main = commit("main")
    environ["GIT_COMMITTER_DATE"] = f"{next(dates)} +0000"
    repo.git("merge", "--quiet", "-m", "merge", "side")
    head = repo.git("rev-parse", "HEAD")

    walked = list(repo.vcs.walk_subjects(head, ordered=True))
    order: list[str] = [version.checksum for version in walked]
    assert order[0] == head and sorted(order) == sorted([root, fork, side, main, head])
    for version in walked:
        assert all(order.index(parent) > order.index(version.checksum) for parent in version.parents)
    assert walked[0].parents == (main, side)


def test_octopus_merge_has_all_parents(repo: Any) -> None:
    tree = repo.git("rev-parse", "HEAD^{tree}")
    parents = [repo.git("commit-tree", tree, "-m", name, "-p", "HEAD") for name in ("x", "y", "z")]
    octopus = repo.git("commit-tree", tree, "-m", "octopus", *(part for p in parents for part in ("-p", p)))
    assert repo.vcs.get_minor_version_info(octopus).parents == tuple(parents)
    assert len(list(repo.vcs.walk_subjects(octopus))) == 7


@pytest.mark.parametrize("walk", ["walk_minor_versions", "walk_subjects"])
def test_unusual_commits(make: Make, walk: str) -> None:
    repo = make()
    first = raw_commit(repo, b"")
    latin = raw_commit(repo, "Grüße aus Brünn".encode("latin-1"), b"encoding ISO-8859-1", parents=(first,))
    broken = raw_commit(repo, b"bad \xff\xfe bytes", author=b"J\xe4n <j\xe4n@x>", parents=(latin,))
    nameless = raw_commit(repo, "日本語 🚀\n".encode(), author=b" <>", parents=(broken,))

    found = {version.checksum: version for version in getattr(repo.vcs, walk)(nameless)}
    assert list(found) == [nameless, broken, latin, first] and found[first].desc == ""
    assert found[first].parents == () and found[latin].desc == "Grüße aus Brünn"
    assert found[broken].desc == "bad \ufffd\ufffd bytes" and found[broken].author == "J\ufffdn"
    assert found[nameless].desc == "日本語 🚀" and (found[nameless].author, found[nameless].email) == ("", "")
    assert all(version.date == "2001-09-09 01:46:40" for version in found.values())


def test_the_place_of_the_user_changes_nothing(repo: Any) -> None:
    expected = list(repo.vcs.walk_minor_versions("HEAD"))
    repo.environ["TZ"] = "Asia/Tokyo"
    repo.environ["LC_ALL"] = "cs_CZ.UTF-8"
    assert list(repo.vcs.walk_minor_versions("HEAD")) == expected and expected[0].author == "Ada Lovelace"


def test_shallow_clone_ends_where_it_was_cut(repo: Any, tmp_path: Path, environ: dict[str, str]) -> None:
    clone = tmp_path / "clone"
    repo.git("clone", "--quiet", "--depth=2", f"file://{repo.root}", str(clone))
    walked = list(Git(clone, environ).walk_minor_versions("HEAD"))
    assert [version.desc for version in walked] == ["three", "two"]
    assert walked[1].parents == ()


def test_grafted_parents_are_followed(repo: Any) -> None:
    head, root = repo.git("rev-parse", "HEAD"), repo.git("rev-parse", "HEAD~2")
    repo.git("replace", "--graft", head, root)
    assert [version.desc for version in repo.vcs.walk_subjects(head)] == ["three", "one"]


def test_sha256(make: Make) -> None:
    repo = make("project", "--object-format=sha256")
    head = repo.commit("first")
    (version,) = repo.vcs.walk_minor_versions(head)
    assert version.checksum == head and len(head) == 64


def test_unknown_head_is_named(repo: Any) -> None:
    with pytest.raises(VersionControlError, match="'nosuch'"):
        list(repo.vcs.walk_minor_versions("nosuch"))
    with pytest.raises(VersionControlError, match="0000000"):
        list(repo.vcs.walk_minor_versions("0" * 40))
    with pytest.raises(VersionControlError, match="0000000"):
        repo.vcs.get_minor_version_info("0" * 40)


def test_a_range_or_an_option_is_no_head(repo: Any) -> None:
    for head in ("HEAD~2..HEAD", "^HEAD", "--all", "-1", "--output=stolen", ""):
        with pytest.raises(VersionControlError):
            list(repo.vcs.walk_subjects(head))
    assert not (repo.root / "stolen").exists()


def test_missing_object_is_reported(repo: Any) -> None:
    lost = repo.git("rev-parse", "HEAD~1")
    (repo.root / ".git/objects" / lost[:2] / lost[2:]).unlink()
    with pytest.raises(VersionControlError, match=lost):
        list(repo.vcs.walk_minor_versions(repo.git("rev-parse", "HEAD")))


def long_history(repo: Any, length: int) -> str:
    lines = [b"reset refs/heads/main\n"]
    for number in range(length):
        message = b"commit %d\n\n" % number + b"x" * 200
        lines.append(b"commit refs/heads/main\ncommitter N <n@x> %d +0000\n" % (1400000000 + number))
        lines.append(b"data %d\n" % len(message) + message + b"\n")
    repo.git("fast-import", "--quiet", data=b"".join(lines))
    return str(repo.git("rev-parse", "main"))


def children() -> set[str]:
    """The children of this process, also dead ones that nobody has waited for."""
    files = Path("/proc/self/task").glob("*/children")
    return {child for file in files for child in file.read_text().split()}


def test_stopping_early_leaves_no_process(make: Make, capfd: pytest.CaptureFixture[str]) -> None:
    repo = make()
    head = long_history(repo, 5000)
    before = children()
    walk = repo.vcs.walk_minor_versions(head)
    assert next(walk).subject == "commit 4999" and children() - before
    walk.close()
    assert not children() - before  # no child is left, not even a dead one
    assert capfd.readouterr() == ("", "")
    assert sum(1 for _ in repo.vcs.walk_subjects(head)) == 5000


def test_first_version_does_not_wait_for_the_last(make: Make, tmp_path: Path) -> None:
    repo = make()
    head = long_history(repo, 300)
    repo.git("commit-graph", "write", "--reachable")
    # A git that stands still after its first block of output.
    slow = tmp_path / "bin" / "git"
    slow.parent.mkdir()
    real = subprocess.run(["which", "git"], capture_output=True, text=True, check=True).stdout.strip()
    slow.write_text(f'#!/bin/sh\n"{real}" "$@" | {{ dd bs=4096 count=1 2>/dev/null; exec sleep 60; }}\n')
    slow.chmod(0o755)
    environ = {**repo.environ, "PATH": f"{slow.parent}:{repo.environ['PATH']}"}
    assert next(iter(Git(repo.root, environ).walk_subjects(head))).subject == "commit 299"


FIELD = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=8)
NAME = st.text("0123456789abcdef", min_size=4, max_size=4)


@given(
    st.lists(st.tuples(FIELD, FIELD, FIELD, NAME, FIELD.map(lambda text: text.strip("\n")), st.lists(NAME))),
    st.lists(st.integers(0, 2000)),
)
def test_parse_whatever_the_pieces(versions: list[tuple[Any, ...]], cuts: list[int]) -> None:
    fields = [field for version in versions for field in (*version[:5], " ".join(version[5]))]
    data = "".join(field + "\0" for field in fields).encode()
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    pieces = [data[start:end] for start, end in pairwise(places)]
    assert list(history.parse(pieces)) == [MinorVersion._make((*v[:5], tuple(v[5]))) for v in versions]


def test_versions_come_as_soon_as_their_bytes_do() -> None:
    """Also where an output is cut behind each byte, and nothing of a version comes before its end."""
    parents = ("1" * 40, "2" * 40)
    texts = (f"d\0a\0e\0{number:040x}\0\n s \n\0{' '.join(parents)}\0" for number in range(3))
    data = "".join(texts).encode()
    given = 0

    def one_by_one() -> Iterator[bytes]:
        nonlocal given
        for place in range(len(data)):
            given += 1
            yield data[place : place + 1]

    for number, version in enumerate(history.parse(one_by_one())):
        assert given == (number + 1) * len(data) // 3
        assert version == MinorVersion("d", "a", "e", f"{number:040x}", " s ", parents)


def test_a_byte_that_is_no_text_costs_no_other() -> None:
    pieces = [b"d\0\xff\0e\0c\0caf\xc3", b"\xa9\0\0"]
    assert list(history.parse(pieces)) == [MinorVersion("d", "\ufffd", "e", "c", "caf\u00e9", ())]
