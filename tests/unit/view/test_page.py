"""Pages that no text of a profile escapes from, files that take the place of nothing, and the browser."""

import json
import re
import webbrowser
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.core.errors import UsageError
from perun.pages import data_block, embed_json, escape, page
from perun.plugin.api import ViewContext
from perun.profile.factory import Profile
from perun.view._common.files import destination, open_in_browser, write_page, write_text


class Elements(HTMLParser):
    """Names of the elements of a page, and the text within them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


NASTY = st.text(alphabet=st.sampled_from("</script>!-\"'&\u2028\u2029\0\ud800 aSCRIPT`$"), max_size=60)


@given(NASTY)
def test_embedded_json_stays_within_its_element_and_says_the_same(text: str) -> None:
    found = embed_json({text: [text, 1.5]})
    assert not re.search("[<>&\u2028\u2029]", found)
    assert found.isascii()
    assert json.loads(found) == {text: [text, 1.5]}


def test_json_has_no_infinity() -> None:
    with pytest.raises(ValueError, match="JSON"):
        embed_json([float("nan")])


@given(NASTY)
def test_no_text_becomes_an_element(text: str) -> None:
    plain = page(title="", body="<p></p>" + data_block("data", ""))
    found = page(title=text, body=f"<p>{escape(text)}</p>" + data_block("data", text))
    assert Elements(found).names == Elements(plain).names


@given(NASTY)
def test_escaped_text_is_shown_as_it_is(text: str) -> None:
    assert Elements(f"<p title='x'>{escape(text)}</p>").text == re.sub("[\0\ud800]", "\ufffd", text)


def test_only_the_scripts_of_the_page_are_allowed() -> None:
    found = page(title="t", body="", scripts=["one()", 'two("</script><b>")'])
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', found)
    assert policy
    assert policy[1].count("sha256-") == 2
    assert "unsafe-eval" not in policy[1]
    assert Elements(found).names.count("script") == 2
    assert "b" not in Elements(found).names
    assert r'two("\x3c/script><b>")' in found
    assert "unsafe-eval" in page(title="t", body="", scripts=["one()"], evaluates=True)


def test_a_page_is_wholly_written_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text("old")
    write_page(path, title="\ud800", body=escape("\udcff \ud800"))
    assert "\ufffd" in path.read_text("utf-8")
    assert [one.name for one in tmp_path.iterdir()] == ["page.html"]
    with pytest.raises(UsageError, match="cannot write") as caught:
        write_page(tmp_path, title="t", body="")
    assert caught.value.hint == "name another file with --filename"


def test_a_link_and_a_device_keep_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"
    write_text(Path("/dev/null"), "nothing")
    assert Path("/dev/null").is_char_device()


def test_a_name_that_nothing_bears(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    profile = Profile(
        header={"cmd": "../bin/my app", "workload": "<script>/ž*?.txt"}, collector_info={"name": "memory"}
    )
    first = destination("", "flow", profile)
    assert str(first) == "flow-memory-my_app-.txt.html".replace("-.txt", "-txt")
    first.touch()
    assert str(destination("", "flow", profile)) == "flow-memory-my_app-txt(1).html"
    Path("flow-memory-my_app-txt(1).html").symlink_to("nowhere")
    assert str(destination("", "flow", profile)) == "flow-memory-my_app-txt(2).html"
    assert destination("mine.html", "flow", profile) == Path("mine.html")


@pytest.mark.parametrize(
    ("name", "works", "opened"), [("firefox", True, True), ("firefox", False, False), ("lynx", True, False)]
)
def test_the_browser_of_the_user(tmp_path, monkeypatch, name, works, opened) -> None:
    seen: list[str] = []

    class Browser(webbrowser.BaseBrowser):
        def open(self, url: str, new: int = 0, autoraise: bool = True) -> bool:
            seen.append(url)
            return works

    monkeypatch.setattr(webbrowser, "get", lambda: Browser(name))
    notes: list[str] = []
    path = tmp_path / "a b#.html"
    open_in_browser(path, ViewContext(notes.append))
    assert seen == ([] if name == "lynx" else [path.as_uri()])
    assert notes == ([] if opened else [f"cannot open a browser; open {path} in one"])


def test_no_browser_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> webbrowser.BaseBrowser:
        raise webbrowser.Error("could not locate runnable browser")

    monkeypatch.setattr(webbrowser, "get", none)
    notes: list[str] = []
    open_in_browser(tmp_path / "x.html", ViewContext(notes.append))
    assert len(notes) == 1
