"""What the scatter plot shows: points of each uid, and all kinds of models as lines."""

import math
from typing import Any

import numpy as np
import pytest

from perun.core.errors import UsageError
from perun.view._common import Chart
from perun.view.scatter import MAX_POINTS, ScatterParams, charts

ROWS: list[dict[str, Any]] = [
    {"uid": uid, "amount": 2 * size + (uid == "g"), "structure-unit-size": size}
    for uid in "fg"
    for size in range(1, 9)
]
COEFFICIENTS = [{"name": "b0", "value": 1.0}, {"name": "b1", "value": 2.0}, {"name": "b2", "value": 3.0}]


def model(kind: str, uid: str = "f", **fields: Any) -> dict[str, Any]:
    return {"uid": uid, "model": kind, "method": kind, "r_square": 0.5, "x_start": 1, "x_end": 8, **fields}


@pytest.fixture
def shown(profile_of: Any) -> Any:
    def make(rows: list[dict[str, Any]] = ROWS, models: Any = (), **options: Any) -> tuple[Chart, ...]:
        return charts(profile_of(rows, models=list(models)), ScatterParams(**options))

    return make


def test_all_uids_and_each(shown: Any) -> None:
    everything, f, g = shown()
    assert [one.name for one in (everything, f, g)] == ["all 2 uids", "f", "g"]
    assert everything.title == "Time of ./app -v in.txt per size: f, g"
    assert [(one.name, one.kind, one.note) for one in everything.series] == [
        ("f", "points", "8 points"),
        ("g", "points", "8 points"),
    ]
    assert g.title == "Time of ./app -v in.txt per size: g"
    assert g.series[0].y.tolist() == [3, 5, 7, 9, 11, 13, 15, 17]
    assert (g.x.label, g.y.label) == ("size", "time [s]")


def test_an_unknown_source_is_no_part_of_a_name(shown: Any) -> None:
    rows = [
        {"uid": f"unreachable:{name}:0", "subtype": subtype, "amount": 1, "structure-unit-size": 2}
        for name, subtype in (("f", "malloc"), ("f", "calloc"), ("g", "malloc"))
    ]
    names = [one.name for one in shown(rows)]
    assert names == ["all 3 uids", "f [malloc]", "f [calloc]", "g"]
    for spelled in ("unreachable:g:0", "g"):
        assert [one.name for one in shown(rows, uid=(spelled,))] == ["g"]


def test_without_an_x_axis_it_asks_for_one(shown: Any) -> None:
    with pytest.raises(UsageError, match="nothing to show the values along: none of struct") as caught:
        shown([{"uid": "f", "amount": 1, "calls": 3}])
    assert caught.value.hint == "name a key with --per; keys with numbers: amount, calls"


def test_one_uid_is_one_chart(shown: Any) -> None:
    (chart,) = shown(uid=("g",))
    assert chart.name == "g"
    (chart,) = shown([{"amount": 1, "structure-unit-size": 2}])
    assert (chart.name, chart.title) == ("(no uid)", "Time of ./app -v in.txt per size")


@pytest.mark.parametrize(("kind", "at_eight", "formula"), [
    ("constant", 1, "y = 1"),
    ("linear", 17, "y = 1 + 2 x"),
    ("logarithmic", 1 + 2 * np.log(8), "y = 1 + 2 ln x"),
    ("quadratic", 1 + 16 + 192, "y = 1 + 2 x + 3 x²"),
    ("power", 64, "y = 1 x^2"),
    ("exponential", 256, "y = 1 · 2^x"),
])  # fmt: skip
def test_functions(shown: Any, kind: str, at_eight: float, formula: str) -> None:
    (chart,) = shown(uid=("f",), models=[model(kind, coeffs=COEFFICIENTS)])
    _, line = chart.series
    assert (line.kind, line.name, line.note) == ("line", f"{kind}, R² 0.500", formula)
    assert (line.x[0], line.x[-1], line.y[-1]) == (1, 8, pytest.approx(at_eight))


def test_regressogram_is_a_step_function(shown: Any) -> None:
    (chart,) = shown(uid=("f",), models=[model("regressogram", bucket_stats=[3, 7])])
    _, line = chart.series
    assert (line.kind, line.x.tolist(), line.y.tolist()) == ("step", [1, 4.5, 8], [3, 7, 7])


