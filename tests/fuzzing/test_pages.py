"""The page of a campaign and its time series, as files."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import campaigns
import pytest

from perun.fuzz import pages, results
from perun.fuzz.pages.drawing import Axis, Drawn, chart
from perun.fuzz.pages.index import side_by_side


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    campaigns.folder_of(tmp_path)
    campaigns.understood(tmp_path)
    return tmp_path


def test_the_page_has_the_ranking_the_growth_and_the_inputs(folder: Path) -> None:
    campaign = results.load(folder)
    assert pages.write(folder, campaign, plots=False) == ()
    text = (folder / "index.html").read_text("utf-8")
    assert "quadratic in the number of spaces" in text
    assert "24.5x" in text
    assert "12.5x [11, 14.2]" in text
    assert text.count("<svg") >= 3
    assert "script-src &#x27;none&#x27;" in text
    assert "spaces</span>" in text
    assert not (folder / "graphs").exists()


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
        "import sys; sys.modules['matplotlib'] = None\n"
        "from pathlib import Path\n"
        "from perun.fuzz import pages, results\n"
        "folder = Path(sys.argv[1])\n"
        "print(*pages.write(folder, results.load(folder)))\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=True
    ).stdout
    assert "matplotlib is not installed; install it with:" in said
    assert (folder / "index.html").is_file()
    assert not (folder / "graphs").exists()


def test_a_campaign_without_results_has_a_page(tmp_path: Path) -> None:
    campaign = replace(campaigns.folder_of(tmp_path), results=())
    pages.write(tmp_path, campaign, plots=False)
    assert "No slow input was found." in (tmp_path / "index.html").read_text("utf-8")


def test_no_file_outside_of_the_folder_gets_onto_the_page(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    secret = tmp_path_factory.mktemp("elsewhere") / "secret"
    secret.write_bytes(b"a secret of the user")
    target = folder / "minimized" / "slow-main.c"
    target.unlink()
    os.symlink(secret, target)
    pages.write(folder, results.load(folder), plots=False)
    assert "a secret of the user" not in (folder / "index.html").read_text("utf-8")


def test_a_chart_leaves_out_what_an_axis_cannot_show() -> None:
    log = Axis("n", log=True)
    assert chart("t", log, log, [Drawn("a", "points", [0.0, -1.0], [1.0, 2.0])]) == ""
    drawn = chart("t", log, log, [Drawn("a", "points", [0.0, 1.0, 1000.0], [1.0, float("inf"), 5.0])])
    assert drawn.count("<circle") == 1
    flat = chart("<t>", Axis("x"), Axis("y", "s"), [Drawn("a", "steps", [0.0, 1.0], [3.0, 3.0])])
    assert "nan" not in flat
    assert "<t>" not in flat


def test_inputs_side_by_side_mark_what_differs_and_shorten_rows() -> None:
    left, right = side_by_side(b"same\nold <b>\n", b"same\n" + b" " * 500 + b"\xff\n")
    assert left.startswith("same\n<del>")
    assert "&lt;b&gt;" in left
    assert "500 spaces" in right
    assert "\\xff" in right
