"""The hierarchy: who wins, what is gathered, where a value came from, and what goes wrong where."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.core.config.layers import MISSING, Config, load, read_file
from perun.core.errors import ConfigError


class Place:
    """A folder with nested instances `a`, `a/b`, ... and a shared configuration."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.shared_dir = root / "shared"
        self.perun_dirs: list[Path] = []

    def shared(self, text: str) -> None:
        self.shared_dir.mkdir(exist_ok=True)
        (self.shared_dir / "shared.yml").write_text(text)

    def instance(self, text: str | None) -> Path:
        """Add an instance below the last one."""
        above = self.perun_dirs[0].parent if self.perun_dirs else self.root
        folder = above / "sub" / ".perun"
        folder.mkdir(parents=True)
        if text is not None:
            (folder / "local.yml").write_text(text)
        self.perun_dirs.insert(0, folder)
        return folder / "local.yml"

    def load(self) -> Config:
        return load(self.perun_dirs, self.shared_dir)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_without_any_file_the_defaults_hold_and_nothing_is_written(place: Place) -> None:
    place.instance(None)
    config = place.load()
    assert config.get("general.editor") == "vim" and config.get("cmds") == []
    assert config.get("vcs.type") == "git"
    assert config.get("degradation.strategies") == [{"method": "average_amount_threshold"}]
    assert config.get("profiles.overwrite") is None
    assert str(config.origin("general.editor")) == "built-in defaults"
    assert not [path for path in place.root.rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "---\n", "general:\n", "general:\n  # editor: x\n", "~\n"]
)
def test_a_file_without_values_is_an_empty_layer(place: Place, text: str) -> None:
    place.instance(text)
    assert place.load().get("general.editor") == "vim"


def test_the_nearest_wins_and_is_named(place: Place) -> None:
    editor = "general:\n  editor: {}\n"
    config = place.load()
    assert config.get("general.editor") == "vim"
    place.shared(editor.format("shared"))
    assert place.load().get("general.editor") == "shared"
    outer = place.instance(editor.format("outer"))
    assert place.load().get("general.editor") == "outer"
    place.instance("general:\n  paging: never\n")
    config = place.load()
    assert (config.get("general.editor"), config.origin("general.editor").path) == ("outer", outer)
    assert config.origin("general.editor").name == "parent"
    inner = place.instance(editor.format("inner"))
    config = place.load()
    assert (config.get("general.editor"), config.origin("general.editor").path) == ("inner", inner)
    assert config.get("general.paging") == "never"


def test_null_asks_the_next_layer(place: Place) -> None:
    place.instance("general:\n  editor: outer\n")
    place.instance("general:\n  editor:\n")
    assert place.load().get("general.editor") == "outer"


def test_local_only_keys_are_not_inherited(place: Place) -> None:
    place.shared("cmds: [shared]\n")
    place.instance("vcs:\n  url: /outer\ncmds: [outer]\nexecute:\n  pre_run: [make]\n")
    place.instance("general:\n  paging: never\n")
    config = place.load()
    assert config.get("vcs.url") == ".." and config.get("cmds") == config.get("execute.pre_run") == []
    assert config.section("vcs") == {"type": "git", "url": "..", "main_branch": ""}
    assert any("cmds" in warning for warning in config.warnings)


def rules(*methods: str) -> str:
    return "degradation:\n  strategies:\n" + "".join(f"    - method: {method}\n" for method in methods)


def methods(config: Config) -> list[str]:
    assert config.get("degradation.strategies") == config.gather("degradation.strategies")
    return [rule["method"] for rule in config.gather("degradation.strategies")]


def test_gathered_lists_run_from_the_nearest_to_shared(place: Place) -> None:
    place.shared(rules("shared"))
    place.instance(rules("outer"))
    place.instance(rules("inner1", "inner2"))
    config = place.load()
    assert methods(config) == ["inner1", "inner2", "outer", "shared"]
    assert config.origin("degradation.strategies").name == "local"


def test_built_in_rules_stand_for_a_missing_shared_file(place: Place) -> None:
    place.instance(rules("inner"))
    assert methods(place.load()) == ["inner", "average_amount_threshold"]
    place.shared("general:\n  editor: nano\n")
    assert methods(place.load()) == ["inner"]


def test_built_in_rules_hold_where_nobody_sets_any(place: Place) -> None:
    place.shared("general:\n  editor: nano\n")
    place.instance("")
    assert methods(place.load()) == ["average_amount_threshold"]
    place.shared("degradation:\n  strategies: []\n")
    assert methods(place.load()) == []


def test_generators_are_gathered_too(place: Place) -> None:
    place.instance("generators:\n  workload: [{id: gen1, type: integer, profile_for_each_workload: yes}]\n")
    found = place.load().gather("generators.workload")
    assert [one["id"] for one in found] == ["gen1", "basic_strings", "basic_integers", "basic_files"]
    assert found[0]["profile_for_each_workload"] is True


