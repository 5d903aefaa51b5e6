"""The table of keys: complete, explained, and helpful with misspelt names."""

from pathlib import Path

import pytest

from perun.core.config.convert import checked, convert
from perun.core.config.layers import read_file
from perun.core.config.schema import KEYS, SECTIONS, KeyKind, Scope, defaults, find, is_true, nearest, put
from perun.core.errors import ConfigError

DOCUMENTED = [
    "vcs.type", "vcs.url", "general.paging", "general.editor", "format.status", "format.shortlog",
    "format.output_profile_template", "format.sort_profiles_by", "execute.pre_run", "cmds", "args",
    "workloads", "collectors", "postprocessors", "profiles.register_after_run",
    "degradation.collect_before_check", "degradation.log_collect", "degradation.apply",
    "degradation.strategies", "generators.workload", "degradation.cutoff", "degradation.location_filter",
]  # fmt: skip
"""The keys of the manual, chapters 7.3, 8.2.3 and 11.2."""


def one(name: str, value: object) -> dict[str, object]:
    nested: dict[str, object] = {}
    put(nested, name, value)
    return nested


def test_all_documented_keys_are_known() -> None:
    assert set(DOCUMENTED) <= set(KEYS)


@pytest.mark.parametrize("key", KEYS.values(), ids=lambda key: key.name)
def test_every_key_is_explained_and_its_default_and_example_are_right(key) -> None:
    assert len(key.help) > 20 and key.help.endswith(".")
    if key.kind is KeyKind.IGNORED:
        assert key.default is None
        return
    assert key.default is not None and convert(key, key.default, "here") == key.default
    if key.example is not None:
        assert convert(key, key.example, "here")


def test_defaults_are_those_of_the_format_description() -> None:
    values = defaults()
    assert values["general"] == {"editor": "vim", "paging": "only-log"}
    assert values["format"] == {
        "status": "| %collector% | %command% | %value% | %difference% | %age% |",
        "shortlog": "%checksum:6% (%stats%) %value:21% %difference% %desc% %changes%",
        "output_profile_template": "%collector%-%cmd%-%args%-%workload%-%date%",
        "sort_profiles_by": "time",
    }
    assert values["degradation"]["apply"] == "all"
    assert values["degradation"]["strategies"] == [{"method": "average_amount_threshold"}]
    assert [generator["id"] for generator in values["generators"]["workload"]] == [
        "basic_strings", "basic_integers", "basic_files"
    ]  # fmt: skip


@pytest.mark.parametrize("scope", Scope)
def test_every_scope_is_used(scope: Scope) -> None:
    assert any(key.scope is scope for key in KEYS.values())


@pytest.mark.parametrize(("wrong", "right"), [
    ("general.editr", "general.editor"),
    ("degradation.strategeis", "degradation.strategies"),
    ("format.shortlgo", "format.shortlog"),
    ("editor", "general.editor"),
    ("postprocesors", "postprocessors"),
    ("profiles.register", "profiles.register_after_run"),
    ("cmd", "cmds"),
])  # fmt: skip
def test_unknown_key_names_the_nearest(wrong: str, right: str) -> None:
    with pytest.raises(ConfigError, match=wrong) as caught:
        find(wrong)
    assert right in caught.value.hint


def test_a_key_like_no_other_lists_the_sections() -> None:
    assert "vcs" in nearest("qqqq") and "cmds" in nearest("qqqq")


@pytest.mark.parametrize("section", sorted(SECTIONS))
def test_a_section_is_not_a_key(section: str) -> None:
    with pytest.raises(ConfigError, match="section") as caught:
        find(section)
    assert section + "." in caught.value.hint


TRUE = ["true", "True", "TRUE", "1", "yes", "Yes", "YES", "on", "On", "y", "t"]
FALSE = ["false", "False", "FALSE", "0", "no", "No", "NO", "off", "n", "f"]


@pytest.mark.parametrize(("spelling", "meaning"), [(s, True) for s in TRUE] + [(s, False) for s in FALSE])
def test_all_spellings_of_truth_values(tmp_path: Path, spelling: str, meaning: bool) -> None:
    assert is_true(spelling) is meaning
    file = tmp_path / "local.yml"
    for quote in ("", "'", '"'):
        file.write_text(f"profiles:\n  register_after_run: {quote}{spelling}{quote}\n")
        assert read_file(file).get("profiles.register_after_run") is meaning


@pytest.mark.parametrize("value", [True, 1, "yes", False, 0, None, [], {}, "", "2", 2, "maybe", 1.5])
def test_what_is_true(value: object) -> None:
    assert is_true(value) is (value in (True, "yes"))


