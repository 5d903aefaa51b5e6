"""Parameters of plugins: from YAML or the command line to a frozen dataclass, or a ConfigError."""

from dataclasses import MISSING, dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.core.errors import ConfigError
from perun.plugin.params import FreeParams, from_mapping, nearest, param, selector, specs, to_mapping


@dataclass(frozen=True)
class Params:
    warm_up: int = param(3, short="-w", minimum=0, help="Executions before.")
    factor: float = param(1.5, minimum=0.5, help="A factor.")
    method: str = param("mean", choices=("mean", "median"), help="How.")
    title: str = param("", long="--heading", help="Text.")
    quick: bool = param(False, help="Hurry.")
    keys: tuple[str, ...] = param((), help="Keys.")
    rules: tuple[tuple[str, str], ...] = param((), help="Pairs.")
    levels: tuple[str, ...] = param((), choices=("low", "high"), help="Levels.")
    every: tuple[tuple[str, int], ...] = param((), pair=("func", "sample"), help="Pairs with names.")


def make(**values: Any) -> Params:
    return from_mapping(Params, values, "here")


def test_defaults() -> None:
    assert make() == Params()
    assert from_mapping(Params, None, "here") == Params()


def test_a_dash_and_an_underscore_are_the_same() -> None:
    assert from_mapping(Params, {"warm-up": 5}, "here") == make(warm_up=5)
    with pytest.raises(ConfigError, match="given twice"):
        from_mapping(Params, {"warm-up": 5, "warm_up": 6}, "here")


def test_an_unknown_key_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"here: unknown parameter 'warmup'") as caught:
        from_mapping(Params, {"warmup": 1}, "here")
    assert "'warm_up'" in caught.value.hint


@pytest.mark.parametrize(("name", "value", "expected"), [
    ("warm_up", "7", 7),
    ("warm_up", 7.0, 7),
    ("factor", 2, 2.0),
    ("factor", "0.75", 0.75),
    ("title", 12, "12"),
    ("keys", "one", ("one",)),
    ("keys", ["one", 2], ("one", "2")),
    ("rules", [["a", 1], ("b", "c")], (("a", "1"), ("b", "c"))),
    ("levels", ["low", "high"], ("low", "high")),
    ("every", [{"func": "f", "sample": 2}, {"sample": "3", "func": "g"}], (("f", 2), ("g", 3))),
    ("every", [["f", "2"], ("g", 3)], (("f", 2), ("g", 3))),
    ("every", {"f": 2, "sample": 3}, (("f", 2), ("sample", 3))),
    ("every", [], ()),
    ("quick", True, True),
])  # fmt: skip
def test_values_are_converted(name: str, value: object, expected: object) -> None:
    made = getattr(make(**{name: value}), name)
    assert made == expected
    assert type(made) is type(expected)


