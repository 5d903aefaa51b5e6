"""Tables of resources and models, in all formats."""

import io
import os
import re
from dataclasses import fields
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from tabulate import tabulate, tabulate_formats

from perun.cli.plugins import command_of
from perun.core.errors import UsageError
from perun.plugin.api import ViewContext
from perun.profile.factory import Profile
from perun.view.tableof import FORMATS, PLUGIN, TableParams
from perun.view.tableof.layout import lines_of
from perun.view.tableof.table import ColumnTable, from_rows, matching, models_of, ordered, resources_of

HEADER = {"type": "mixed", "cmd": "./bin/my prog", "args": "-v", "workload": "data/in.txt", "units": {}}
MODELS: list[dict[str, Any]] = [
    {"uid": "SLList_insert", "model": "linear", "method": "full", "r_square": 0.001756,
     "coeffs": [{"name": "b0", "value": 0.505375}, {"name": "b1", "value": 9.93516e-06}], "x_start": 0,
     "x_end": 11892},
    {"uid": "SLList_search", "model": "quadratic", "method": "full", "r_square": 0.984263,
     "coeffs": [{"name": "b0", "value": 1.5}, {"name": "b1", "value": 2}, {"name": "b2", "value": 3e-9}],
     "x_start": 0, "x_end": 11892},
    {"uid": "SLList_search", "model": "regressogram", "r_square": 0.5, "bucket_stats": [1.5, 2.5]},
]  # fmt: skip


def sorted_rows(rows: list[dict[str, Any]], keys: list[str]) -> list[dict[str, Any]]:
    table = from_rows([*rows, dict.fromkeys(keys)])
    return [rows[number] for number in ordered(table, range(len(rows)), keys)]


def filtered(rows: list[dict[str, Any]], rules: list[tuple[str, str]]) -> list[dict[str, Any]]:
    table = from_rows([*rows, dict.fromkeys(KEYS)])
    return [rows[number] for number in matching(table, rules) if number < len(rows)]


def table_of(profile: Profile, kind: str) -> ColumnTable:
    return models_of(profile) if kind == "models" else resources_of(profile)


def profile(resources: list[dict[str, Any]], models: list[dict[str, Any]] | None = None) -> Profile:
    made = Profile(
        {"header": HEADER, "collector_info": {"name": "trace", "params": {}}, "models": models or []}
    )
    made.update_resources(resources)
    return made


@pytest.fixture
def functions() -> Profile:
    return profile(
        [
            {"uid": {"source": "a.c", "function": "main", "line": 7}, "type": "memory", "amount": 16},
            {"uid": {"source": "b.c", "function": "sort", "line": 12}, "type": "memory", "amount": 4},
            {"uid": {"source": "b.c", "function": "find", "line": 3}, "type": "memory", "amount": 100},
            {"uid": "short", "type": "memory", "amount": 8.5, "order": 1},
        ],
        MODELS,
    )


def render(what: Profile, **params: Any) -> str:
    out = io.StringIO()
    PLUGIN().render(what, TableParams(**params), out)
    return out.getvalue()


def tsv(what: Profile, **params: Any) -> list[list[str]]:
    text = render(what, format="tsv", **params)
    return [[cell.strip() for cell in line.split("\t")] for line in text.splitlines()]


