"""Profiles that are stored by columns: every command treats them as those that are JSON."""

import hashlib
import json
import re
import shutil
import zlib

import pytest

START = b'{"perun-columns":1,'


@pytest.fixture
def columns(perun, project, write_profile):
    """A pending profile of 100 resources by columns, `c.perf`, and what it is as JSON."""
    write_profile("json.perf", amounts=[number * 1.5 for number in range(100)])
    perun("config", "--local", "set", "profiles.columnar_from", "50")
    done = perun("postprocessby", "json.perf", "normalizer")
    [path] = (path for path in (project.path / ".perun" / "jobs").glob("*.perf") if path.name != "json.perf")
    assert path.name in done.out
    perun("rm", "json.perf")
    renamed = path.with_name("c.perf")
    path.rename(renamed)
    return renamed


def test_a_pending_profile(columns, perun, project, tmp_path):
    assert columns.read_bytes().startswith(START)
    [one] = perun("status", "--json").json["pending"]
    assert (one["name"], one["type"], one["cmd"], one["postprocessors"]) == (
        "c.perf", "time", "./app", ["normalizer"]
    )  # fmt: skip
    shown = perun("show", "0@p", "raw").json
    assert shown["origin"] == project.head
    assert list(shown)[:4] == ["origin", "header", "collector_info", "postprocessors"]
    [own] = shown["resources"].values()
    assert own["amount"] == [number * 1.5 / (99 * 1.5) for number in range(100)]
    assert own["order"] == list(range(100))
    # What is exported is what older releases and other tools read, and is the same profile.
    exported = tmp_path / "exported.perf"
    exported.write_text(perun("show", "c.perf", "raw").out)
    assert json.loads(exported.read_text()) == shown
    assert perun("show", exported, "raw").json == shown
    assert perun("show", columns, "tableof", "resources").out.count("\n") > 100
    assert perun("fsck").out == "no damage found\n"


def test_a_registered_profile(columns, perun, project):
    shown = perun("show", "0@p", "raw").json
    elsewhere = project.path / "elsewhere.perf"
    shutil.copy(columns, elsewhere)
    perun("rm", "0@p")
    assert perun("add", elsewhere).code == 0
    assert not elsewhere.exists()
    [one] = perun("status", "--json").json["registered"]
    path = project.path / ".perun" / "objects" / one["checksum"][:2] / one["checksum"][2:]
    content = zlib.decompress(path.read_bytes())
    assert hashlib.sha1(content).hexdigest() == one["checksum"]
    header, _, body = content.partition(b"\0")
    assert header == b"columns time %d" % len(body)
    assert body.startswith(START)
    del shown["origin"]
    assert perun("show", "0@i", "raw").json == shown
    assert re.search(r"\(1\|0\|0\|1 profiles\) .* Commit 3", perun("log", "--short").out)
    assert perun("fsck").out == "no damage found\n"
    perun("postprocessby", "0@i", "moving-average", "--per-key", "order", "sma")
    [pending] = perun("status", "--json").json["pending"]
    assert pending["postprocessors"] == ["normalizer", "moving_average"]
    perun("rm", "0@i")
    assert perun("fsck").code == 0


def test_two_versions_are_compared(perun, project, write_profile):
    answers = []
    for first, word in (("0", b"profile "), ("50", b"columns ")):
        perun("config", "--local", "set", "profiles.columnar_from", first)
        write_profile("old.perf", origin="HEAD~1", amounts=[1.0 + number / 1000 for number in range(100)])
        write_profile("new.perf", amounts=[2.0 + number / 1000 for number in range(100)])
        perun("add", "--to-origin", "0@p-1@p")
        [one] = perun("status", "--json").json["registered"]
        path = project.path / ".perun" / "objects" / one["checksum"][:2] / one["checksum"][2:]
        assert zlib.decompress(path.read_bytes()).startswith(word)
        answers.append(perun("check", "head").out)
        assert "1 pair of profiles compared" in answers[-1]
        if first == "0":
            perun("rm", "0@i")
            perun("rm", "-m", "HEAD~1", "0@i")
    assert answers[0] == answers[1]
    path.write_bytes(path.read_bytes()[:-30])
    done = perun("check", "head", check=False)
    assert str(path) in done.out + done.err


@pytest.mark.parametrize("damage", ["cut", "flip"])
def test_damage_is_found(columns, perun, damage):
    data = columns.read_bytes()
    at = data.index(b"\n") + 40
    columns.write_bytes(data[:-9] if damage == "cut" else data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    done = perun("fsck", check=False)
    assert done.code == 10 and f"{columns}" in done.out + done.err
    assert "damaged" in done.out
    for command in (("show", "c.perf", "raw"), ("add", "c.perf")):
        perun(*command, code=6, err=("c.perf: the ", "hint: restore the file"))
    assert columns.exists()
    assert [one["name"] for one in perun("status", "--json").json["pending"]] == ["c.perf"]


def test_json_always(columns, perun, project):
    perun("config", "--local", "set", "profiles.columnar_from", "0")
    perun("postprocessby", "c.perf", "normalizer")
    others = [path for path in columns.parent.glob("*.perf") if path != columns]
    assert [path.read_bytes()[:2] for path in others] == [b"{\n"]
    perun("config", "--local", "set", "profiles.columnar_from", "1e99")
    perun("status", code=5, err="profiles.columnar_from is 1e+99")
