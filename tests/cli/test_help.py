"""Help: of everything, without a repository and without a profile; and the options that it lists."""

from fnmatch import fnmatch
from pathlib import Path

import click
import pytest

from perun.cli.main import cli
from perun.cli.options import UNIFORM
from perun.cli.session import Session
from perun.plugin.registry import Registry

OTHER_MEANING = {"config", "fuzz", "show flamegraph", "show tableof models", "show tableof resources"}
"""Commands in which the manual gives `-h` another meaning than help."""


@pytest.fixture(scope="module")
def commands() -> dict[str, click.Context]:
    """Each command and group of the tree, by its words, with its context."""
    session = Session({}, Path("/"))
    session.registry = Registry()
    found: dict[str, click.Context] = {}

    def walk(command: click.Command, parent: click.Context | None, words: tuple[str, ...]) -> None:
        settings = command.context_settings if parent is None else {}
        context = click.Context(command, parent, words[-1] if words else "perun", obj=session, **settings)
        found[" ".join(words)] = context
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                inner = command.get_command(context, name)
                assert inner is not None
                walk(inner, context, (*words, name))

    walk(cli, None, ())
    assert len(found) > 70
    return found


def test_h_is_help_but_where_the_manual_says_otherwise(commands):
    helps = {words: one.command.get_help_option_names(one) for words, one in commands.items()}
    assert all("--help" in names for names in helps.values())
    assert {words for words, names in helps.items() if "-h" not in names} == OTHER_MEANING


@pytest.mark.parametrize("arguments", [("show", "-h"), ("status", "-h"), ("stats", "list-files", "-h")])
def test_h_prints_the_help(perun, arguments):
    assert perun(*arguments).out == perun(*arguments[:-1], "--help").out


def test_h_of_perun_itself(perun):
    assert perun("-h").out == perun("--help").out == perun().out


@pytest.mark.parametrize(("arguments", "usage", "option"), [
    (("show", "bars"), "perun show PROFILE bars", "--per"),
    (("show", "tableof", "resources"), "perun show PROFILE tableof resources", "--headers"),
    (("show", "-m", "HEAD", "raw"), "perun show PROFILE raw", "--format"),
    (("postprocessby", "moving-average", "sma"), "perun postprocessby PROFILE moving-average sma", "-wt"),
    (("postprocessby", "moving_average"), "perun postprocessby PROFILE moving-average", "-mp"),
    (("collect", "time"), "perun collect time", "--repeat"),
    (("collect", "-c", "./app", "time"), "perun collect time", "--repeat"),
])  # fmt: skip
def test_help_of_a_plugin_without_a_profile(perun, arguments, usage, option):
    text = perun(*arguments, "--help").out  # outside of any repository
    assert text.startswith(f"Usage: {usage} ")
    assert option in text


def test_a_profile_may_have_the_name_of_a_view(perun, write_profile):
    write_profile("bars.perf", workload="of bars")
    assert "perun show PROFILE raw" in perun("show", "bars", "raw", "--help").out
    assert perun("show", "bars", "raw").json["header"]["workload"] == "of bars"


def test_a_plugin_in_the_place_of_the_profile_is_told(perun, project):
    failed = perun("show", "bars", check=False)
    assert failed.code == 2
    assert "error: bars stands in the place of PROFILE; write: perun show PROFILE bars" in failed.err


def test_help_of_no_plugin_is_that_of_the_group(perun):
    assert "Usage: perun show [OPTIONS] PROFILE" in perun("show", "0@i", "--help").out
    assert "there is no view 'bras'" in perun("show", "0@i", "bras", "--help", check=False).err


def test_run_job_lists_the_units(perun):
    text = perun("run", "job", "--help").out
    registry = Registry()
    for family in ("collect", "postprocess"):
        for name in registry.names(family):
            assert f"  {name}  " in text
            assert registry.help(family, name).split()[0] in text


@pytest.fixture(scope="module")
def options(commands):
    """The options of each command: `[("show bars", click.Option), ...]`."""
    found = [(words, one) for words, context in commands.items() for one in context.command.params]
    return [(words, one) for words, one in found if isinstance(one, click.Option)]


def test_one_thing_has_one_long_name_everywhere(options):
    """Beside that of the manual, where it has another one."""
    for words, option in options:
        names = set(option.opts)
        assert {UNIFORM[name] for name in names & UNIFORM.keys()} <= names, words
        assert {name.replace("_", "-") for name in names if name.startswith("--")} <= names, words
    used = {name for _, option in options for name in option.opts}
    assert UNIFORM.keys() <= used