def test_only_lists_are_gathered(place: Place) -> None:
    with pytest.raises(ConfigError, match="does not hold a list"):
        place.load().gather("general.editor")


def test_old_spelling_counts_as_the_new_key(place: Place) -> None:
    file = place.instance("degradation:\n  strategy:\n  - method: bmoe\n")
    config = place.load()
    assert methods(config)[0] == "bmoe"
    assert config.get("degradation.strategy") == config.get("degradation.strategies")
    assert [f"{file}:2:" in warning for warning in config.warnings] == [True]


def test_settings_of_checks_are_merged_key_by_key(place: Place) -> None:
    place.shared("degradation:\n  my_check: {low: 1, high: 9, deep: {a: 1}}\n")
    place.instance("degradation:\n  my_check: {low: 2, deep: {b: 2}}\n  cutoff: 3\n")
    config = place.load()
    wanted = {"low": 2, "high": 9, "deep": {"a": 1, "b": 2}}
    assert config.section("degradation.my_check") == config.get("degradation.my_check") == wanted
    assert config.get("degradation.my_check.low") == 2 and config.get("degradation.my_check.none") is None
    assert config.section("degradation.other") == {}
    section = config.section("degradation")
    assert section["my_check"] == wanted
    assert (section["cutoff"], section["apply"], section["location_filter"]) == (3.0, "all", "")
    assert section["strategies"] == config.gather("degradation.strategies")


def test_a_section_as_key_is_the_whole_section(place: Place) -> None:
    place.instance("format:\n  status: '%type%'\n  sort_profiles_order: asc\n")
    found = place.load().get("format")
    assert found["status"] == "%type%" and found["sort_profiles_by"] == "time"
    assert found["sort_profiles_order"] == "asc"


@pytest.mark.parametrize(
    "key", ["format.statsu", "degradation.nothing", "cmd", "", ".", "a.b.c", "vcs.type.x"]
)
def test_unknown_keys_are_errors_with_a_hint(place: Place, key: str) -> None:
    config = place.load()
    for ask in (config.get, config.gather, config.origin):
        with pytest.raises(ConfigError) as caught:
            ask(key)
        assert caught.value.hint


@pytest.mark.parametrize("name", ["nothing", "cmds", "vcs.type", ""])
def test_unknown_sections_are_errors(place: Place, name: str) -> None:
    with pytest.raises(ConfigError):
        place.load().section(name)


def test_what_is_handed_out_may_be_changed(place: Place) -> None:
    config = place.load()
    config.get("degradation.strategies").clear()
    config.get("generators.workload")[0].clear()
    config.section("degradation")["strategies"].clear()
    assert methods(config) == ["average_amount_threshold"]
    assert load([], place.shared_dir).get("generators.workload")[0]["id"] == "basic_strings"


def test_one_layer_can_be_asked_alone(place: Place) -> None:
    place.instance("general:\n  editor: nano\n")
    config = place.load()
    local, shared = config.layer("local"), config.layer("shared")
    assert local is not None and local.get("general.editor") == "nano"
    assert local.get("general.paging") is MISSING
    assert shared is not None and shared.get("general.editor") is MISSING and shared.origin == "missing"
    assert load([], place.shared_dir).layer("local") is None


@pytest.mark.parametrize(("text", "place_of_error", "hint"), [
    ("general:\n  editr: x\n", ":2: unknown key 'general.editr'", "general.editor"),
    ("general:\n  paging: x\n", ":2: general.paging must be one of", ""),
    ("# one\n\ncmds:\n  - a\n  - {b: c}\n", ":5: item 2 of cmds", "quotes"),
    ("degradation:\n  strategies:\n    - method: a\n    - type: x\n", ":4: degradation.strategies", ""),
    ("degradation:\n  strategies:\n    - method: a\n      tpye: x\n", ":4: degradation.strat", "type"),
    ("collectors:\n  - name: time\n    param: {}\n", ":3: collectors: unknown key 'param'", "params"),
    ("profiles:\n  register_after_run:\n    - 1\n", ":2: profiles.register_after_run must be true", ""),
    ("- a\n", ":1: a configuration holds sections", ""),
    ("text\n", ":1: a configuration holds sections", ""),
    ("general: vim\n", ":1: general is a section", ""),
    ("general:\n\teditor: vim\n", ":2:1: not YAML", "tabs"),
    ("cmds: [a]\ncmds: [b]\n", ":2:1: the key 'cmds'", "line 1"),
    ("plugins:\n  trusted: [/]\n", ":2: plugins.trusted is not allowed", "--shared"),
])  # fmt: skip
def test_errors_name_file_line_and_key(place: Place, text: str, place_of_error: str, hint: str) -> None:
    file = place.instance(text)
    with pytest.raises(ConfigError) as caught:
        place.load()
    assert f"{file}{place_of_error}" in str(caught.value) and hint in caught.value.hint