@pytest.mark.parametrize(("name", "value", "message"), [
    ("general.paging", "sometimes", "always, only-log, only-status, never"),
    ("general.editor", ["vim"], "must be text"),
    ("degradation.apply", "last", "first, all"),
    ("degradation.cutoff", "much", "a number"),
    ("degradation.cutoff", "nan", "a number"),
    ("degradation.location_filter", "(", "regular expression"),
    ("profiles.register_after_run", "2", "true or false"),
    ("format.sort_profiles_by", "size", "realpath"),
    ("format.sort_profiles_by", ["time", "size"], "realpath"),
    ("cmds", {"a": "b"}, "item 1 of cmds"),
    ("cmds", ["a", ["b"]], "item 2 of cmds"),
    ("cmds", ["a", None], "item 2 of cmds is empty"),
    ("collectors", [{"params": {}}], "'name' is missing"),
    ("collectors", [{"name": "time", "parms": {}}], "unknown key 'parms'"),
    ("collectors", [{"name": "time", "params": "x"}], "a mapping of params"),
    ("collectors", [{"name": "time", "params": [{"a": 1}, {"a": 2}]}], "'a' of params is given twice"),
    ("collectors", [7], "name, params"),
    ("degradation.strategies", "aat", "a list of mappings"),
    ("degradation.strategies", [{"type": "mixed"}], "'method' is missing"),
    ("degradation.strategies", [{"method": "aat", "tpye": "mixed"}], "unknown key 'tpye'"),
    ("generators.workload", [{"id": "a"}], "'type' is missing"),
    ("generators.workload", [{"id": "a", "type": "b", "profile_for_each_workload": "x"}], "true or"),
    ("vcs", "git", "vcs is a section"),
    ("degradation.aply", "all", "unknown key 'degradation.aply'"),
    ("nosuch", 1, "unknown key 'nosuch'"),
])  # fmt: skip
def test_wrong_values_are_named(name: str, value: object, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        checked(one(name, value), "conf.yml", "local")
    assert message in str(caught.value) and "conf.yml" in str(caught.value)


@pytest.mark.parametrize(("name", "value", "result"), [
    ("cmds", "./prog", ["./prog"]),
    ("cmds", ("a", "b"), ["a", "b"]),
    ("workloads", [100, 2.5, True], ["100", "2.5", "true"]),
    ("collectors", "time", [{"name": "time", "params": {}}]),
    ("collectors", ["time", {"name": "memory"}], [{"name": n, "params": {}} for n in ("time", "memory")]),
    (
        "postprocessors",
        [{"name": "regression_analysis", "params": [{"method": "full"}, {"steps": 10}]}],
        [{"name": "regression_analysis", "params": {"method": "full", "steps": 10}}],
    ),
    ("collectors", [{"name": "time", "params": None}], [{"name": "time", "params": {}}]),
    ("degradation.cutoff", 5, 5.0),
    ("format.sort_profiles_by", ["time", "stem", "copy"], ["time", "stem", "copy"]),
    ("degradation.my_check", {"threshold": 2, "deep": {"a": [1]}}, {"threshold": 2, "deep": {"a": [1]}}),
    (
        "generators.workload",
        [{"id": 1, "type": "integer", "step": 2, "profile_for_each_workload": "yes"}],
        [{"id": "1", "type": "integer", "step": 2, "profile_for_each_workload": True}],
    ),
])  # fmt: skip
def test_values_get_their_types_and_keep_them(name: str, value: object, result: object) -> None:
    first, _ = checked(one(name, value), "conf.yml", "local")
    assert first == one(name, result)
    assert checked(first, "conf.yml", "local") == (first, ())


def test_old_keys_are_known_and_old_spellings_taken_with_a_warning() -> None:
    rules = [{"method": "bmoe"}]
    values, warnings = checked({"degradation": {"strategy": rules}}, "f", "local")
    assert values == {"degradation": {"strategies": rules}}
    assert len(warnings) == 1 and "degradation.strategies" in warnings[0]
    format_keys = {"sort_profiles_order": "asc", "output_show_template": "x"}
    given = {"profiles": {"overwrite": False}, "format": format_keys}
    assert checked(given, "f", "local") == (given, ())
    assert checked({"degradation": None, "cmds": None, "general": {"editor": None}}, "f", "local") == ({}, ())


@pytest.mark.parametrize("order", [("strategy", "strategies"), ("strategies", "strategy")])
def test_new_spelling_wins_over_the_old_one(order: tuple[str, str]) -> None:
    given = {name: [{"method": name}] for name in order}
    values, warnings = checked({"degradation": given}, "f", "local")
    assert values == {"degradation": {"strategies": [{"method": "strategies"}]}}
    assert warnings


def test_a_repository_cannot_trust_itself() -> None:
    with pytest.raises(ConfigError, match="not allowed in a local") as caught:
        checked({"plugins": {"trusted": ["/"]}}, "f", "local")
    assert "--shared" in caught.value.hint


def test_local_keys_in_the_shared_file_are_reported_and_left_out() -> None:
    values, warnings = checked({"cmds": ["a"], "general": {"editor": "nano"}}, "shared.yml", "shared")
    assert values == {"general": {"editor": "nano"}}
    assert len(warnings) == 1 and "cmds" in warnings[0]


def test_dotted_keys_inside_a_file_are_explained() -> None:
    with pytest.raises(ConfigError, match="not joined by dots") as caught:
        checked({"vcs.type": "git"}, "f", "local")
    assert "inside the section vcs" in caught.value.hint
