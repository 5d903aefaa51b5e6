"""The profile itself, and its resources as tables for other programs."""

import csv
import io
import json
import sys
from pathlib import Path

import pytest

from perun.core.errors import PluginError, UsageError
from perun.profile.factory import Profile
from perun.profile.format.json import loads
from perun.view.raw import PLUGIN, RawParams
from profiles import profile_of


@pytest.fixture
def profile() -> Profile:
    g = {"uid": {"function": 'g, "x"\nž', "line": 3}, "amount": 2}
    return profile_of([{"uid": "f", "amount": 0.5, "order": 1}, g], cmd="žluťoučký", origin="a" * 40)


JSON = RawParams()


def shown(profile: Profile, params: RawParams = JSON) -> str:
    out = io.StringIO()
    PLUGIN().render(profile, params, out)
    return out.getvalue()


def test_what_is_shown_is_the_profile(profile: Profile) -> None:
    text = shown(profile)
    assert text.endswith("}\n")
    assert '\n  "header": {\n    "type": "time"' in text
    assert json.loads(text)["origin"] == "a" * 40
    assert loads(text.encode(), "shown").serialize() == profile.serialize()


def test_csv(profile: Profile) -> None:
    header, *rows = csv.reader(io.StringIO(shown(profile, RawParams("csv")), newline=""))
    assert header == ["amount", "order", "snapshots", "type", "uid", "uid:function", "uid:line"]
    assert rows == [
        ["0.5", "1", "0", "time", "f", "", ""],
        ["2", "", "0", "time", 'g, "x"\nž:3', 'g, "x"\nž', "3"],
    ]


def test_csv_keeps_every_row_and_digit() -> None:
    made = Profile()
    made.update_resources({"uid": "f", "amount": n / 7, "order": n} for n in range(10_000))
    _, *rows = csv.reader(io.StringIO(shown(made, RawParams("csv"))))
    assert [(float(amount), int(order)) for amount, order, _, _ in rows] == [
        (n / 7, n) for n in range(10_000)
    ]


@pytest.mark.parametrize("format", ["json", "csv"])
def test_into_a_file(profile: Profile, tmp_path: Path, format: str) -> None:
    path = tmp_path / "out"
    path.write_text("old and much longer than what comes after it" * 100)
    assert shown(profile, RawParams(format, str(path))) == f"{path}\n"
    assert path.read_bytes().decode() == shown(profile, RawParams(format))


def test_parquet(profile: Profile, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    path = tmp_path / "out.parquet"
    assert shown(profile, RawParams("parquet", str(path))) == f"{path}\n"
    table = parquet.read_table(path)
    assert table["amount"].to_pylist() == [0.5, 2.0]
    assert table["order"].to_pylist() == [1, None]
    assert table["uid"].to_pylist() == ["f", 'g, "x"\nž:3']
    assert json.loads(table.schema.metadata[b"perun"])["header"]["cmd"] == "žluťoučký"


def test_parquet_needs_a_file(profile: Profile) -> None:
    with pytest.raises(UsageError, match="needs a file") as caught:
        shown(profile, RawParams("parquet"))
    assert "--output-file" in caught.value.hint


def test_parquet_needs_pyarrow(profile: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # what Python does where it is not installed
    with pytest.raises(PluginError, match="pyarrow is not installed"):
        shown(profile, RawParams("parquet", str(tmp_path / "out")))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("format", ["json", "csv", "parquet"])
def test_a_file_that_cannot_be_written(profile: Profile, tmp_path: Path, format: str) -> None:
    if format == "parquet":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    (tmp_path / "none").touch()  # a file where a folder is needed
    with pytest.raises(UsageError, match=r"cannot write .*out") as caught:
        shown(profile, RawParams(format, str(tmp_path / "none" / "out")))
    assert "--output-file" in caught.value.hint
