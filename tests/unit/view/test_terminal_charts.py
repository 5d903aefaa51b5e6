"""Charts drawn as text."""

import io
from typing import Any

import pytest

from perun.plugin.api import ViewContext
from perun.profile.factory import Profile
from perun.view._common.screen import Screen, width_of
from perun.view.bars import BarsView
from perun.view.boxplot import BoxplotView
from perun.view.flow import FlowView
from perun.view.histogram import HistogramView
from perun.view.scatter import ScatterView

VIEWS: list[tuple[Any, dict[str, Any]]] = [
    (BarsView(), {"of": "amount"}),
    (BarsView(), {"of": "amount", "per": "structure-unit-size", "by": "uid", "grouped": True}),
    (FlowView(), {"of": "amount", "through": "structure-unit-size", "by": "uid"}),
    (FlowView(), {"of": "amount", "through": "uid", "by": "subtype", "stacked": True}),
    (ScatterView(), {}),
    (BoxplotView(), {"per": "subtype", "by": "uid"}),
    (HistogramView(), {"by": "type"}),
]


def drawn(view: Any, profile: Profile, ctx: ViewContext | None = None, **options: Any) -> str:
    out = io.StringIO()
    view.render(profile, view.Params(**options, terminal=True), out, ctx or ViewContext())
    return out.getvalue()


def test_stacked_bars(profile_of: Any) -> None:
    rows = [
        {"uid": uid, "subtype": kind, "amount": n}
        for uid, kind, n in (("f", "a", 4), ("f", "b", 2), ("g", "b", 3))
    ]
    assert drawn(BarsView(), profile_of(rows), of="amount", per="uid", by="subtype") == (
        "Time of ./app -v in.txt per uid: b, a\n"
        "mixed profile of ./app -v in.txt by the collector trace; 3 resources\n"
        "\n"
        "time [s] per uid\n"
        f"f │{'▓' * 22}{'█' * 43} 6 µs\n"
        f"g │{'█' * 32} 3 µs\n"
        "\n"
        "subtype\n"
        "█ b\n"
        "▓ a\n"
    ).replace(f"{'▓' * 22}{'█' * 43}", f"{'█' * 22}{'▓' * 43}")


def test_grouped_bars_have_a_line_each(profile_of: Any) -> None:
    rows = [{"uid": uid, "subtype": "s", "amount": n} for uid, n in (("f", 4), ("g", 2))]
    lines = drawn(
        BarsView(), profile_of(rows), of="amount", per="subtype", by="uid", grouped=True
    ).splitlines()
    assert lines[4:6] == [f"s │{'█' * 65} 4 µs", f"  │{'▓' * 32} 2 µs"]


def test_negative_bars_go_to_the_left(profile_of: Any) -> None:
    rows = [{"uid": uid, "amount": n} for uid, n in (("f", 2), ("g", -2))]
    lines = drawn(BarsView(), profile_of(rows), of="amount", per="uid").splitlines()
    assert lines[4:6] == [f"f │{' ' * 32}{'█' * 33} 2 µs", f"g │{'█' * 32} -2 µs"]


def test_a_line(profile_of: Any) -> None:
    rows = [{"uid": "f", "amount": 1, "structure-unit-size": n} for n in range(11)]
    lines = drawn(
        FlowView(), profile_of(rows), of="amount", through="structure-unit-size", by="uid"
    ).splitlines()
    assert lines[0] == "Accumulated time of ./app -v in.txt per size"
    picture = lines[4:24]
    columns = [min(place for place, sign in enumerate(row) if sign > "⠀") for row in picture]
    assert columns == sorted(columns, reverse=True)
    assert columns[0] - columns[-1] > 60
    assert lines[25].split() == ["0", "2", "4", "6", "8", "10"]
    assert lines[-1] == "⣿ f"


def test_series_are_told_apart_by_signs_or_colours(profile_of: Any) -> None:
    rows = [{"uid": uid, "amount": n, "structure-unit-size": n} for uid in "fg" for n in range(5)]
    plain = drawn(ScatterView(), profile_of(rows))
    assert "● f" in plain and "▲ g" in plain
    assert "\x1b" not in plain
    coloured = drawn(ScatterView(), profile_of(rows), ViewContext(coloured=True))
    assert "\x1b[38;5;33m⣿\x1b[0m f" in coloured
    assert "\x1b[38;5;166m⣿\x1b[0m g" in coloured