class TestRows:
    def test_keys_are_flattened(self, functions: Profile) -> None:
        header, *rows = tsv(functions)
        assert header == ["uid", "uid:function", "uid:line", "uid:source", "amount", "order", "type"]
        assert rows[0] == ["a.c:main:7", "main", "7", "a.c", "16", "", "memory"]
        assert rows[3] == ["short", "", "", "", "8.5", "1", "memory"]

    def test_coefficients_of_models(self, functions: Profile) -> None:
        header, *rows = tsv(
            functions, kind="models", headers=("uid", "model", "coeffs:b1", "coeffs:b2", "r_square")
        )
        assert header == ["uid", "model", "coeffs:b1", "coeffs:b2", "r_square"]
        assert rows == [
            ["SLList_insert", "linear", "9.93516e-06", "", "0.001756"],
            ["SLList_search", "quadratic", "2", "3e-09", "0.984263"],
            ["SLList_search", "regressogram", "", "", "0.5"],
        ]

    def test_table_of_the_manual(self, functions: Profile) -> None:
        shown = render(functions, kind="models", headers=("uid", "model", "r_square"), sort_by=("r_square",))
        assert shown.splitlines() == [
            "uid            model           r_square",
            "-------------  ------------  ----------",
            "SLList_insert  linear          0.001756",
            "SLList_search  regressogram    0.5",
            "SLList_search  quadratic       0.984263",
        ]

    @pytest.mark.parametrize("kind", ["resources", "models"])
    def test_nothing_to_show(self, kind: str) -> None:
        with pytest.raises(UsageError, match=f"has no {kind}") as refusal:
            render(profile([]), kind=kind)
        assert refusal.value.hint

    def test_nothing_left_by_the_filter_is_an_empty_table(self, functions: Profile) -> None:
        for name in FORMATS:
            assert "memory" not in render(functions, filter_by=(("amount", "-1"),), format=name)

    def test_headers_select_and_order(self, functions: Profile) -> None:
        assert tsv(functions, headers=("amount", "uid:line"))[1] == ["16", "7"]

    @pytest.mark.parametrize(
        "params",
        [{"headers": ("amonut",)}, {"sort_by": ("amount", "amonut")}, {"filter_by": (("amonut", "1"),)}],
    )
    def test_unknown_key(self, params: dict[str, Any], functions: Profile) -> None:
        with pytest.raises(UsageError, match="amonut") as refusal:
            render(functions, **params)
        assert "'amount'" in refusal.value.hint

    def test_unknown_key_like_no_other(self, functions: Profile) -> None:
        with pytest.raises(UsageError) as refusal:
            render(functions, headers=("xyz",))
        assert "uid:source" in refusal.value.hint


class TestSorting:
    def test_numbers_by_value_texts_next_missing_last(self) -> None:
        rows = [{"k": value} for value in ["b", 10, None, 9.5, "a", float("nan"), "2"]] + [{}]
        values = [row.get("k") for row in sorted_rows(rows, ["k"])]
        assert values[:5] == ["2", 9.5, 10, "a", "b"]
        assert values[-2:] == [None, None]

    def test_several_keys(self) -> None:
        rows = [{"a": 1, "b": 2}, {"a": 0, "b": 3}, {"a": 1, "b": 1}]
        assert sorted_rows(rows, ["a", "b"]) == [rows[1], rows[2], rows[0]]

    @given(st.lists(st.one_of(st.none(), st.integers(), st.floats(), st.text(), st.booleans())))
    def test_anything_can_be_sorted(self, values: list[Any]) -> None:
        rows = [{"k": value, "place": place} for place, value in enumerate(values)]
        done = sorted_rows(rows, ["k"])
        assert sorted(row["place"] for row in done) == list(range(len(values)))
        missing = [row["k"] is None for row in done]
        assert missing == sorted(missing)
        numbers = [row["k"] for row in done if isinstance(row["k"], int) and not isinstance(row["k"], bool)]
        assert numbers == sorted(numbers)


KEYS = ["type", "amount", "order", "k"]
ROWS = st.lists(
    st.fixed_dictionaries(
        {}, optional={"type": st.sampled_from("xyz"), "amount": st.integers(0, 3), "order": st.none()}
    )
)
RULES = st.lists(st.tuples(st.sampled_from(KEYS), st.sampled_from(["x", "y", "0", "1", "2.0", "None"])))


