"""The typical changes of `docs/contributing.md`: each is made in a copy of the program, and works.

A change touches the files that its section names, and no others; what is about plugins takes one file.
"""

import re
import shutil
import sys
from pathlib import Path

import pytest

import perun as package
from test_create import ONCE, use

pytestmark = pytest.mark.slow
PAGE = Path(__file__).parents[2] / "docs" / "contributing.md"


class Tree:
    """A copy of the installed program, and which of its files a change touched."""

    def __init__(self, folder: Path, perun) -> None:
        self._root = folder / "perun"
        made = Path(package.__file__).parent
        shutil.copytree(made, self._root, ignore=shutil.ignore_patterns("__pycache__"))
        self._perun = perun
        self.touched: set[str] = set()

    def add(self, name: str, text: str) -> None:
        """A new file."""
        path = self._root / name
        assert not path.exists()
        path.write_text(text, encoding="utf-8")
        self.touched.add(name)

    def change(self, name: str, old: str, new: str) -> None:
        """Put other text in the place of what a file has."""
        path = self._root / name
        text = path.read_text(encoding="utf-8")
        assert old in text, f"{name} has no {old!r}"
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
        self.touched.add(name)

    def __call__(self, *words, **options):
        """Run a command of the copy."""
        program = [sys.executable, "-P", "-m", "perun"]
        return self._perun(*words, program=program, env={"PYTHONPATH": str(self._root.parent)}, **options)

    def holds(self, title: str, count: int, **names: str) -> None:
        """The files that were touched are those of the section `title`, in which `names` are put in."""
        section = PAGE.read_text("utf-8").partition(f"\n## {title}\n")[2].partition("\n## ")[0]
        assert section, f"no section {title}"
        named = re.findall(r"`src/perun/([\w/.]+)`", section)
        for word, value in names.items():
            named = [name.replace(word, value) for name in named]
        assert len(self.touched) == count
        assert self.touched <= set(named), self.touched - set(named)


@pytest.fixture
def tree(tmp_path, perun, project):
    return Tree(tmp_path / "tree", perun)