def test_a_regressogram_is_drawn_as_steps(profile_of: Any) -> None:
    rows = [{"uid": "f", "amount": n, "structure-unit-size": n} for n in (0, 10)]
    steps = {
        "uid": "f",
        "model": "regressogram",
        "r_square": 1,
        "x_start": 0,
        "x_end": 10,
        "bucket_stats": [2, 8],
    }
    text = drawn(ScatterView(), profile_of(rows, models=[steps]))
    assert max(line.count("▲") for line in text.splitlines()) > 30


def test_density(profile_of: Any) -> None:
    rows = [{"uid": "f", "amount": n % 100, "structure-unit-size": n % 100} for n in range(10_001)]
    text = drawn(ScatterView(), profile_of(rows))
    assert "density of 10,001 points" in text
    assert "█" in text


@pytest.mark.parametrize("columns", [0, 10, 60, 130, 5000])
@pytest.mark.parametrize(("view", "options"), VIEWS)
def test_it_fits_the_terminal(view: Any, options: dict[str, Any], columns: int, profile_of: Any) -> None:
    rows = [
        {"uid": f"{name}{n % 3}", "subtype": name[:1], "amount": n * 1e5, "structure-unit-size": n}
        for n in range(30)
        for name in ("f", "日本語" * 8)
    ]
    wide = {0: 80, 10: 40, 5000: 160}.get(columns, columns)
    lines = drawn(view, profile_of(rows), ViewContext(columns=columns), **options).splitlines()
    assert max(map(width_of, lines[3:])) <= wide + (20 if "日" in "".join(lines) else 0)
    assert all(line == line.rstrip() for line in lines)


HOSTILE = "\x1b[31m\x07\r\nred\u202e\0"


@pytest.mark.parametrize(("view", "options"), VIEWS)
def test_names_give_no_orders_to_the_terminal(view: Any, options: dict[str, Any], profile_of: Any) -> None:
    rows = [{"uid": HOSTILE, "subtype": HOSTILE, "amount": n, "structure-unit-size": n} for n in range(3)]
    text = drawn(view, profile_of(rows, header={"type": HOSTILE, "cmd": HOSTILE}), **options)
    assert not set(text) & set("\x1b\x07\r\u202e\0")


@pytest.mark.parametrize("values", [[5], [0, 0], [-1, -2], [5e-324], [1.7e308, -1.7e308], [1, float("nan")]])
@pytest.mark.parametrize(("view", "options"), VIEWS)
def test_odd_values(view: Any, options: dict[str, Any], values: list[float], profile_of: Any) -> None:
    rows = [{"uid": "f", "subtype": "s", "amount": one, "structure-unit-size": one} for one in values]
    assert len(drawn(view, profile_of(rows), **options).splitlines()) > 4


class Ascii(io.StringIO):
    """A stream of a terminal that knows ASCII only."""

    encoding = "ascii"


@pytest.mark.parametrize(("view", "options"), VIEWS)
def test_ascii(view: Any, options: dict[str, Any], profile_of: Any) -> None:
    rows = [
        {"uid": uid, "subtype": "ž", "amount": n, "structure-unit-size": n} for uid in "fž" for n in range(9)
    ]
    out = Ascii()
    view.render(profile_of(rows), view.Params(**options, terminal=True), out)
    assert out.getvalue().isascii()


def test_the_first_of_several_charts_is_drawn_and_that_is_told(profile_of: Any) -> None:
    rows = [{"uid": uid, "amount": 1, "structure-unit-size": 1} for uid in "fg"]
    notes: list[str] = []
    text = drawn(ScatterView(), profile_of(rows), ViewContext(note=notes.append))
    assert text.startswith("Time of ./app -v in.txt per size: f, g\n")
    assert notes == ["the terminal shows the first of 3 charts; choose another one with --uid"]


def test_screen() -> None:
    assert Screen.of(io.StringIO(), ViewContext()) == Screen(80, False, True)
    assert Screen.of(Ascii(), ViewContext(columns=100, coloured=True)) == Screen(100, True, False)
    assert width_of("a日e\u0301") == 4
