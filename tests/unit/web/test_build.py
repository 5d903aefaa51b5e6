"""The static site: what is in it, and what a second build writes."""

import ast
import json
import os
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

import measured_history
from measured_history import SLOWER
from perun.core.errors import UsageError
from perun.history.acknowledged import acknowledge
from perun.repository import config
from perun.running.explain import kept
from perun.web import pages
from perun.web.build import MANIFEST, build
from perun.web.data.pieces import PLAIN, Pieces, encoded
from perun.web.data.state import load

PIECE = re.compile(r"perunPiece\('(.*?)','(.*)'\);\n", re.S)


def piece(site, name):
    """A piece of the site, as a browser gets it."""
    found = PIECE.fullmatch((site / "data" / f"{name}.js").read_text("utf-8"))
    assert found and found[1] == name
    return json.loads(found[2].replace("\\'", "'").replace("\\\\", "\\"))


def files(site):
    return {str(one.relative_to(site)): one.read_bytes() for one in site.rglob("*") if one.is_file()}


@pytest.fixture
def built(measured, tmp_path):
    """A repository and its site."""
    site = tmp_path / "site"
    build(measured.open(), site)
    return measured, site


def test_the_site_has_each_page_and_each_piece_as_the_server_answers_it(built):
    measured, site = built
    there = files(site)
    assert {pages.file_name(page) for page in pages.PAGES} <= there.keys()
    assert {*pages.assets(), "feed.atom"} <= there.keys()
    pieces = Pieces(load(measured.open()), "", served=False)
    found = {name: piece(site, name) for name in PLAIN}
    found |= {f"series/{one['id']}": piece(site, f"series/{one['id']}") for one in found["series"]["series"]}
    found |= {name: piece(site, name) for name in ("commits/0", "values/0")}
    for name, one in found.items():
        if name in ("site", "changes", "overview") or name.startswith("series/"):
            continue  # these know what the site has
        assert one == json.loads(encoded(pieces.piece(name)))
    assert found["site"]["can_acknowledge"] is False
    assert found["site"]["running"] is None


def test_changes_say_which_comparisons_there_are(built):
    measured, site = built
    for change in piece(site, "changes")["changes"]:
        pair = f"{change['since']['checksum']}..{change['version']['checksum']}"
        assert change["report"]
        cases = piece(site, f"compare/{pair}")["cases"]
        rows = {row["location"]: row for case in cases for row in case["rows"]}
        assert rows["./app [real]"]["ratio"] == pytest.approx(2, rel=0.03)
    assert change["version"]["checksum"] == measured.main[SLOWER]


def test_what_explains_a_version_is_part_of_the_site(built):
    measured, site = built
    assert piece(site, "site")["explained"] == []
    for version in measured.main[3:5]:
        kept.keep(measured.open(), version, {"configurations": "damaged"})
    build(measured.open(), site)
    assert piece(site, "site")["explained"] == [3, 4]
    assert "cannot be read" in piece(site, f"explained/{measured.main[3]}")["notes"][0]
    kept.path_of(measured.open(), measured.main[3]).unlink()
    assert build(measured.open(), site).written == 1
    assert not (site / "data" / "explained" / f"{measured.main[3]}.js").exists()


def test_another_threshold_makes_other_verdicts_of_what_was_compared(built):
    measured, site = built
    pair = f"{measured.main[SLOWER - 1]}..{measured.main[SLOWER]}"

    def words():
        rows = [row for case in piece(site, f"compare/{pair}")["cases"] for row in case["rows"]]
        return {row["location"]: row["result"] for row in rows}

    assert words()["./app [real]"] == "SevereDegradation"
    key = "degradation.hodges_lehmann_ratio.severe"
    config.set_in(measured.path, os.environ, key, "4", "local")
    build(measured.open(), site)
    assert words()["./app [real]"] == "Degradation"
    assert {one["result"] for one in piece(site, "changes")["changes"]} == {"Degradation"}


def test_a_profile_of_a_version_before_makes_comparisons_anew(built):
    measured, site = built
    pair = f"{measured.main[SLOWER - 1]}..{measured.main[SLOWER]}"
    before = (site / "data" / "compare" / f"{pair}.js").read_bytes()
    for place in range(SLOWER - 12, SLOWER - 1, 2):
        measured_history.measure(measured, measured.main[place], 70 + place)
    build(measured.open(), site)
    fresh = site.parent / "fresh"
    build(measured.open(), fresh)
    after = (site / "data" / "compare" / f"{pair}.js").read_bytes()
    assert after == (fresh / "data" / "compare" / f"{pair}.js").read_bytes()
    assert after != before  # it is less certain now