def test_a_moving_average_goes_through_its_points(shown: Any) -> None:
    rows = [{"uid": "f", "amount": 1, "structure-unit-size": size} for size in (8, 1, 1, 2)]
    (chart,) = shown(rows, [model("moving_average", bucket_stats=[1, None, 3, 4])])
    _, line = chart.series
    assert (line.name, line.kind) == ("moving average, R² 0.500", "line")
    assert (line.x.tolist(), line.y.tolist()) == ([1, 2, 8], [1, 3, 4])


def test_a_kernel_estimate_is_at_each_different_x(shown: Any) -> None:
    rows = [{"uid": "f", "amount": 1, "structure-unit-size": size} for size in (8, 1, 1, 2)]
    (chart,) = shown(rows, [model("kernel_regression", kernel_stats=[1, 3, 4])])
    assert chart.series[1].x.tolist() == [1, 2, 8]
    (chart,) = shown(rows, [model("kernel_regression", kernel_stats=[1, 2, 3, 4, 5, 6, 7, 8])])
    assert chart.series[1].x.tolist() == [1, 2, 3, 4, 5, 6, 7, 8]


def test_the_best_model_first_and_alone_among_all_uids(shown: Any) -> None:
    models = [
        model("linear", coeffs=COEFFICIENTS, r_square=0.9),
        model("constant", coeffs=COEFFICIENTS, r_square=0.1),
        model("quadratic", "g", coeffs=COEFFICIENTS),
    ]
    everything, f, _ = shown(models=models)
    assert [one.name for one in f.series] == ["measured", "linear, R² 0.900", "constant, R² 0.100"]
    assert [one.dashed for one in f.series] == [False, False, True]
    names = ["f", "f: linear, R² 0.900", "g", "g: quadratic, R² 0.500"]
    assert [one.name for one in everything.series] == names
    assert [one.colour for one in everything.series] == [0, 0, 1, 1]


def test_pieces_tell_their_intervals(shown: Any) -> None:
    pieces = [
        model("linear", coeffs=COEFFICIENTS, x_start=start, x_end=start + 4, r_square=0.5 - start / 10)
        for start in (0, 4)
    ]
    (chart,) = shown(uid=("f",), models=pieces)
    assert [one.name for one in chart.series[1:]] == [
        "linear, R² 0.500, x 0 to 4",
        "linear, R² 0.100, x 4 to 8",
    ]


def test_models_of_other_keys_are_not_drawn(shown: Any) -> None:
    models = [
        model("linear", coeffs=COEFFICIENTS, of_key="exclusive", per_key="structure-unit-size"),
        model("linear", coeffs=COEFFICIENTS, of_key="amount", per_key="order"),
        model("linear", coeffs=COEFFICIENTS, of_key="amount", per_key="structure-unit-size"),
    ]
    (chart,) = shown(uid=("f",), models=models)
    assert len(chart.series) == 2
    assert chart.notes[1:] == ("Not drawn: 2 models of other keys.",)


@pytest.mark.parametrize(("broken", "message"), [
    (model("cubic", coeffs=COEFFICIENTS), "Not drawn: a model 'cubic' of 'f' has no curve."),
    (model("linear", coeffs=[]), "Not drawn: a model 'linear' of 'f' is not complete: it has no b0, b1."),
    (model("regressogram", bucket_stats=[]),
     "Not drawn: the model 'regressogram' of 'f' has no finite point to draw."),
    (model("moving_average", bucket_stats=[None]),
     "Not drawn: the model 'moving_average' of 'f' has no finite point to draw."),
])  # fmt: skip
def test_a_model_that_cannot_be_drawn_is_told(shown: Any, broken: dict[str, Any], message: str) -> None:
    (chart,) = shown(uid=("f",), models=[broken])
    assert len(chart.series) == 1
    assert chart.notes[1:] == (message,)


def test_very_many_points_are_their_density(shown: Any) -> None:
    count = MAX_POINTS + 1
    rows = [{"uid": f"f{n % 2}", "amount": n % 97, "structure-unit-size": n % 89} for n in range(count)]
    everything, one, _ = shown(rows)
    assert everything.density is not None
    assert everything.density.counts.sum() == count
    assert (everything.density.x, everything.density.y) == ((0, 88), (0, 96))
    assert everything.title == "Time of ./app -v in.txt per size: f0, f1 (density of 10,001 points)"
    assert one.density is None
    assert len(one.series[0].x) == 5001