class TestFiltering:
    @given(ROWS, RULES)
    def test_or_within_a_key_and_between_keys(self, rows, rules) -> None:
        def same(value: object, text: str) -> bool:
            return value is not None and (str(value) == text or (text == "2.0" and value == 2))

        wanted = [
            row
            for row in rows
            if all(any(same(row.get(key), text) for other, text in rules if other == key) for key, _ in rules)
        ]
        assert filtered(rows, rules) == wanted

    @given(ROWS, RULES)
    def test_every_further_key_takes_away_and_nothing_is_changed(self, rows, rules) -> None:
        before = [dict(row) for row in rows]
        kept = filtered(rows, rules)
        assert all(row in rows for row in kept)
        assert filtered(kept, rules) == kept
        assert rows == before

    @pytest.mark.parametrize(("value", "text", "expected"), [
        (2, "2", True),
        (2, "2.0", True),
        (0.5, ".5", True),
        (0.5, "half", False),
        ("2", "2.0", False),
        ("main", "main", True),
        (True, "true", True),
        (True, "1", False),
        (2**60 + 1, str(2**60 + 1), True),
        (None, "None", False),
        (float("nan"), "nan", True),
    ])  # fmt: skip
    def test_equality(self, value: object, text: str, expected: bool) -> None:
        assert bool(filtered([{"k": value}], [("k", text)])) is expected


ODD: list[list[dict[str, Any]]] = [
    [
        {"a": 1, "uid": "x|y<b>&\"'", "f": 1.5, "m": None, "b": True, "t": " lead", "l": [1], "p": "5%_#$\\"},
        {"a": -20, "uid": "plain", "f": 1e-5, "m": 2.25, "b": False, "t": "", "l": [], "p": "%s %d {}~^"},
        {"a": 300, "f": float("inf"), "m": float("nan"), "t": "line\nbreak"},
        {"f": 123456789.0, "m": None, "a": 0},
    ],
    [{"n": 5}, {"n": None}, {"n": 12345678901234567890}],
    [{"key with a long name": "x"}],
    [{"x": 0.1}, {"x": 100.0}, {"x": 2e300}, {"x": -1.25e-7}],
    [{"x": 1}, {"x": 2.5}, {"x": 30}],
    [{"uid": "12e5", "v": "1.5"}, {"uid": "007", "v": "2"}],
    [{"a|b": "x|y", "c%d": "%"}],
]


def made_by_tabulate(rows: list[dict[str, Any]], names: list[str], name: str) -> str:
    """The table by tabulate alone."""

    def text(value: Any) -> str:
        if value is None:
            return ""
        if isinstance(value, float):
            return repr(value) if name == "tsv" else format(value, "g")
        return escaped(str(value).replace("\n", r"\n"))

    def escaped(cell: str) -> str:
        return cell.replace("|", r"\|") if name in ("asciidoc", "github", "jira", "pipe") else cell

    def alignment(key: str) -> str:
        kinds = {type(row[key]) for row in rows if row.get(key) is not None}
        return "left" if not kinds or not kinds <= {int, float} else "decimal" if float in kinds else "right"

    made = tabulate(
        [[text(row.get(key)) for key in names] for row in rows],
        [escaped(key) for key in names],
        tablefmt=name.replace("-", ""),
        disable_numparse=True,
        colalign=[alignment(key) for key in names] if rows else None,
    )
    return f"{made}\n"


class TestLimit:
    def test_the_first_rows_and_how_many_more(self) -> None:
        made = profile([{"uid": "f", "amount": n} for n in range(3000)])
        lines = render(made, limit=2, headers=("amount",)).splitlines()
        assert lines[2:] == ["       0", "       1", "... and 2,998 more; --limit 0 shows all"]
        chosen: dict[str, Any] = {"sort_by": ("amount",), "filter_by": (("amount", "9"), ("amount", "7"))}
        lines = render(made, limit=1, headers=("amount",), **chosen).splitlines()
        assert lines[2:] == ["       7", "... and 1 more; --limit 0 shows all"]
        assert "more" not in render(made, limit=3000)

    def test_what_programs_read_stays_a_table(self) -> None:
        notes: list[str] = []
        out = io.StringIO()
        made = profile([{"uid": "f", "amount": n} for n in range(5)])
        PLUGIN().render(made, TableParams(format="tsv", limit=2), out, ViewContext(note=notes.append))
        assert len(out.getvalue().splitlines()) == 3
        assert notes == ["... and 3 more; --limit 0 shows all"]