def test_a_second_build_writes_nothing_but_the_date(built):
    measured, site = built
    before = {name: (site / name).stat().st_mtime_ns for name in files(site)}
    assert build(measured.open(), site).written <= 1
    after = {name: (site / name).stat().st_mtime_ns for name in files(site)}
    assert {name for name in after if after[name] != before.get(name)} <= {"data/site.js", MANIFEST}


def test_one_more_commit_writes_the_end_of_each_series_alone(measured, tmp_path, monkeypatch):
    for module in ("web.data.series", "web.build"):
        monkeypatch.setattr(f"perun.{module}.PIECE", 16)
    monkeypatch.setattr("perun.web.data.series.TAIL", 8)
    for module in ("web.data.versions", "web.data.pieces", "web.build"):
        monkeypatch.setattr(f"perun.{module}.CHUNK", 10)
    site = tmp_path / "site"
    build(measured.open(), site)
    before = files(site)
    measured_history.commit(measured, 40)
    build(measured.open(), site)
    after = files(site)
    changed = {name for name in after if after[name] != before.get(name)}
    assert not {name for name in changed if re.fullmatch(r"data/series/\w+/\d+\.js", name)}
    assert {name for name in changed if name.startswith(("data/commits", "data/values"))} == {
        "data/commits/4.js", "data/values/4.js"
    }  # fmt: skip
    fresh = tmp_path / "fresh"
    build(measured.open(), fresh)
    theirs = files(fresh)
    assert {name for name in after.keys() | theirs if after.get(name) != theirs.get(name)} <= {
        "data/site.js", MANIFEST
    }  # fmt: skip


def more_commits(measured):
    for number in (40, 41, 42):
        measured_history.commit(measured, number)


def another_machine(measured):
    for number in (36, 39):
        measured_history.measure(measured, measured.main[number], number, machine=1)


def rewritten(measured):
    """The last five commits are replaced by two others; what was measured of them stays in the store."""
    git = ["git", "-C", str(measured.path)]
    subprocess.run([*git, "reset", "-q", "--hard", measured.main[34]], check=True)
    del measured.main[35:]
    for number in (50, 51):
        measured_history.commit(measured, number)


def removed(measured):
    store = measured.open().store
    for place in (5, 39):
        store.indexes.remove(measured.main[place], store.indexes.read(measured.main[place])[:1])
    store.files.remove(store.indexes.path(measured.main[7]))


def measured_again(measured):
    store = measured.open().store
    store.indexes.remove(measured.main[38], store.indexes.read(measured.main[38]))
    measured_history.measure(measured, measured.main[38], 99)


def accepted(measured):
    acknowledge(measured.open(), measured.main[measured_history.SLOWER], "*", because="known")


def tagged(measured):
    git = ["git", "-C", str(measured.path)]
    subprocess.run([*git, "tag", "-f", "v9", measured.main[30]], check=True)
    subprocess.run([*git, "branch", "-D", "side"], check=True)


MORE_CHANGES = (tagged, more_commits, another_machine, removed, measured_again, accepted)


@pytest.mark.parametrize(
    "change", [rewritten, *(pytest.param(one, marks=pytest.mark.slow) for one in MORE_CHANGES)]
)
def test_an_update_is_what_a_build_without_any_cache_makes(measured, tmp_path, change):
    site, fresh = tmp_path / "site", tmp_path / "fresh"
    build(measured.open(), site)
    change(measured)
    build(measured.open(), site)
    measured_history.commit(measured, 60)
    build(measured.open(), site)
    measured.open().store.cache.clear()
    build(measured.open(), fresh)
    ours, theirs = files(site), files(fresh)
    different = {name for name in ours.keys() | theirs if ours.get(name) != theirs.get(name)}
    assert different <= {"data/site.js", MANIFEST}


def test_what_is_of_no_use_any_more_goes(built, tmp_path):
    measured, site = built
    (site / "notes.txt").write_text("of the user")
    shutil.rmtree(measured.path / ".perun" / "objects")
    (measured.path / ".perun" / "objects").mkdir()
    build(measured.open(), site)
    there = files(site)
    assert not [name for name in there if name.startswith(("data/series/", "data/compare/"))]
    assert there["notes.txt"] == b"of the user"
    assert piece(site, "overview")["verdict"]["kind"] == "unknown"


def test_a_list_that_names_files_elsewhere_removes_none_of_them(built, tmp_path):
    measured, site = built
    victim = tmp_path / "victim"
    victim.write_text("stays")
    listed = json.loads((site / MANIFEST).read_text())
    listed["files"] |= {"../victim": ["", 5, ""], str(victim): ["", 5, ""], "": ["", 0, ""]}
    (site / MANIFEST).write_text(json.dumps(listed))
    build(measured.open(), site)
    assert victim.read_text() == "stays"