def test_one_long_name_is_one_thing_everywhere(options):
    """At least it takes as many values; the manual itself has names that do not."""
    values = {}
    for _, option in options:
        for name in (name for name in option.opts if name.startswith("--")):
            values.setdefault(name, set()).add(0 if option.is_flag or option.count else option.nargs)
    assert {name for name, numbers in values.items() if len(numbers) > 1} == {
        "--sampling", "--metric", "--collector-params", "--postprocessor-params", "--check", "--python"
    }  # fmt: skip


def test_no_name_is_given_twice_in_a_command(commands):
    for words, context in commands.items():
        names = [name for one in context.command.params for name in (*one.opts, *one.secondary_opts)]
        assert len(names) == len(set(names)), words


@pytest.mark.parametrize("name", ["--output-file", "--output"])
def test_both_names_do_the_same(perun, project, write_profile, name):
    write_profile()
    perun("show", "0@p", "raw", name, "out.json")
    assert "resources" in (project.path / "out.json").read_text()


GRAMMAR = {
    "--minor": ("-m", {"VERSION"}), "--cmd": ("-c", {"CMD"}), "--args": ("-a", {"ARGS"}),
    "--workload": ("-w", {"WORKLOAD"}), "--output": ("-o", {"FILE", "<html>", "<filename>", "<output_file>"}),
    "--series": ("-s", {"PATTERN"}), "--since": ("", {"VERSION|DATE"}), "--json": ("", {None})
}  # fmt: skip
"""What commands have in common: the long option, its short one, and how its value is called."""
OF_THE_MANUAL = {
    # The short option, the commands, what it stands for there, and the section of the manual that says so.
    ("-m", ""): ("--metrics", "3.1"),
    ("-m", "check"): ("--models-type", "3.2.13"),
    ("-m", "check all"): ("--models-type", "3.2.13"),
    ("-m", "check diff"): ("--models-type", "3.2.13"),
    ("-m", "check head"): ("--models-type", "3.2.13"),
    ("-m", "postprocessby regression-analysis"): ("--method", "3.4.2"),
    ("-c", "init"): ("--configure", "3.2.1"),
    ("-c", "run"): ("--crawl-parents", "3.2.10"),
    ("-c", "run job"): ("--collector", "3.2.11"),
    ("-c", "check*"): ("--compute-missing", "3.2.13"),
    ("-c", "fuzz"): ("--collector", "3.2.17"),
    ("-c", "stats clean"): ("--keep-custom", "3.6.13"),
    ("-a", "collect memory"): ("--all", "3.3.2"),
    ("-w", "collect trace"): ("--watchdog", "3.3.2"),
    ("-w", "collect *"): ("--warmup", "3.3.2, of time; other collectors repeat runs as it does"),
    ("-w", "fuzz"): ("--input-sample", "3.2.17"),
    ("-w", "temp delete"): ("--warn", "3.6.3"),
    ("-o", "collect trace"): ("--output-handling", "3.3.2"),
    ("-o", "fuzz"): ("--output-dir", "3.2.17"),
    ("-o", "show *"): ("--of", "3.5"),
    ("-o", "postprocessby regression-analysis"): ("--of", "3.4.2"),
    ("-s", "status"): ("--short", "3.2.8"),
    ("-s", "log"): ("--short", "3.2.9"),
    ("-s", "fuzz"): ("--source-path", "3.2.17"),
    ("-s", "collect *"): ("--*", "3.3"),
    ("-s", "show *"): ("--*", "3.5"),
    ("-s", "postprocessby *"): ("--*", "3.4"),
    ("-s", "stats list-*"): ("--sort-by-size", "3.6.7"),
    ("-s", "temp list"): ("--sort-by", "3.6.4"),
    ("-b", "run job"): ("--cmd", "3.2.11, where -c is the collector"),
    ("-b", "fuzz"): ("--cmd", "3.2.17, where -c is the collector"),
    ("-f", "show *"): ("--output", "3.5, where -o is the dependent key"),
    ("-of", "show *"): ("--output", "3.5, where -o is the dependent key"),
}
WITHOUT_JSON = {
    # Their answers are no data: files and pictures, a question, a text to be run or read.
    "export",
    *("init", "config edit", "config reset", "config set", "hooks install", "hooks uninstall", "hooks run"),
    *("hooks work", "tag", "recover", "completion", "utils create", "remote add", "remote remove"),
    *(
        "ci run",
        "ci report",
        "mcp",
        "guard add",
        "guard init",
        "web serve",
        "web build",
        "stats clean",
        "stats delete *",
        "stats sync",
        "temp delete",
        "temp sync",
    ),
    *("config", "show", "remote"),  # groups that do something by themselves
    *("show *", "postprocessby *", "collect *", "check"),  # those of plugins: the group has it
}