def test_workloads_stay_as_they_are_written(place: Place) -> None:
    place.instance("workloads: [HEAD~1, 1.0, 010, 1e3, ~, yes, '', << \"Hello world!\", 0x10, 2020-01-01]\n")
    assert place.load().get("workloads") == [
        "HEAD~1", "1.0", "010", "1e3", "~", "yes", "", '<< "Hello world!"', "0x10", "2020-01-01",
    ]  # fmt: skip


def test_the_job_matrix_of_the_manual(place: Place) -> None:
    place.instance(
        "cmds:\n  - perun\nargs:\n  - log\n  - log --short\nworkloads:\n  - HEAD\n  - HEAD~1\n"
        "collectors:\n  - name: time\npostprocessors:\n  - name: normalizer\n  - name: regression_analysis\n"
        "    params:\n      - method: full\n      - steps: 10\n"
    )
    config = place.load()
    assert config.get("args") == ["log", "log --short"]
    assert config.get("collectors") == [{"name": "time", "params": {}}]
    assert config.get("postprocessors") == [
        {"name": "normalizer", "params": {}},
        {"name": "regression_analysis", "params": {"method": "full", "steps": 10}},
    ]


def test_a_file_of_release_0_28_is_read(place: Place) -> None:
    place.instance(
        "vcs:\n  type: git\n  url: /project\n\n## comment\n# cmds:\n#   - echo\n\n"
        "collectors:\n- name: time\n  params:\n    warmup: 3\n    repeat: 10\n\n"
        "profiles:\n  register_after_run: true\n  overwrite: false\n\n"
        "format:\n  sort_profiles_by: [time, stem, copy]\n  sort_profiles_order: asc\n"
        "  output_profile_template: '%collector%-of-%cmd%-%workload%-%date%'\n\n"
        "degradation:\n  collect_before_check: true\n  log_collect: true\n#   apply: first\n"
        "  strategy:\n  - method: average_amount_threshold\n\nexecute:\n  pre_run:\n  - make\n"
    )
    config = place.load()
    assert config.get("collectors") == [{"name": "time", "params": {"warmup": 3, "repeat": 10}}]
    assert config.get("format.sort_profiles_by") == ["time", "stem", "copy"]
    assert config.get("execute.pre_run") == ["make"]
    assert config.get("degradation.collect_before_check") is True and len(config.warnings) == 1


@given(st.text())
def test_random_files_are_values_or_a_config_error(tmp_path_factory, text: str) -> None:
    folder = tmp_path_factory.mktemp("x")
    (folder / "local.yml").write_text(text, encoding="utf-8", newline="")
    try:
        config = load([folder], folder)
    except ConfigError as problem:
        assert str(folder / "local.yml") in str(problem)
    else:
        assert config.get("general.editor")


NAMES = st.sampled_from(
    ["vcs", "type", "url", "general", "editor", "paging", "cmds", "collectors", "name", "params",
     "degradation", "strategy", "strategies", "method", "cutoff", "apply", "generators", "workload", "id",
     "x", "plugins", "trusted"]
)  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(NAMES, VALUES, max_size=4))
def test_random_values_are_typed_or_a_config_error(tmp_path_factory, values: dict[str, object]) -> None:
    from perun.core.config import templates

    folder = tmp_path_factory.mktemp("x")
    for name in ("local.yml", "shared.yml"):
        (folder / name).write_text(templates.inline(values), encoding="utf-8")
        try:
            layer = read_file(folder / name)
        except ConfigError as problem:
            assert name in str(problem)
        else:
            assert isinstance(layer.values, dict)


def test_importing_and_reading_from_the_cache_needs_no_yaml_parser(place: Place) -> None:
    """`perun status` has no time for it."""
    place.instance("general:\n  editor: nano\n")
    folder, shared = str(place.perun_dirs[0]), str(place.shared_dir)
    heavy = ("ruamel.yaml", "difflib", "textwrap", "dataclasses")
    script = (
        "import sys, pathlib\nfrom perun.core.config import load, refresh_cache\n"
        f"folder, shared = pathlib.Path({folder!r}), pathlib.Path({shared!r})\n"
        "cache = folder / 'cache' / 'config.json'\nconfig = load([folder], shared, cache)\n"
        "print(config.get('general.editor'), config.origin('general.editor').origin)\n"
        f"print([name for name in {heavy} if name in sys.modules])\n"
        "refresh_cache(config, cache)\n"
    )
    runs = [subprocess.run([sys.executable, "-c", script], capture_output=True, text=True) for _ in range(2)]
    assert [run.stderr for run in runs] == ["", ""] and "ruamel.yaml" in runs[0].stdout
    assert runs[1].stdout.splitlines() == ["nano cache", "[]"]
