"""The report of a crash: created exclusively, never through a link, for the user alone."""

import stat
from pathlib import Path

import pytest

from perun.cli import crash
from perun.cli.session import Session


@pytest.fixture
def reported(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a repository; the clock stands still, so that every report wants the same name."""
    (tmp_path / ".perun/logs").mkdir(parents=True)
    monkeypatch.setattr(crash.time, "strftime", lambda *given: "crash-x")
    monkeypatch.setattr(crash.tempfile, "gettempdir", lambda: str(tmp_path / "temporary"))
    return tmp_path


def report(folder: Path) -> None:
    assert crash.report_crash(Session({}, folder), ValueError("x\udcff"), ["status"]) == 70


def test_only_the_user_may_read_it(reported: Path) -> None:
    report(reported)
    [path] = (reported / ".perun/logs").iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "ValueError: x\\udcff" in path.read_text()


def test_a_link_of_that_name_is_not_written_through(reported: Path) -> None:
    target = reported / "target"
    (reported / ".perun/logs/crash-x.txt").symlink_to(target)
    report(reported)
    assert not target.exists()
    assert len(list((reported / ".perun/logs").glob("crash-x-*.txt"))) == 1


def test_an_earlier_report_stays(reported: Path) -> None:
    report(reported)
    first = (reported / ".perun/logs/crash-x.txt").read_bytes()
    report(reported)
    assert (reported / ".perun/logs/crash-x.txt").read_bytes() == first
    assert len(list((reported / ".perun/logs").iterdir())) == 2


def test_a_folder_that_is_a_link_gets_no_report(reported: Path) -> None:
    elsewhere = reported / "elsewhere"
    elsewhere.mkdir()
    (reported / ".perun/logs").rmdir()
    (reported / ".perun/logs").symlink_to(elsewhere)
    report(reported)
    assert list(elsewhere.iterdir()) == []
    assert len(list((reported / "temporary").iterdir())) == 1