@pytest.mark.parametrize(("name", "value", "message"), [
    ("warm_up", 1.5, "a whole number"),
    ("warm_up", True, "a whole number"),
    ("warm_up", None, "a whole number"),
    ("warm_up", float("inf"), "a whole number"),
    ("warm_up", float("nan"), "a whole number"),
    ("warm_up", b"12", "a whole number"),
    ("warm_up", -1, "at least 0"),
    ("factor", "much", "a number"),
    ("factor", float("nan"), "a number"),
    ("factor", 10**400, "a number"),
    ("factor", 0.4, "at least 0.5"),
    ("method", "mode", "one of mean, median"),
    ("title", None, "text"),
    ("title", True, "text"),
    ("title", ["a"], "text"),
    ("quick", "yes", "true or false"),
    ("quick", 1, "true or false"),
    ("keys", {"a": 1}, "text"),
    ("keys", [["a"]], "text"),
    ("rules", "ab", "a mapping, or a list of pairs"),
    ("rules", ["ab"], "a mapping, or a list of pairs"),
    ("rules", [["a", "b", "c"]], "a mapping, or a list of pairs"),
    ("rules", [["a", None]], "text"),
    ("rules", [{"a": "b", "c": "d"}], "a mapping, or a list of pairs"),
    ("every", [{"func": "f"}], "a mapping, or a list of pairs or of mappings with the keys func and sample"),
    ("every", [{"func": "f", "sample": 2, "x": 1}], "a mapping, or a list of pairs or of mappings"),
    ("every", [["f", "often"]], "a whole number"),
    ("every", [["f", True]], "a whole number"),
    ("every", [[None, 1]], "text"),
    ("levels", ["low", "middle"], "one of low, high"),
])  # fmt: skip
def test_wrong_values_are_refused_with_their_name(name: str, value: object, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make(**{name: value})
    assert caught.value.message.startswith(f"here: {name} must be {message}")


@pytest.mark.parametrize("values", [[], "text", 3, True])
def test_what_is_no_mapping_is_refused(values: Any) -> None:
    with pytest.raises(ConfigError, match="must be a mapping"):
        from_mapping(Params, values, "here")
    with pytest.raises(ConfigError, match="must be a mapping"):
        from_mapping(FreeParams, values, "here")


def test_a_parameter_without_default_must_be_given() -> None:
    @dataclass(frozen=True)
    class Needs:
        of: str = param(MISSING, help="The key that is drawn.")

    with pytest.raises(ConfigError, match="the parameter of is missing"):
        from_mapping(Needs, {}, "here")
    assert from_mapping(Needs, {"of": "amount"}, "here") == Needs("amount")


def test_what_the_dataclass_refuses_is_an_error_of_the_configuration() -> None:
    @dataclass(frozen=True)
    class Interval:
        low: int = param(0, help="From.")
        high: int = param(10, help="To.")

        def __post_init__(self) -> None:
            if self.low > self.high:
                raise ValueError("low must not be above high")

    with pytest.raises(ConfigError, match="here: low must not be above high"):
        from_mapping(Interval, {"low": 11}, "here")


def test_specs_give_flags_defaults_and_types() -> None:
    found = {spec.name: spec for spec in specs(Params)}
    assert list(found)[:2] == ["warm_up", "factor"]
    assert found["warm_up"].flags == ["-w", "--warm-up"]
    assert found["title"].flags == ["--heading"]
    assert (found["warm_up"].type, found["warm_up"].default) == (int, 3)


def test_specs_call_the_factory_of_a_default() -> None:
    @dataclass(frozen=True)
    class Made:
        keys: tuple[str, ...] = field(default_factory=lambda: ("a", "b"))

    assert [spec.default for spec in specs(Made)] == [("a", "b")]
    assert from_mapping(Made, {}, "here").keys == ("a", "b")


@dataclass(frozen=True)
class Modes:
    mode: str = param("fast", commands={"fast": "Quickly.", "exact": "Slowly."}, help="How.")
    size: int = param(0, minimum=1, modes={"exact": {"short": "-x", "default": 5}}, help="How many.")
    seed: int | None = param(None, modes=("fast", "exact"), help="Begin with.")
    of: str = param("", alias="--of-key", help="What.")


def test_parameters_belong_to_modes() -> None:
    mode, size, seed, of = specs(Modes)
    chosen = selector(Modes)
    assert chosen is not None and chosen.name == mode.name == "mode"
    assert selector(Params) is None
    assert size.in_mode("fast") is None
    exact = size.in_mode("exact")
    assert exact is not None
    assert (exact.flags, exact.default, exact.info.help) == (["-x", "--size"], 5, "How many.")
    assert seed.in_mode("fast") == seed.in_mode("exact") == seed
    assert of.in_mode("fast") is None
    assert of.flags == ["--of", "--of-key"]


def test_a_number_that_is_not_given_has_a_default_that_is_none() -> None:
    _, size, seed, of = specs(Modes)
    assert [one.has_default for one in (size, seed, of)] == [False, False, True]
    assert seed.type is int
    assert from_mapping(Modes, {"size": 0, "seed": None}, "here") == Modes()
    assert from_mapping(Modes, {"seed": "3"}, "here").seed == 3
    assert to_mapping(Modes())["seed"] is None
    for wrong in ({"size": -1}, {"seed": "x"}, {"size": None}):
        with pytest.raises(ConfigError):
            from_mapping(Modes, wrong, "here")


def test_free_params_take_all() -> None:
    made = from_mapping(FreeParams, {"some-thing": {"deep": [1]}, "other": None}, "here")
    assert made == FreeParams({"some_thing": {"deep": [1]}, "other": None})
    assert list(specs(FreeParams)) == []


def test_to_mapping_is_what_from_mapping_takes() -> None:
    made = make(warm_up=9, keys=["k"])
    assert from_mapping(Params, to_mapping(made), "here") == made
    assert to_mapping(FreeParams()) == {}
    made = make(every={"f": 2}, rules={"a": "b"})
    assert to_mapping(made)["every"] == [{"func": "f", "sample": 2}]
    assert to_mapping(made)["rules"] == [["a", "b"]]
    assert from_mapping(Params, to_mapping(made), "here") == made
    assert to_mapping(FreeParams({"a": 1})) == {"a": 1}


def test_nearest_lists_all_where_nothing_is_near() -> None:
    assert nearest("xyz", ["beta", "alpha"]) == "known are: alpha, beta"
    assert nearest("xyz", []) == "none are known"
    many = nearest("xyz", [f"lib{number}.so" for number in range(500)])
    assert many.startswith("known are 500, the nearest of which are: ") and many.count("lib") == 10
    assert nearest("alpah", ["beta", "alpha"]) == "did you mean 'alpha'?"


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.dates()
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner),
    max_leaves=6,
)
names = st.sampled_from([spec.name for spec in specs(Params)] + ["warm-up"]) | st.text() | st.integers()


@given(st.dictionaries(names, values) | values)
def test_anything_gives_parameters_or_a_config_error(given_values: Any) -> None:
    try:
        made = from_mapping(Params, given_values, "here")
    except ConfigError as problem:
        assert problem.message.startswith("here: ")
        return
    assert made.warm_up >= 0
    assert made.factor >= 0.5
    assert made.method in ("mean", "median")
    assert from_mapping(Params, to_mapping(made), "here") == made


@given(st.integers(0, 10**9), st.floats(0.5, 1e300), st.text(), st.booleans(), st.lists(st.text()))
def test_right_values_survive(warm_up: int, factor: float, title: str, quick: bool, keys: list[str]) -> None:
    made = make(warm_up=warm_up, factor=factor, title=title, quick=quick, keys=keys)
    assert made == Params(warm_up, factor, "mean", title, quick, tuple(keys))