def of_the_manual(short, words):
    """What the short option stands for in the command, if the manual says so."""
    words = words.removeprefix("utils ") if words.startswith(("utils stats", "utils temp")) else words
    found = [one for (name, where), one in OF_THE_MANUAL.items() if name == short and fnmatch(words, where)]
    return found[0][0] if found else None


def test_common_options_have_one_short_spelling(options):
    """A short option of the grammar means another thing only where the manual says so."""
    shorts = {short: long for long, (short, _) in GRAMMAR.items() if short}
    wrong = []
    for words, option in options:
        shown = [name for name in option.opts if name not in getattr(option, "formerly", ())]
        for short in set(shown) & set(shorts):
            expected = of_the_manual(short, words) or shorts[short]
            if not any(fnmatch(name, expected) for name in option.opts):
                wrong.append((words, short, option.opts))
        for long in set(shown) & set(GRAMMAR):
            short, values = GRAMMAR[long]
            others = [one for one in ("-b", "-f", "-of") if of_the_manual(one, words) == long]
            taken = of_the_manual(short, words) or words in {"bench", "check profiles"}
            if short and short not in shown and not taken and not set(others) & set(shown):
                wrong.append((words, long, option.opts))
            if option.metavar not in values and long != "--json":
                wrong.append((words, long, option.metavar))
    assert wrong == []


def test_what_the_manual_says_is_so(options):
    for (short, where), (long, _) in OF_THE_MANUAL.items():
        found = [one for words, one in options if fnmatch(words, where) and short in one.opts]
        assert found, (short, where)
        if "*" not in where:
            assert all(long in one.opts for one in found), (short, where)


def test_every_command_whose_answer_is_data_has_json(commands):
    lacking = {
        words
        for words, context in commands.items()
        if not any("--json" in one.opts for one in context.command.params)
        and not (isinstance(context.command, click.Group) and not context.command.invoke_without_command)
        and not words.startswith(("utils stats", "utils temp"))
    }
    assert {words for words in lacking if not any(fnmatch(words, one) for one in WITHOUT_JSON)} == set()
    for words, context in commands.items():
        names = {name for one in context.command.params for name in one.opts}
        of_files = words.startswith(("show ", "export"))
        assert "--json" in names or not names & {"--format", "--output"} or of_files, words


def test_a_version_and_where_versions_begin_are_spelled_alike(options):
    named = {name: {words for words, one in options if name in one.opts} for name in ("--minor", "--since")}
    assert named["--minor"] >= {
        *("status", "log", "trend", "changes", "explain", "ack", "collect", "run", "add", "rm", "push"),
        *("pull", "fetch", "check all", "check head", "check profiles", "fuzz", "show", "postprocessby"),
        *("web serve", "web build", "stats list-files", "stats list-versions", "stats delete file"),
    }
    assert named["--since"] == {
        *("log", "trend", "changes", "blame", "check all", "run matrix", "push", "pull", "fetch")
    }


def test_former_names_are_taken_and_not_listed(commands, options):
    former = {(words, name) for words, one in options for name in getattr(one, "formerly", ())}
    assert former == {
        ("trend", "--minor-version"), ("explain", "-s"), ("bisect", "-s"), ("bench", "-w"), ("tag", "-m"),
        ("collect instructions", "-c"), ("import", "-c"), ("import", "--cmd"), ("import", "--minor-version"),
    }  # fmt: skip
    for words, name in former:
        text = commands[words].command.get_help(commands[words])
        assert f" {name}," not in text and f", {name} " not in text


def test_short_options_mean_what_the_manual_says(options):
    """One letter means several things there; the help of each command says which."""
    found = {}
    for words, option in options:
        for short in set(option.opts) & {"-c", "-m", "-cp"}:
            found.setdefault(short, {})[words] = next(name for name in option.opts if name.startswith("--"))
    params = "--collector-params"
    assert found["-cp"] == {"collect": "--crawl-parents", "run job": params, "fuzz": params}
    assert found["-m"]["run"] == found["-m"]["collect"] == "--minor-version"
    assert found["-m"]["check profiles"] == found["-m"]["show"] == found["-m"]["add"] == "--minor"
    assert found["-c"]["collect"] == found["-c"]["compare"] == "--cmd"
