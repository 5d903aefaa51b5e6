"""What every view keeps to: one suite, run over all of them."""

from __future__ import annotations

import copy
import dataclasses
import importlib
import io
import os
import pkgutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import perun.view
from perun.errors import PerunError
from perun.plugin.api import View
from perun.plugin.params import specs
from perun.profile.factory import Profile
from perun.view.raw import RawParams, RawView
from perun.view.tableof import TableOfView, TableParams

_raw: View[RawParams] = RawView()
_table: View[TableParams] = TableOfView()

VIEWS = ("raw", "tableof")


@pytest.fixture(params=VIEWS)
def view(request: pytest.FixtureRequest) -> Any:
    return importlib.import_module(f"perun.view.{request.param}").PLUGIN()


@pytest.fixture
def profile() -> Profile:
    made = Profile(
        {
            "header": {"type": "time", "cmd": "./prog", "args": "", "workload": "", "units": {"time": "s"}},
            "collector_info": {"name": "time", "params": {}},
            "postprocessors": [],
        }
    )
    uid = {"source": "a.c", "function": "main"}
    made.update_resources([{"uid": uid, "type": "time", "amount": value} for value in (1, 2.5)])
    return made


def test_every_view_is_tried_here() -> None:
    modules = {module.name for module in pkgutil.iter_modules(perun.view.__path__)}
    assert {name for name in modules if not name.startswith("_")} == set(VIEWS)


def test_describes_itself(view: Any) -> None:
    assert view.name in VIEWS
    assert view.help
    declared: Any = view.Params
    assert dataclasses.is_dataclass(declared)
    assert all(spec.info.help for spec in specs(view.Params))


def test_writes_only_where_it_is_told(
    view: Any,
    profile: Profile,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    before = copy.deepcopy(profile.serialize())
    out = io.StringIO()
    view.render(profile, view.Params(), out)
    assert "main" in out.getvalue()
    assert out.getvalue().endswith("\n")
    assert capfd.readouterr() == ("", "")
    assert os.listdir(tmp_path) == []
    assert profile.serialize() == before


def test_same_again(view: Any, profile: Profile) -> None:
    outs = [io.StringIO(), io.StringIO()]
    for out in outs:
        view.render(profile, view.Params(), out)
    assert outs[0].getvalue() == outs[1].getvalue()


def test_empty_profile_is_shown_or_refused(view: Any) -> None:
    empty = Profile({"header": {"type": "time"}, "collector_info": {"name": "time", "params": {}}})
    out = io.StringIO()
    try:
        view.render(empty, view.Params(), out)
    except PerunError as refusal:
        assert refusal.message
        assert refusal.hint
    else:
        assert out.getvalue()


def test_import_is_light(view: Any) -> None:
    heavy = {"tabulate", "click", "msgspec", "json"}
    code = f"import perun.view.{view.name}, sys; print(sys.modules.keys() & {heavy!r})"
    environ = {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"