@pytest.mark.parametrize("value", [0, 5, -3.5, 5e-324, 1.79e308])
def test_density_of_a_single_value(shown: Any, value: float) -> None:
    rows = [{"uid": "f", "amount": value, "structure-unit-size": value}] * (MAX_POINTS + 1)
    (chart,) = shown(rows)
    assert chart.density is not None
    assert chart.density.counts.sum() == len(rows)
    assert chart.density.x[0] < chart.density.x[1]


def test_many_uids_share_the_last_colour(shown: Any) -> None:
    rows = [{"uid": f"f{n}", "amount": n, "structure-unit-size": n} for n in range(20)]
    everything, *each = shown(rows)
    assert len(each) == 20
    assert len(everything.series) == 16
    assert (everything.series[-1].name, everything.series[-1].note) == ("(5 others)", "5 points")


def test_the_clocks_of_runs_are_series_of_their_own(shown: Any) -> None:
    rows = [
        {"uid": "./app", "subtype": clock, "amount": n + run, "order": run}
        for run in (1, 2)
        for n, clock in enumerate(("real", "user"))
    ]
    models = [
        model("linear", "./app [user]", coeffs=COEFFICIENTS),
        model("constant", "./app", coeffs=COEFFICIENTS),
    ]
    for one in models:
        one["per_key"] = "order"
    everything, real, user = shown(rows, models)
    assert everything.title == "Time of ./app -v in.txt per run: real, user"
    assert (everything.legend, everything.name) == ("clock", "all 2 clocks")
    assert [one.name for one in real.series] == ["measured"]
    assert [one.name for one in user.series] == ["measured", "linear, R² 0.500"]


def test_a_logarithmic_density(shown: Any) -> None:
    rows = [
        {"uid": "f", "amount": 10.0 ** (n % 6), "structure-unit-size": 10.0 ** (n % 4)}
        for n in range(MAX_POINTS + 2)
    ]
    (chart,) = shown(rows)
    assert (chart.x.log, chart.y.log) == (False, True)
    (chart,) = shown(rows, x_scale="log")
    assert chart.density is not None
    assert (chart.density.x, chart.density.y) == ((1, 1000), (1, 100_000))
    rows_taken, columns_taken = (set(found.tolist()) for found in chart.density.counts.nonzero())
    assert (rows_taken, columns_taken) == ({0, 24, 48, 72, 96, 119}, {0, 66, 133, 199})


@pytest.mark.parametrize(("options", "message", "hint"), [
    ({"of": "amonut"}, "--of: no resource has a key 'amonut'", "'amount'"),
    ({"per": "order"}, "--per: no resource has a key 'order'", "known are: amount"),
    ({"per": "uid"}, "no resource has a number in 'uid'", "keys with numbers"),
    ({"uid": ("h",)}, "--uid: no resource has the uid 'h'", "known are: f, g"),
])  # fmt: skip
def test_what_is_refused(shown: Any, options: dict[str, Any], message: str, hint: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        shown(**options)
    assert hint in caught.value.hint


def test_points_need_both_numbers(shown: Any) -> None:
    with pytest.raises(UsageError, match="no resource has a number in both 'amount' and 'order'"):
        shown([{"uid": "f", "amount": 1}, {"uid": "f", "order": 1}], per="order")


@pytest.mark.parametrize(
    "odd", [math.nan, math.inf, -math.inf, 10**400, 1e308, None, [1], "x"], ids=lambda odd: str(odd)[:9]
)
@pytest.mark.parametrize("field", ["r_square", "x_start", "x_end", "coeffs"])
@pytest.mark.parametrize("kind", ["linear", "power", "regressogram"])
def test_odd_numbers_in_models_are_drawn_or_told(shown: Any, kind: str, field: str, odd: Any) -> None:
    value = odd if field == "coeffs" else 1.0
    coefficients = [{"name": name, "value": value} for name in ("b0", "b1", "b2")]
    parts = {"bucket_stats": [1, odd]} if kind == "regressogram" else {"coeffs": coefficients}
    broken = model(kind, **{**parts, **({} if field == "coeffs" else {field: odd})})
    (chart,) = shown(uid=("f",), models=[broken, broken])
    for line in chart.series:
        assert np.isfinite(line.x).all()
        assert not np.isinf(line.y).any()