FAMILIES = {
    "collect": ("A collector, a postprocessor or a workload generator", "collect"),
    "postprocess": ("A collector, a postprocessor or a workload generator", "postprocess"),
    "workload": ("A collector, a postprocessor or a workload generator", "workload"),
    "view": ("A view", "view"),
    "check": ("A check", "check"),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_plugin_is_one_file(perun, tree, project, family):
    for name in ("first", "second"):
        perun("collect", "-ot", name, "-c", "true", *ONCE)
    perun("utils", "create", family, "my-own", "-ne")
    made = project.path / ".perun" / "plugins"
    tree.add(f"{family}/my_own.py", (made / family / "my_own.py").read_text("utf-8"))
    shutil.rmtree(made)
    use(tree, family, "my-own")
    title, folder = FAMILIES[family]
    tree.holds(title, 1, FAMILY=folder, NAME="my_own")


def test_a_version_control_system_is_one_file(tree, tmp_path):
    tree.add(
        "vcs/frozen.py",
        "from perun.vcs.svs import Svs\n\n\nclass Frozen(Svs):\n    type = 'frozen'\n\n\nPLUGIN = Frozen\n",
    )
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    tree("init", "--vcs-type", "frozen", cwd=folder)
    assert tree("status", "--json", cwd=folder).json["minor_version"]["checksum"] == "HEAD"
    tree.holds("A version control system", 1, NAME="frozen")


def test_a_parameter_of_a_collector_is_in_its_file(tree, project):
    where = "    repeat: int = param(\n"
    tree.change("collect/time.py", where, "    pause: int = param(0, help='Seconds of rest.')\n" + where)
    assert "--pause" in tree("collect", "time", "--help").out
    tree("config", "set", "cmds", "['true']")
    tree("config", "set", "collectors", "[{name: time, params: {pause: 0, repeat: 1, warmup: 0}}]")
    tree("run", "matrix")
    assert tree("show", "0@p", "raw").json["collector_info"]["params"]["pause"] == 0
    tree.holds("A parameter of a collector", 1, NAME="time")


def test_a_threshold_of_a_check_is_in_its_file(tree, project, write_profile):
    name = "check/average_amount_threshold.py"
    where = "    optimization: float = param(\n"
    tree.change(name, where, "    least: float = param(0.0, help='Differences that count.')\n" + where)
    where = "                yield from _changes("
    tree.change(name, where, "                if params.least < 9:\n    " + where)
    for number, amount in enumerate((1.0, 5.0)):
        write_profile(f"p{number}.perf", amounts=(amount,))
    tree("config", "set", "degradation.strategies", "[{method: average_amount_threshold}]")
    found = tree("check", "profiles", "0@p", "1@p", "--json").json["comparisons"][0]["changes"]
    assert found
    tree("config", "set", "degradation.average_amount_threshold", "{least: 10}")
    assert tree("check", "profiles", "0@p", "1@p", "--json").json["comparisons"][0]["changes"] == []
    tree.holds("A threshold of a check", 1, NAME="average_amount_threshold")


def test_a_configuration_key_is_a_line_of_the_table(tree, project):
    where = "_ROWS: Final[tuple[Key, ...]] = (\n"
    row = '    Key("vcs.colour", Kind.TEXT, Scope.LOCAL, "blue", "A colour."),\n'
    tree.change("core/config/schema.py", where, where + row)
    assert tree("config", "get", "vcs.colour").out == "vcs.colour: blue\n"
    tree("config", "set", "vcs.colour", "red")
    assert tree("config", "get", "vcs.colour", "--json").json["value"] == "red"
    tree.holds("A configuration key", 1)


def test_a_status_column_is_one_file(tree, project, write_profile):
    write_profile()
    name = "cli/answers/status.py"
    tree.change(name, '"value", "difference", "age"),', '"value", "difference", "age", "is_registered"),')
    tree("config", "set", "format.status", "%type% %is_registered%")
    assert "[time] False" in tree("status").out
    tree.holds("A status column", 1)


def test_an_export_format_is_a_file_and_a_line(tree, project, write_profile):
    tree.add(
        "cli/answers/check/short.py",
        "class Short:\n"
        "    def __init__(self, page):\n        self._page = page\n\n"
        "    def version(self, report):\n        pass\n\n"
        "    def pair(self, comparison):\n        self._page.out.write('a pair\\n')\n\n"
        "    def end(self):\n        pass\n",
    )
    where = '    "sarif": "Sarif",\n'
    tree.change("cli/answers/check/__init__.py", where, where + '    "short": "Short",\n')
    for number in (0, 1):
        write_profile(f"p{number}.perf")
    assert tree("check", "profiles", "0@p", "1@p", "--format", "short").out == "a pair\n"
    tree.holds("An export format of check", 2, NAME="short")


def test_a_command_is_a_file_and_a_line(tree, project):
    tree.add(
        "cli/commands/hello.py",
        "import click\n\nfrom perun.cli.options import json_option\n\n\n"
        "@click.command()\n@json_option()\n@click.pass_obj\n"
        'def hello(session, as_json):\n    """Say hello."""\n    session.say("[]" if as_json else "hello")\n',
    )
    where = "COMMANDS = {\n"
    row = '    "hello": ("perun.cli.commands.hello:hello", "Say hello."),\n'
    tree.change("cli/main.py", where, where + row)
    assert tree("hello").out == "hello\n"
    assert tree("hello", "--json").json == []
    assert "Say hello." in tree("hello", "--help").out
    tree.holds("A command", 2, NAME="hello")


def test_a_kind_of_remote_is_a_file_and_its_urls(tree, project, write_profile, tmp_path):
    tree.add(
        "store/remote/shelf.py",
        "from perun.store.remote.file import FileRemote\n\nSCHEME = 'shelf'\n\n\n"
        "class Shelf(FileRemote):\n    pass\n",
    )
    name = "store/remote/opening.py"
    known = "    if parts.scheme == shelf.SCHEME:\n        return "
    for where, new in (
        ("from perun.store.remote.sql", "from perun.store.remote import shelf\n"),
        ('    if parts.scheme == "file":\n', f"{known}shelf.Shelf(Path(parts.path))\n"),
        ("    if parts.scheme in _SQL and", f"{known}url\n"),
    ):
        tree.change(name, where, new + where)
    write_profile()
    tree("add", "0@p")
    tree("remote", "add", "team", f"shelf://{tmp_path / 'shelf'}")
    assert len(tree("push", "--json").json["profiles"]) == 1
    assert tree("push", "--json").json["known"] == 1
    tree.holds("A kind of remote", 2, NAME="shelf")


def test_an_engine_of_trace_is_three_files(tree, project):
    tree.add(
        "collect/trace/engines/slow.py",
        "class SlowEngine:\n    name = 'slow'\n    switches = {}\n\n"
        "    def __init__(self, environ, cache=None):\n"
        "        self.notes, self.method, self.missed, self.lost, self.correction = [], '', 0, 0, None\n\n"
        "    def unavailable(self, plan=None):\n        return 'slow cannot run today', 'try tomorrow'\n",
    )
    tree.change("collect/trace/params.py", '"uftrace", "stap")', '"uftrace", "stap", "slow")')
    where = '    if name == "uftrace":\n'
    chosen = (
        '    if name == "slow":\n        from perun.collect.trace.engines.slow import SlowEngine\n\n'
        "        return SlowEngine(environ, cache)\n"
    )
    tree.change("collect/trace/collector.py", where, chosen + where)
    assert "slow" in tree("collect", "trace", "--help").out
    said = tree("doctor").out
    assert "slow cannot run today" in said
    assert "try tomorrow" in said
    tree.holds("An engine of trace", 3, NAME="slow")