@pytest.mark.parametrize("text", ["", "[]", "not json", '{"format": 99}', '{"format": 1, "files": {"a": 1}}'])
def test_a_list_that_is_none_is_made_anew(built, text):
    measured, site = built
    before = files(site)
    (site / MANIFEST).write_text(text)
    build(measured.open(), site)
    assert files(site).keys() == before.keys()
    assert json.loads((site / MANIFEST).read_text())["files"]


def test_a_file_that_was_cut_short_is_written_again(built):
    measured, site = built
    whole = (site / "data" / "grid.js").read_bytes()
    (site / "data" / "grid.js").write_bytes(whole[:100])
    build(measured.open(), site)
    assert (site / "data" / "grid.js").read_bytes() == whole


def test_a_folder_with_other_files_is_not_written_to(measured, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("important")
    with pytest.raises(UsageError, match="holds other files"):
        build(measured.open(), other)
    assert [one.name for one in other.iterdir()] == ["thesis.txt"]


def test_a_folder_that_cannot_be_written_is_said(measured, tmp_path):
    site = tmp_path / "site"
    site.mkdir()
    (site / MANIFEST).write_text("{}")
    (site / "data").write_text("in the way")
    with pytest.raises(UsageError, match=f"{site} cannot be written: "):
        build(measured.open(), site)


def test_a_file_in_the_place_of_a_link_elsewhere_leaves_that_alone(built, tmp_path):
    measured, site = built
    victim = tmp_path / "victim"
    victim.write_text("stays")
    (site / "index.html").unlink()
    (site / "index.html").symlink_to(victim)
    build(measured.open(), site)
    assert victim.read_text() == "stays"
    assert not (site / "index.html").is_symlink()


# -- documents, and the files that they load -----------------------------------------------------------------


SOURCES = Path(pages.__file__).parent


class Elements(HTMLParser):
    """What a document loads and runs, and its title."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.inline: list[str] = []
        self.attributes: list[str] = []
        self.policy = self.text = self._within = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.attributes += values
        self._within = tag
        if tag == "script":
            self.loaded.append(values.get("src") or "")
        if tag == "link" and values.get("rel") == "stylesheet":
            self.loaded.append(values.get("href") or "")
        if values.get("http-equiv") == "Content-Security-Policy":
            self.policy = values.get("content") or ""

    def handle_data(self, data: str) -> None:
        if self._within in ("script", "style") and data.strip():
            self.inline.append(data)
        self.text += data


@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize("page", pages.PAGES)
def test_a_document_loads_its_own_files_and_runs_no_text(page: str, live: bool) -> None:
    found = Elements(pages.html(page, project="p", live=live))
    assert sorted(found.loaded) == sorted(pages.assets())
    assert found.inline == []
    assert not [name for name in found.attributes if name.startswith("on") or name == "style"]
    # A file that is opened from disk has no headers.
    assert found.policy == ("" if live else pages.STATIC_POLICY)


@pytest.mark.parametrize("policy", [pages.POLICY, pages.STATIC_POLICY])
def test_the_policy_allows_no_text_and_no_other_server(policy: str) -> None:
    assert "unsafe" not in policy and "http" not in policy and "*" not in policy
    assert policy.startswith("default-src 'none'; script-src 'self';")


def test_the_name_of_the_project_is_text(hostile_names: list[str]) -> None:
    for name in hostile_names:
        found = Elements(pages.html("grid", project=name, live=False))
        assert sorted(found.loaded) == sorted(pages.assets())
        assert name in found.text


@pytest.fixture
def hostile_names() -> list[str]:
    return [
        "<script>1</script>", "\"'><svg onload=x>", "&lt;b&gt;", "{{ 1 + 1 }}{% raw %}",
        "</title><img src=x>"
    ]  # fmt: skip


def test_every_script_and_style_is_part_of_the_files() -> None:
    whole = b"".join(pages.assets().values()).decode()
    for path in (*SOURCES.glob("scripts/*.js"), *SOURCES.glob("styles/*.css")):
        assert path.read_text("utf-8") in whole, path.name


def test_addresses_of_files_change_with_their_content() -> None:
    for name, content in pages.assets().items():
        digest = re.fullmatch(r"assets/\w+-([0-9a-f]{10})\.(?:js|css)", name)
        assert digest, name
        assert content


@pytest.mark.parametrize(
    "value", ["plain", "it's", 'a "quoted" word', "back\\slash", "line\nbreak\r", "\u2028\u2029", "</script>"]
)
def test_a_piece_is_one_call_with_its_json_as_text(value: str) -> None:
    text = json.dumps({"name": value}, ensure_ascii=False)
    script = pages.piece("series/1", text)
    assert script.count("\n") == 1
    assert not re.search("[\u2028\u2029\r]", script)
    call = re.fullmatch(r"perunPiece\('series/1',('(?:[^'\\]|\\.)*')\);\n", script)
    assert call
    # The escapes of these texts mean the same in Python as in a script.
    assert json.loads(ast.literal_eval(call[1])) == {"name": value}
