"""The documents of the dashboard, and the files that they load."""

from __future__ import annotations

import ast
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from perun.web import pages

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
        "<script>1</script>",
        "\"'><svg onload=x>",
        "&lt;b&gt;",
        "{{ 1 + 1 }}{% raw %}",
        "</title><img src=x>",
    ]


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
    "value",
    [
        "plain",
        "it's",
        'a "quoted" word',
        "back\\slash",
        "line\nbreak\r",
        "\u2028\u2029",
        "</script>",
    ],
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
