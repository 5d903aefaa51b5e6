"""The page of a campaign and its time series, as files."""

import importlib.util
import os
import subprocess
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path

import campaigns
import pytest
from in_process import campaign, events_of

from perun.fuzz import pages, results
from perun.fuzz.corpus import CorpusMember, Storage, TemporaryBytes
from perun.fuzz.findings import read
from perun.fuzz.pages import side_by_side
from perun.fuzz.pages.drawing import DrawingAxis, DrawnSeries, chart


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    campaigns.folder_of(tmp_path)
    campaigns.understood(tmp_path)
    return tmp_path


def test_the_page_has_the_ranking_the_growth_and_the_inputs(folder: Path) -> None:
    campaign = results.load(folder)
    assert pages.write(folder, campaign, plots=False) == ()
    text = (folder / "index.html").read_text("utf-8")
    assert "quadratic in the number of spaces" in text and "24.5x" in text and "12.5x [11, 14.2]" in text
    assert text.count("<svg") >= 3
    assert "script-src &#x27;none&#x27;" in text
    assert "spaces</span>" in text and not (folder / "graphs").exists()


@pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="matplotlib is not installed")
def test_the_time_series_are_pdf_files_that_do_not_depend_on_the_clock(folder: Path) -> None:
    campaign = results.load(folder)
    assert pages.write(folder, campaign) == ()
    names = ["coverage_ts.pdf", "degradations_ts.pdf"]
    first = [(folder / "graphs" / name).read_bytes() for name in names]
    assert all(data.startswith(b"%PDF-") for data in first)
    pages.write(folder, campaign)
    assert [(folder / "graphs" / name).read_bytes() for name in names] == first


def test_without_matplotlib_a_note_says_how_to_install_it(folder: Path) -> None:
    code = (
        "import sys; sys.modules['matplotlib'] = None\nfrom pathlib import Path\n"
        "from perun.fuzz import pages, results\nfolder = Path(sys.argv[1])\n"
        "print(*pages.write(folder, results.load(folder)))\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=True
    ).stdout
    assert "matplotlib is not installed; install it with:" in said
    assert (folder / "index.html").is_file() and not (folder / "graphs").exists()


def test_a_campaign_without_results_has_a_page(tmp_path: Path) -> None:
    campaign = replace(campaigns.folder_of(tmp_path), results=())
    pages.write(tmp_path, campaign, plots=False)
    assert "No slow input was found." in (tmp_path / "index.html").read_text("utf-8")


def test_no_file_outside_of_the_folder_gets_onto_the_page(folder: Path, tmp_path_factory) -> None:
    secret = tmp_path_factory.mktemp("elsewhere") / "secret"
    secret.write_bytes(b"a secret of the user")
    target = folder / "minimized" / "slow-main.c"
    target.unlink()
    os.symlink(secret, target)
    pages.write(folder, results.load(folder), plots=False)
    assert "a secret of the user" not in (folder / "index.html").read_text("utf-8")


def test_a_chart_leaves_out_what_an_axis_cannot_show() -> None:
    log = DrawingAxis("n", log=True)
    assert chart("t", log, log, [DrawnSeries("a", "points", [0.0, -1.0], [1.0, 2.0])]) == ""
    drawn = chart("t", log, log, [DrawnSeries("a", "points", [0.0, 1.0, 1000.0], [1.0, float("inf"), 5.0])])
    assert drawn.count("<circle") == 1
    flat = chart(
        "<t>", DrawingAxis("x"), DrawingAxis("y", "s"), [DrawnSeries("a", "steps", [0.0, 1.0], [3.0, 3.0])]
    )
    assert "nan" not in flat and "<t>" not in flat


def test_inputs_side_by_side_mark_what_differs_and_shorten_rows() -> None:
    left, right = side_by_side(b"same\nold <b>\n", b"same\n" + b" " * 500 + b"\xff\n")
    assert left.startswith("same\n<del>") and "&lt;b&gt;" in left
    assert "500 spaces" in right and "\\xff" in right


# -- Inputs that take more room than there is in memory ----------------------------------------------


def member(number, data):
    return CorpusMember(number, str(number), data, "", "seed", ())


def files_in(folder):
    """Those that this process has open."""
    links = [os.readlink(one) for one in Path("/proc/self/fd").iterdir() if one.is_symlink()]
    return [link for link in links if link.startswith(str(folder))]


def in_memory(members):
    return sum(one.size for one in members if isinstance(one.content, bytes))


def test_so_many_bytes_are_in_memory_at_most_and_all_can_be_read(tmp_path):
    storage = Storage(tmp_path, room=1000)
    data = [bytes([number % 256]) * (number % 300) for number in range(500)]
    members = [member(number, one) for number, one in enumerate(data)]
    for number, one in enumerate(members):
        storage.add(one)
        storage.add(one)  # as a fault that was slow before
        assert in_memory(members[: number + 1]) <= 1000
    assert in_memory(members) > 600 and [one.data for one in members] == data
    assert [one.size for one in members] == [len(one) for one in data]
    assert not list(tmp_path.iterdir())


def test_what_is_larger_than_all_room_is_not_kept_in_memory(tmp_path):
    storage = Storage(tmp_path, room=1000)
    one = member(1, b"x" * 5000)
    storage.add(one)
    assert isinstance(one.content, TemporaryBytes) and one.data == b"x" * 5000


def test_nothing_is_left_open(tmp_path):
    storage = Storage(tmp_path, room=0)
    storage.add(member(1, b"data"))
    assert len(files_in(tmp_path)) == 1
    del storage
    assert not files_in(tmp_path)


def test_a_campaign_finds_the_same_with_hardly_any_memory(tmp_path, monkeypatch):
    whole = campaign(tmp_path / "whole")
    events_of(whole)
    monkeypatch.setattr("perun.fuzz.findings.Storage", lambda folder: Storage(folder, room=500))
    small = campaign(tmp_path / "small")
    events_of(small)
    assert in_memory(small.found.corpus) <= 500 < in_memory(whole.found.corpus)
    assert [one.data for one in small.found.corpus] == [one.data for one in whole.found.corpus]
    again = campaign(tmp_path / "small", executions=700)
    again.restore(islice(read(tmp_path / "small"), 1, None))
    assert in_memory(again.found.corpus) <= 500
    assert [one.data for one in again.found.corpus] == [one.data for one in whole.found.corpus]
    list(again.search())
    assert again.executions == 700
