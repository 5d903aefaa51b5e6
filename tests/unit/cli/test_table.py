"""Tables for the terminal, and text that a terminal cannot be harmed by."""

import subprocess
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.cli.table import Column, clean, cut, table, width


@pytest.mark.parametrize(("text", "shown"), [
    ("plain text, čeština 日本", "plain text, čeština 日本"),
    ("\x1b[31mred\x1b]0;title\x07", "\\x1b[31mred\\x1b]0;title\\x07"),
    ("\x9b31m", "\\x9b31m"),
    ("two\nlines\tand a tab", "two\nlines\tand a tab"),
    ("dos\r\nlines", "dos\nlines"),
    ("over\rwritten", "over\\rwritten"),
    ("abc\u202ecba", "abc\\u202ecba"),
    ("line\u2028end", "line\\u2028end"),
    ("a\u00a0b\u3000c", "a\u00a0b\u3000c"),
    ("👩\u200d💻", "👩\u200d💻"),
    (b"caf\xe9".decode("utf-8", "surrogateescape"), "caf\\xe9"),
])  # fmt: skip
def test_clean(text: str, shown: str) -> None:
    assert clean(text) == shown


@given(st.text())
def test_clean_text_is_harmless_and_can_be_encoded(text: str) -> None:
    shown = clean(text)
    assert all(c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cs") for c in shown)
    shown.encode()
    assert clean(shown) == shown
    assert "\n" not in clean(text, keep="")


@pytest.mark.parametrize(
    ("text", "columns"),
    [("abc", 3), ("", 0), ("日本", 4), ("e\u0301", 1), ("\uff46\uff55", 4), ("čš", 2), ("🎉", 2)],
)
def test_width(text: str, columns: int) -> None:
    assert width(text) == columns


@given(st.text(st.characters(exclude_categories=("Cc", "Cs"))), st.integers(0, 12))
def test_cut_fits(text: str, most: int) -> None:
    short = cut(text, most)
    assert width(short) <= most
    assert short == text or width(text) > most


def test_cut_does_not_halve_wide_characters() -> None:
    assert cut("日本語", 5) == "日.."
    assert cut("日本語", 6) == "日本語"
    assert cut("abcdef", 1) == "."


def columns(size: int) -> list[Column]:
    return [
        Column("id", [f"{n}@p" for n in range(size)]),
        Column("type", ["[time]"] * size, before=" | "),
        Column("cmd", ["x" * n for n in range(size)], before=" | "),
    ]


def test_rule_after_every_five_rows() -> None:
    assert list(table(columns(7), after=" |")) == [
        "-----------------------",
        "id  | type   | cmd    |",
        "-----------------------",
        "0@p | [time] |        |",
        "1@p | [time] | x      |",
        "2@p | [time] | xx     |",
        "3@p | [time] | xxx    |",
        "4@p | [time] | xxxx   |",
        "-----------------------",
        "5@p | [time] | xxxxx  |",
        "6@p | [time] | xxxxxx |",
        "-----------------------",
    ]


@pytest.mark.parametrize(("size", "rules"), [(0, 2), (1, 3), (5, 3), (6, 4), (10, 4)])
def test_table_ends_with_one_rule(size: int, rules: int) -> None:
    lines = list(table(columns(size)))
    assert lines[-1] == lines[0]
    assert lines.count(lines[0]) == rules


def test_wide_and_combining_characters_are_aligned() -> None:
    names = Column("name", ["日本", "e\u0301e", "abcd"])
    lines = list(table([names, Column("n", ["1", "22", "3"], "|", right=True)]))
    assert lines[1:2] + lines[3:-1] == ["name| n", "日本| 1", "e\u0301e  |22", "abcd| 3"]


def test_cells_cannot_control_the_terminal() -> None:
    text = "\n".join(table([Column("c", ["a\x1b[2Jb\nc\td"], before="\x07")]))
    assert "\x1b" not in text
    assert "\\x07a\\x1b[2Jb\\nc\\td" in text


def test_paint_gets_the_shown_text_and_does_not_disturb_the_width() -> None:
    types = Column("t", ["a", "bbb"], paint="<{}>".format)
    painted = list(table([types, Column("n", ["1", "2"], before=" ")]))
    assert painted[1:2] + painted[3:-1] == ["<t>   n", "<a>   1", "<bbb> 2"]


def test_shortened_to_the_terminal_only_where_allowed() -> None:
    wide = [
        Column("id", ["0@p"]),
        Column("cmd", ["a-long-command"], before=" ", shrink=True),
        Column("workload", ["a-much-longer-workload"], before=" ", shrink=True),
    ]
    assert list(table(wide, most=30))[3] == "0@p a-long-com.. a-much-long.."
    assert list(table(wide, most=30, unicode=True))[3] == "0@p a-long-comm… a-much-longe…"
    assert max(map(width, table(wide))) > 30
    assert max(map(width, table(wide, most=5))) == 3 + 1 + 4 + 1 + 4


def test_import_is_light() -> None:
    code = "import sys, perun.cli.table as t; t.clean('é'); t.width('abc'); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"unicodedata", "rich", "click", "dataclasses"} & set(done.stdout.split())
