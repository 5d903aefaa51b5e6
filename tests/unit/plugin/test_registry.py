"""The registry: where plugins are found, by which names, and what a broken one does to the others."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

import perun
from perun.core.errors import PluginError
from perun.plugin.loading import FAMILIES, METHODS, short_string
from perun.plugin.registry import GROUPS, Registry

Write = Callable[[str, str], Path]
Install = Callable[[str, str, str], None]
NATIVE = dedent("""
    from dataclasses import dataclass
    from perun.plugin.params import param

    @dataclass(frozen=True)
    class Params:
        size: int = param(1, help="A size.")

    class Plugin:
        name = "{name}"
        short = "SX"
        help = "Does {name}."
        Params = Params

        def {method}(self, *arguments):
            return ("{name}", arguments)

    PLUGIN = Plugin
""")


def native(family: str, name: str) -> str:
    return NATIVE.format(name=name, method=METHODS[family])


def failure(plugins: Path, family: str, name: str) -> PluginError:
    with pytest.raises(PluginError) as caught:
        Registry([plugins]).get(family, name)
    assert "\n" not in caught.value.message
    assert caught.value.hint
    return caught.value


def test_every_family_has_a_group_of_entry_points() -> None:
    assert set(GROUPS) == set(FAMILIES)
    assert set(METHODS) == set(FAMILIES) - {"vcs"}


@pytest.mark.parametrize("family", sorted(METHODS))
def test_a_native_plugin_in_a_folder(family: str, plugins: Path, write: Write) -> None:
    write(f"{family}/my_thing.py", native(family, "my_thing"))
    write(f"{family}/other/__init__.py", native(family, "other"))
    write(f"{family}/_private.py", "raise RuntimeError")
    write(f"{family}/notes.txt", "no module")
    (plugins / family / "empty").mkdir()
    registry = Registry([plugins])
    names = set(registry.names(family)) - set(Registry().names(family))
    dashed = family in ("collect", "exporter", "importer", "postprocess", "view")
    assert names == {"my-thing" if dashed else "my_thing", "other"}
    plugin = registry.get(family, "my-thing")
    assert plugin is registry.get(family, "my_thing")
    assert getattr(plugin, METHODS[family])(1) == ("my_thing", (1,))
    assert registry.help(family, "my_thing") == "Does my_thing."
    assert registry.source(family, "other").kind == "folder"
    assert str(plugins) in registry.source(family, "other").where


def test_names_are_found_without_importing(plugins: Path, write: Write) -> None:
    write("collect/explosive.py", "raise SystemExit('imported')")
    assert "explosive" in Registry([plugins]).names("collect")


def test_folders_are_searched_only_where_they_are_given(write: Write) -> None:
    write("collect/stranger.py", native("collect", "stranger"))
    assert "stranger" not in Registry().names("collect")
    with pytest.raises(PluginError, match="there is no collector 'stranger'"):
        Registry().get("collect", "stranger")


def test_the_first_folder_wins(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        file = tmp_path / folder / "view" / "mine.py"
        file.parent.mkdir(parents=True)
        file.write_text(native("view", "mine").replace("Does", f"From {folder}:"))
    for first, second in (("one", "two"), ("two", "one")):
        registry = Registry([tmp_path / first, tmp_path / second])
        assert registry.help("view", "mine") == f"From {first}: mine."
        assert len(registry.shadowed("view")) == 1


def test_a_built_in_is_not_shadowed(plugins: Path, write: Write) -> None:
    write("check/average_amount_threshold.py", "raise RuntimeError('not this one')")
    registry = Registry([plugins])
    assert registry.source("check", "average-amount-threshold").kind == "built-in"
    assert type(registry.get("check", "AAT")).__module__ == "perun.check.average_amount_threshold"
    (message,) = registry.shadowed("check")
    assert "average_amount_threshold" in message
    assert str(plugins) in message
    assert Registry().shadowed("check") == []


@pytest.mark.parametrize(
    "name", ["aat", "AAT", "Aat", "average_amount_threshold", "average-amount-threshold"]
)
def test_a_check_by_its_short_string(name: str) -> None:
    assert Registry().get("check", name).name == "average_amount_threshold"


def test_short_strings_of_plugins(plugins: Path, write: Write) -> None:
    write("check/my_degradation_checker.py", native("check", "my_degradation_checker"))
    assert short_string("my_degradation_checker") == short_string("my-degradation-checker") == "MDC"
    registry = Registry([plugins])
    assert registry.get("check", "mdc") is registry.get("check", "my_degradation_checker")
    write("check/most_doubtful_change.py", native("check", "most_doubtful_change"))
    with pytest.raises(PluginError, match="most_doubtful_change, my_degradation_checker"):
        Registry([plugins]).get("check", "mdc")


def test_short_strings_are_of_checks_alone() -> None:
    with pytest.raises(PluginError):
        Registry().get("collect", "t")


def test_a_workload_generator_may_have_the_suffix_of_the_manual(plugins: Path, write: Write) -> None:
    write("workload/prime_generator.py", native("workload", "prime"))
    registry = Registry([plugins])
    assert "prime" in registry.names("workload")
    assert registry.get("workload", "prime") is registry.get("workload", "prime_generator")


def test_an_unknown_name_is_told_the_nearest_and_the_known() -> None:
    with pytest.raises(PluginError, match="there is no check 'average_amount_treshold'") as caught:
        Registry().get("check", "average_amount_treshold")
    assert "did you mean 'average_amount_threshold'" in caught.value.hint
    with pytest.raises(PluginError) as caught:
        Registry().get("collect", "qqq")
    assert caught.value.hint.startswith("known are: ")
    assert "time" in caught.value.hint


@pytest.mark.parametrize("name", ["", "..", "../collect/time", "/etc/passwd", "time/collector", "a b", "é"])
def test_odd_names_are_unknown(name: str) -> None:
    with pytest.raises(PluginError, match="there is no collector"):
        Registry().get("collect", name)


@pytest.mark.parametrize(("text", "reason"), [
    ("def broken(:\n    pass\n", "SyntaxError"),
    ("import no_such_library\n", "ModuleNotFoundError: No module named 'no_such_library'"),
    ("x = 1\nx / 0\n", "ZeroDivisionError: division by zero"),
    ("import sys\nsys.exit(3)\n", "SystemExit: 3"),
    ("PLUGIN = 3\n", "PLUGIN must be a class, not 3"),
    ("class PLUGIN: pass\n", "PLUGIN.name must be text"),
    ("raise ValueError('two\\nlines')\n", "ValueError: two"),
])  # fmt: skip
def test_a_broken_plugin(text: str, reason: str, plugins: Path, write: Write) -> None:
    file = write("collect/broken.py", text)
    write("collect/sound.py", native("collect", "sound"))
    problem = failure(plugins, "collect", "broken")
    assert "collector 'broken'" in problem.message
    assert str(file) in problem.message
    assert reason in problem.message
    assert problem.__cause__ is not None
    registry = Registry([plugins])
    assert {"broken", "sound"} <= set(registry.names("collect"))
    assert registry.get("collect", "sound").name == "sound"


def test_the_line_that_failed_is_named(plugins: Path, write: Write) -> None:
    write("collect/broken/__init__.py", "from . import parts\n")
    file = write("collect/broken/parts.py", "import json\n\njson.loads('{')\n")
    assert f"({file}, line 3)" in failure(plugins, "collect", "broken").message


@pytest.mark.parametrize(("old", "new", "reason"), [
    ("def collect", "def gather", "Plugin has no method collect"),
    ('help = "', 'text = "', "Plugin.help must be text"),
    ("    Params = Params", "    Params = dict", "Plugin.Params must be a dataclass"),
    ("    Params = Params\n", "", "Plugin.Params must be a dataclass"),
    ("size: int", "size: complex", "Params.size has the type <class 'complex'>"),
    ("size: int", "size: Nowhere", "NameError"),
    ('name = "broken"', 'name = "other"', "name is 'other', but it is found as 'broken'"),
    ("    def collect", "    def __init__(self, needs): pass\n\n    def collect", "TypeError"),
])  # fmt: skip
def test_a_breach_of_contract(old: str, new: str, reason: str, plugins: Path, write: Write) -> None:
    text = native("collect", "broken")
    assert old in text
    write("collect/broken.py", "from __future__ import annotations\n" + text.replace(old, new))
    assert reason in failure(plugins, "collect", "broken").message


def test_a_check_without_short_string(plugins: Path, write: Write) -> None:
    write("check/no_short.py", native("check", "no_short").replace("short", "tall"))
    assert "Plugin.short must be text" in failure(plugins, "check", "no_short").message


def test_a_native_version_control_system(plugins: Path, write: Write) -> None:
    write(
        "vcs/half.py",
        """
        from perun.plugin.api import Vcs

        class Half(Vcs):
            type = "half"

        PLUGIN = Half
        """,
    )
    write("vcs/none.py", "class PLUGIN: pass")
    assert (
        "Half does not define check_minor_version_validity, checkout"
        in failure(plugins, "vcs", "half").message
    )
    assert "must be a subclass of perun.plugin.api.Vcs" in failure(plugins, "vcs", "none").message


def test_a_workload_generator_needs_a_class(plugins: Path, write: Write) -> None:
    write("workload/bare.py", "def bare(): yield 1")
    assert "has no PLUGIN" in failure(plugins, "workload", "bare").message


def test_a_package_wins_over_a_module_of_its_name(plugins: Path, write: Write) -> None:
    write("view/twice.py", "raise RuntimeError")
    write("view/twice/__init__.py", native("view", "twice"))
    assert Registry([plugins]).get("view", "twice").name == "twice"


def test_a_plugin_imports_its_parts_by_the_name_it_has_inside_perun(plugins: Path, write: Write) -> None:
    write(
        "collect/in_parts/__init__.py",
        native("collect", "in_parts") + "import perun.collect.in_parts.more as more\n",
    )
    write("collect/in_parts/more.py", "from . import __name__ as home\n")
    plugin = Registry([plugins]).get("collect", "in_parts")
    assert sys.modules[type(plugin).__module__].more.home == "perun.collect.in_parts"


def test_missing_folders_are_empty(tmp_path: Path) -> None:
    assert Registry([tmp_path / "nowhere"]).names("collect") == Registry().names("collect")


# --- installed distributions ---------------------------------------------------------------------------


def test_an_installed_plugin(install: Install) -> None:
    source = "".join(
        native(family, "acme_" + family).replace("Plugin", "Acme" + family).replace("PLUGIN", f"P_{family}")
        for family in sorted(METHODS)
    )
    groups = "".join(f"[{GROUPS[family]}]\nacme-{family} = acme:P_{family}\n\n" for family in sorted(METHODS))
    install("acme", source, groups)
    registry = Registry()
    for family in sorted(METHODS):
        assert registry.get(family, "acme_" + family).name == "acme_" + family
        assert registry.source(family, "acme-" + family).kind == "distribution"
        assert registry.source(family, "acme-" + family).where == f"acme 1.2, acme:P_{family}"
    assert "acme-collect" in registry.names("collect")
    assert "acme_check" in registry.names("check")
    assert registry.get("check", "ac").name == "acme_check"


def test_an_entry_point_may_name_a_module(install: Install) -> None:
    install("acme_view", native("view", "acme"), "[perun.views]\nacme = acme_view\n")
    assert Registry().get("view", "acme").name == "acme"


def test_an_entry_point_may_name_a_function(install: Install) -> None:
    install(
        "acme_check",
        "def acme(baseline, target):\n    'Sees nothing.'\n    yield from ()\n",
        "[perun.checks]\nacme = acme_check:acme\n[perun.vcs]\nacme = acme_check:acme\n",
    )
    assert Registry().help("check", "acme") == "Sees nothing."
    assert Registry().get("vcs", "acme").__name__ == "acme"  # a function of root and environ


def test_a_broken_distribution_is_named(install: Install) -> None:
    install("acme", "import no_such_library", "[perun.views]\nacme = acme:View\nlost = nowhere:View\n")
    registry = Registry()
    assert {"acme", "lost"} <= set(registry.names("view"))
    with pytest.raises(
        PluginError, match=r"distribution, acme 1\.2.*No module named 'no_such_library'.*acme\.py"
    ):
        registry.get("view", "acme")
    with pytest.raises(PluginError, match="No module named 'nowhere'"):
        registry.get("view", "lost")


def test_installed_plugins_shadow_nothing(install: Install, plugins: Path, write: Write) -> None:
    install("acme", native("collect", "mine"), "[perun.collectors]\ntime = acme:PLUGIN\nmine = acme:PLUGIN\n")
    write("collect/mine.py", native("collect", "mine"))
    registry = Registry([plugins])
    assert registry.source("collect", "time").kind == "built-in"
    assert registry.source("collect", "mine").kind == "folder"
    assert len(registry.shadowed("collect")) == 2


# --- start-up ------------------------------------------------------------------------------------------


def test_a_built_in_needs_neither_metadata_nor_the_other_plugins() -> None:
    code = (
        "import sys\n"
        "from perun.plugin.registry import Registry\n"
        "heavy = {'importlib.metadata', 'logging', 'msgspec', 'difflib', 'subprocess', 'click'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
        "registry = Registry()\n"
        "assert registry.get('view', 'raw').name == 'raw'\n"
        "assert 'importlib.metadata' not in sys.modules\n"
        "assert not [name for name in sys.modules if name.startswith(('perun.check.', 'perun.collect.'))]\n"
    )
    source = str(Path(perun.__file__).parents[1])
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": source})


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_all_that_is_built_in_keeps_its_contract(family: str) -> None:
    registry = Registry()
    for name in registry.names(family):
        if registry.source(family, name).kind == "built-in":
            registry.get(family, name)
            assert registry.help(family, name)
            if family == "check":
                assert registry.get(family, name).short == short_string(name)
