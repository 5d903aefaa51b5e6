"""What every view keeps to: one suite, run over all of them."""

import copy
import dataclasses
import importlib
import io
import os
import pkgutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import perun.view
from islands import WRITE, timeline
from perun.core.errors import PerunError, UsageError
from perun.plugin.api import View, ViewContext
from perun.plugin.params import specs
from perun.plugin.registry import Registry
from perun.profile.factory import Profile
from perun.running.showing import show
from perun.view.raw import RawParams, RawView
from perun.view.tableof import TableOfView, TableParams
from profiles import profile_of

_raw: View[RawParams] = RawView()
_table: View[TableParams] = TableOfView()

PAGES: dict[str, dict[str, Any]] = {
    "bars": {"of": "amount", "by": "uid"}, "flamegraph": {}, "heapmap": {}, "callgraph": {},
    "flow": {"of": "amount", "through": "order", "by": "uid"}, "scatter": {"per": "order"}, "boxplot": {},
    "histogram": {}, "timeline": {}
}  # fmt: skip
"""Views that write a page to a file, and the parameters that they cannot do without."""

VIEWS = tuple(
    module.name for module in pkgutil.iter_modules(perun.view.__path__) if not module.name.startswith("_")
)
TEXTS = tuple(name for name in VIEWS if name not in PAGES)
"""Views that write to standard output."""
UNITS = {"memory": "B"}


def params_for(view: Any, folder: Path) -> Any:
    if view.name in TEXTS:
        return view.Params()
    return view.Params(**PAGES[view.name], filename=str(folder / "page.html"))


class Links(HTMLParser):
    """What the elements of a page refer to; what stands in a script is no element."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value or "" for name, value in attrs if name in ("src", "href", "action", "data")]


@pytest.fixture(params=VIEWS)
def view(request: pytest.FixtureRequest) -> Any:
    return importlib.import_module(f"perun.view.{request.param}").PLUGIN()


@pytest.fixture
def profile() -> Profile:
    uid = {"source": "a.c", "function": "main"}
    made = profile_of(
        ({"uid": uid, "amount": n, "address": 100 * n, "trace": [uid], "order": n} for n in (1, 2)),
        "memory", "B", cmd="./prog",
    )  # fmt: skip
    made["timeline"] = timeline(["main"], [(0, WRITE, "a.txt#1", 100, 50, 8)]).as_region()
    return made


@pytest.mark.parametrize(("arguments", "told"), [
    ("profile, params, out", "nothing"),
    ("profile, params, out, ctx", "80"),
    ("profile, params, out, ctx=None", "80"),
    ("profile, params, out, *, ctx=None", "nothing"),
    ("*arguments", "80"),
])  # fmt: skip
def test_a_view_may_do_without_a_context(arguments: str, told: str, profile: Profile, tmp_path: Path) -> None:
    (tmp_path / "view").mkdir()
    (tmp_path / "view" / "mine.py").write_text(
        f"""
from perun.plugin.params import NoParams

class Mine:
    name, help, Params = "mine", "Tells what it was given.", NoParams

    def render(self, {arguments}):
        given = dict(locals())
        values = given.get("arguments") or [given["profile"], given["params"], given["out"], given.get("ctx")]
        values[2].write(str(values[3].columns if values[3] else "nothing"))

PLUGIN = Mine
"""
    )
    repository: Any = SimpleNamespace(registry=Registry([tmp_path]))
    out = io.StringIO()
    show(repository, profile, "mine", None, out, ViewContext(columns=80))
    assert out.getvalue() == told


def test_describes_itself(view: Any) -> None:
    assert view.help
    declared: Any = view.Params
    assert dataclasses.is_dataclass(declared)
    assert all(spec.info.help for spec in specs(view.Params))


def test_writes_only_where_it_is_told(view, profile, tmp_path, monkeypatch, capfd) -> None:
    monkeypatch.chdir(tmp_path)
    before = copy.deepcopy(profile.serialize())
    out = io.StringIO()
    params = params_for(view, tmp_path)
    view.render(profile, params, out)
    assert out.getvalue().endswith("\n")
    assert capfd.readouterr() == ("", "")
    if view.name in TEXTS:
        assert "main" in out.getvalue()
        assert os.listdir(tmp_path) == []
    else:
        assert out.getvalue() == f"{params.filename}\n"
        assert os.listdir(tmp_path) == ["page.html"]
    assert profile.serialize() == before


def test_same_again(view: Any, profile: Profile, tmp_path: Path) -> None:
    params = params_for(view, tmp_path)
    made = []
    for _ in range(2):
        out = io.StringIO()
        view.render(profile, params, out)
        made.append((out.getvalue(), [path.read_bytes() for path in tmp_path.iterdir()]))
    assert made[0] == made[1]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_needs_nothing_from_elsewhere(name: str, profile: Profile, tmp_path: Path) -> None:
    view = importlib.import_module(f"perun.view.{name}").PLUGIN()
    params = params_for(view, tmp_path)
    view.render(profile, params, io.StringIO())
    text = Path(params.filename).read_text("utf-8")
    assert "Content-Security-Policy" in text
    assert "default-src &#x27;none&#x27;" in text
    links = Links()
    links.feed(text)
    assert [link for link in links.found if not link.startswith(("data:", "#"))] == []


@pytest.mark.parametrize("name", PAGES)
def test_a_page_gets_a_name_of_its_own(name, profile, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    view = importlib.import_module(f"perun.view.{name}").PLUGIN()
    outs = [io.StringIO(), io.StringIO()]
    for out in outs:
        view.render(profile, view.Params(**PAGES[name]), out)
    names = [out.getvalue().rstrip("\n") for out in outs]
    assert names == [f"{name}-memory-prog.html", f"{name}-memory-prog(1).html"]
    assert sorted(os.listdir(tmp_path)) == sorted(names)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_that_cannot_be_written(name: str, profile: Profile, tmp_path: Path) -> None:
    view = importlib.import_module(f"perun.view.{name}").PLUGIN()
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"cannot write .*page\.html") as caught:
        view.render(profile, params_for(view, tmp_path / "file"), io.StringIO())
    assert "--filename" in caught.value.hint


def test_empty_profile_is_shown_or_refused(view: Any, tmp_path: Path) -> None:
    empty = Profile({"header": {"type": "time"}, "collector_info": {"name": "time", "params": {}}})
    out = io.StringIO()
    try:
        view.render(empty, params_for(view, tmp_path), out)
    except PerunError as refusal:
        assert refusal.message
        assert refusal.hint
    else:
        assert out.getvalue()


def test_import_is_light(view: Any) -> None:
    heavy = {"tabulate", "click", "msgspec", "json", "numpy", "bokeh", "webbrowser"}
    code = f"import perun.view.{view.name}, sys; print(sys.modules.keys() & {heavy!r})"
    environ = {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"