def test_a_large_table_is_written_piece_by_piece() -> None:
    made = profile([{"uid": f"f{n % 3}", "amount": n / 7, "order": n} for n in range(15_000)])

    class Counting(io.StringIO):
        longest = 0

        def write(self, text: str) -> int:
            self.longest = max(self.longest, len(text))
            return super().write(text)

    out = Counting()
    PLUGIN().render(made, TableParams(), out)
    shown = out.getvalue()
    assert shown.count("\n") == 15_002
    assert out.longest < len(shown) / 3
    table = resources_of(made)
    names = table.names
    rows = [dict(zip(names, row, strict=True)) for row in zip(*map(table.values, names), strict=True)]
    assert shown == made_by_tabulate(rows, names, "simple")


class TestFormats:
    def test_those_of_the_manual_and_of_the_library(self) -> None:
        assert set(tabulate_formats) - set(FORMATS) == set()
        assert set(FORMATS) - set(tabulate_formats) == {"unsafe-html"}

    @pytest.mark.parametrize("kind", ["resources", "models"])
    @pytest.mark.parametrize("name", FORMATS)
    def test_every_cell_is_in_every_format(self, name: str, kind: str, functions: Profile) -> None:
        shown = render(functions, format=name, kind=kind).replace("\\", "")
        table = table_of(functions, kind)
        assert shown.endswith("\n")
        for key in table.names:
            assert key in shown
        for uid in table.values("uid"):
            assert str(uid) in shown

    @pytest.mark.parametrize("name", FORMATS)
    def test_every_format_is_what_tabulate_makes_of_it(self, name: str) -> None:
        for rows in ODD:
            table = from_rows(rows)
            assert "".join(lines_of(table, table.names, name)) == made_by_tabulate(rows, table.names, name)
            assert "".join(lines_of(table.head(0), table.names, name)) == (
                made_by_tabulate([], table.names, name)
            )

    def test_html_escapes_and_unsafe_html_does_not(self) -> None:
        sly = profile([{"uid": "<script>alert(1)</script>", "type": "x", "amount": 1}])
        tags: list[str] = []
        parser = HTMLParser()
        parser.handle_starttag = lambda tag, attrs: tags.append(tag)  # type: ignore[method-assign]
        parser.feed(render(sly, format="html"))
        assert "td" in tags
        assert "script" not in tags
        assert "<script>" in render(sly, format="unsafe-html")
        assert render(sly, format="unsafehtml") == render(sly, format="unsafe-html")

    @pytest.mark.parametrize("name", ["asciidoc", "github", "jira", "pipe"])
    def test_pipes_do_not_tear_cells(self, name: str) -> None:
        shown = render(profile([{"uid": "operator|(int)", "type": "x", "amount": 1}]), format=name)
        assert r"operator\|(int)" in next(line for line in shown.splitlines() if "operator" in line)

    @given(st.text(min_size=1), st.sampled_from(["tsv", "simple", "plain"]))
    def test_texts_cannot_add_rows_or_columns(self, uid: str, name: str) -> None:
        shown = render(profile([{"uid": uid, "type": "x", "amount": 1}]), format=name)
        assert len(re.split(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]", shown.rstrip("\n"))) <= 3
        assert not any(char < " " and char not in "\t\n" for char in shown)
        if name == "tsv":
            assert shown.count("\t") == 4

    def test_texts_that_look_like_numbers_stay_texts(self) -> None:
        odd = profile([{"uid": "12e5", "type": "007", "amount": 1}])
        assert tsv(odd, headers=("uid", "type")) == [["uid", "type"], ["12e5", "007"]]

    def test_digits(self) -> None:
        exact = profile([{"uid": "f", "type": "x", "amount": 1234567.891}])
        assert tsv(exact, headers=("amount",))[1] == ["1234567.891"]
        assert "1.23457e+06" in render(exact)


class TestDestination:
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.chdir(tmp_path)
        return tmp_path

    def test_named_file_is_replaced(self, folder: Path, functions: Profile) -> None:
        (folder / "table.txt").write_text("old" * 1000)
        assert render(functions, output_file="table.txt") == "table.txt\n"
        assert (folder / "table.txt").read_text() == render(functions)

    def test_made_up_name_never_replaces(self, folder: Path, functions: Profile) -> None:
        first = render(functions, to_file=True, format="html").strip()
        second = render(functions, to_file=True, format="html", headers=("uid",)).strip()
        assert first == "tableof-resources-trace-my_prog-in.txt.html"
        assert second == "tableof-resources-trace-my_prog-in.txt(1).html"
        assert (folder / first).read_text() == render(functions, format="html")

    def test_both(self, folder: Path, functions: Profile) -> None:
        shown = render(functions, output_file="t", to_stdout=True)
        assert shown == (folder / "t").read_text() == render(functions)

    def test_file_that_cannot_be_written(self, folder: Path, functions: Profile) -> None:
        Path("taken").touch()
        with pytest.raises(UsageError, match="cannot write taken/t: ") as caught:
            render(functions, output_file="taken/t")
        assert "--output-file" in caught.value.hint

    def test_what_was_there_stays_until_the_new_table_is_whole(self, folder, functions, monkeypatch) -> None:
        (folder / "t").write_text("old")

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(UsageError, match="cannot write t: No space left"):
            render(functions, output_file="t")
        assert os.listdir(folder) == ["t"]
        assert (folder / "t").read_text() == "old"

    def test_nothing_is_written_for_a_wrong_key(self, folder: Path, functions: Profile) -> None:
        with pytest.raises(UsageError):
            render(functions, to_file=True, headers=("wrong",))
        assert os.listdir(folder) == []


class Shown:
    """What the command line hands to the command: a profile, and a way to render."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.calls: list[tuple[str, TableParams]] = []

    def render(self, name: str, params: TableParams) -> None:
        self.calls.append((name, params))


COMMAND = command_of(PLUGIN(), "tableof", lambda shown, name, params: shown.render(name, params))


class TestCommand:
    def invoke(self, *arguments: str) -> tuple[Result, Shown]:
        shown = Shown(profile([]))
        return CliRunner().invoke(COMMAND, list(arguments), obj=shown), shown

    def test_all_options(self) -> None:
        options = (
            "-tf -ts -of out.tex -f latex models -h uid -h r_square -s r_square -s uid -f uid a -f model b"
        )
        result, shown = self.invoke(*options.split())
        assert result.exit_code == 0, result.output
        assert shown.calls == [
            (
                "tableof",
                TableParams(
                    kind="models", to_file=True, to_stdout=True, output_file="out.tex", format="latex",
                    headers=("uid", "r_square"), sort_by=("r_square", "uid"),
                    filter_by=(("uid", "a"), ("model", "b"))
                ),
            )
        ]  # fmt: skip

    def test_long_options_and_defaults(self) -> None:
        result, shown = self.invoke("resources")
        assert result.exit_code == 0
        assert shown.calls == [("tableof", TableParams())]
        options = "--to-file --to-stdout --output-file o --format unsafe-html resources "
        options += "--headers a --sort-by b --filter-by c d"
        result, shown = self.invoke(*options.split())
        assert shown.calls[0][1] == TableParams(
            "resources", True, True, "o", "unsafe-html", ("a",), ("b",), (("c", "d"),)
        )

    def test_wrong_format_and_missing_command(self) -> None:
        assert self.invoke("-f", "pdf", "resources")[0].exit_code == 2
        assert self.invoke("-tf")[0].exit_code == 2

    def test_every_parameter_has_an_option(self) -> None:
        assert isinstance(COMMAND, click.Group)
        commands: list[click.Command] = [COMMAND, *COMMAND.commands.values()]
        names = {parameter.name for command in commands for parameter in command.params}
        assert names == {field.name for field in fields(TableParams)} - {"kind"}

    def test_help_keeps_headers_free(self) -> None:
        result, _ = self.invoke("resources", "--help")
        assert "-h, --headers <key>" in result.output
