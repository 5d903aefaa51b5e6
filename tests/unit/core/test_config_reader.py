"""Reading of YAML: places of errors, scalars as written, limits, and nothing but ConfigError."""

from __future__ import annotations

import contextlib
import math
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.core.config import templates
from perun.core.config.reader import MAX_BYTES, loads, parse, read_text
from perun.core.errors import ConfigError


def data(text: str) -> object:
    return loads(text, "f.yml")


def test_scalars_mean_what_yaml_1_2_says() -> None:
    text = "~, null, true, False, 1, -2, 0x1F, 0o17, 1.5, 1e3, .inf, yes, on, 010, 2020-01-01, '1', "
    inf = math.inf
    assert data(f"[{text} !!str 2, !!int '3']") == [
        None, None, True, False, 1, -2, 31, 15, 1.5, 1000.0, inf, "yes", "on", 10, "2020-01-01", "1", "2", 3,
    ]  # fmt: skip


def test_aliases_and_merge_keys() -> None:
    text = "base: &b {a: 1, b: 2}\nother: {<<: *b, b: 3}\nsame: *b\nboth: {<<: [{a: 5}, *b]}\n"
    assert data(text) == {
        "base": {"a": 1, "b": 2},
        "other": {"a": 1, "b": 3},
        "same": {"a": 1, "b": 2},
        "both": {"a": 5, "b": 2},
    }


@pytest.mark.parametrize("text", ["", "\n", "# only a comment\n", "---\n", "\ufeff# mark\n", "# a\r\n"])
def test_files_without_values(text: str) -> None:
    assert data(text) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a:\n\t- b\n", "f.yml:2:1: not YAML"),
        ("a: b: c\n", "f.yml:1:5: not YAML"),
        ("a: [1, 2\n", "f.yml:2:1: not YAML"),
        ("a: 1\nb: 2\na: 3\n", "f.yml:3:1: the key 'a' is given twice"),
        ("a: 1\n? [b]\n: c\n", "f.yml:2:5: a key must be text"),
        ("a: 1\n2: c\n", "f.yml:2:1: the key 2 is not text"),
        ("true: c\n", "the key true is not text"),
        ("~: c\n", "the key ~ is not text"),
        ("a: !!python/object:os.system x\n", "f.yml:1:4: the tag"),
        ("a: !custom {}\n", "f.yml:1:4: the tag"),
        ("a: *b\n", "f.yml:1:4: the alias *b"),
        ("a: &a [*a]\n", "f.yml:1:8: the alias *a"),
        ("a: 1\n---\nb: 2\n", "second document"),
        ("a: \x00\n", "f.yml:1: not YAML"),
        ("a: 1\nb: \x07\n", "f.yml:2: not YAML"),
    ],
)
def test_errors_name_the_place(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(text, "f.yml")
    assert message in str(caught.value)


def test_a_tab_is_explained() -> None:
    with pytest.raises(ConfigError) as caught:
        parse("a:\n\tb: c\n", "f.yml")
    assert "tabs" in caught.value.hint


def laughs() -> str:
    lines = ["a0: &a0 [ha, ha, ha, ha, ha, ha, ha, ha, ha, ha]"]
    lines += [f"a{n}: &a{n} [" + ", ".join([f"*a{n - 1}"] * 10) + "]" for n in range(1, 30)]
    return "\n".join(lines)


def chain() -> str:
    """Aliases that nest deeper than a recursion could go, while each line is flat."""
    return "- &a0 [x]\n" + "\n".join(f"- &a{n} [[[[[[[[[[*a{n - 1}]]]]]]]]]]" for n in range(1, 60))


BOMBS = {
    "laughs": laughs(),
    "chain": chain(),
    "brackets": "[" * 500_000,
    "questions": "? " * 300_000,
    "dashes": "- " * 300_000,
    "items": "a: [" + "b," * 400_000 + "]",
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused(name: str) -> None:
    with pytest.raises(ConfigError):  # unfolded they would take hours, or all of the memory
        parse(BOMBS[name], "f.yml")


def test_long_digits_are_text() -> None:
    assert data("a: " + "9" * 5000) == {"a": "9" * 5000}


@given(st.text())
def test_random_text_is_data_or_a_config_error(text: str) -> None:
    with contextlib.suppress(ConfigError):
        data(text)


PIECES = st.sampled_from(
    ["a", "b: ", "- ", "\n", "\n  ", "[", "]", "{", "}", ", ", ": ", "&x ", "*x", "<<: ", "|\n", "> ", "'",
     '"', "#", "? ", "!!str ", "!!map ", "---\n", "...\n", "%", "\t", "\r\n", "~", "1", "é", "\u2028",
     "\U0001f600"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=40).map("".join))
def test_random_yaml_is_data_or_a_config_error(text: str) -> None:
    try:
        data(text)
    except ConfigError as problem:
        assert str(problem).startswith("f.yml:")


SCALARS = st.none() | st.booleans() | st.integers(-(10**18), 10**18) | st.floats(allow_nan=False) | st.text()
TREES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(TREES)
def test_what_is_written_is_read_back(tree: object) -> None:
    assert data("k: " + templates.inline(tree)) == {"k": tree}
    assert data("\n".join(templates.entry("k", tree))) == {"k": tree}


@pytest.mark.parametrize(
    "text",
    ["yes", "no", "On", "y", "null", "~", "1", "1.0", "0x1", "1e3", "12:30:00", "2020-01-01", ".inf", "",
     " a", "a ", "a: b", "a #b", "# a", "- a", "a,b", "[a", "{a", "*a", "&a", "!a", "%a", "@a", "`a", "|",
     ">", "'", '"', "it's", "a\nb", "\t", "\x00", "\x85", "\u2028", "\ufeff", "\U0001f600", "---", "...",
     "<<", "=", "1_000", "0b1", "é"],
)  # fmt: skip
def test_texts_that_look_like_something_else_stay_text(text: str) -> None:
    assert data(
        f"a: {templates.scalar(text)}\n{templates.scalar(text)}: b\nc: [{templates.scalar(text)}]\n"
    ) == {
        "a": text,
        text: "b",
        "c": [text],
    }


def test_read_text_refuses_what_is_no_file(tmp_path: Path) -> None:
    assert read_text(tmp_path / "none.yml") is None
    assert read_text(tmp_path / "none" / "none.yml") is None
    with pytest.raises(ConfigError, match="is not a file"):
        read_text(tmp_path)
    pipe = tmp_path / "pipe.yml"
    os.mkfifo(pipe)
    with pytest.raises(ConfigError, match="is not a file"):
        read_text(pipe)
    large = tmp_path / "large.yml"
    large.write_bytes(b"#" * (MAX_BYTES + 1))
    with pytest.raises(ConfigError, match="larger than"):
        read_text(large)
    binary = tmp_path / "binary.yml"
    binary.write_bytes(b"a: \xff\xfe")
    with pytest.raises(ConfigError, match="not UTF-8 at byte 3"):
        read_text(binary)
    loop = tmp_path / "loop.yml"
    loop.symlink_to(loop)
    with pytest.raises(ConfigError, match="is not a file"):
        read_text(loop)
