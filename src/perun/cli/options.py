"""The options that commands have in common, each declared once; options made from declared parameters."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from perun.cli.completing import complete_any, complete_minor, opened
from perun.core.errors import UsageError
from perun.plugin.params import NUMBERED, PAIRS, STRINGS, ParamSpec, param, specs

if TYPE_CHECKING:
    from perun.cli.session import Session

_Decorator = Callable[[Any], Any]

UNIFORM: Final = {
    "--depending-on": "--per",
    "--filename": "--output",
    "--from-minor": "--minor",
    "--in-minor": "--minor",
    "--keep-directory": "--keep-directories",
    "--minor-version": "--minor",
    "--of-key": "--of",
    "--output-file": "--output",
    "--per-key": "--per",
    "--through": "--per",
}
"""Long options of the manual that call in their command what others call by the name on the right."""
PROFILE: Final = "<profile>"
"""How the value of an option is called that names a profile."""
VERSION: Final = "VERSION"
"""How the value of an option is called that names a version."""
FILE: Final = "FILE"
"""How the value of an option is called that names a file."""


class Option(click.Option):
    """An option that is also known by names which its help does not list: what it was called before."""

    def __init__(self, *arguments: Any, formerly: Sequence[str] = (), **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.formerly = tuple(formerly)
        self.opts.extend(self.formerly)

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The names and the description, as click's."""
        every = self.opts
        self.opts = [name for name in every if name not in self.formerly]
        try:
            return super().get_help_record(ctx)
        finally:
            self.opts = every


# The options that commands have in common; tests/cli/test_help.py holds that none spells them otherwise.


def minor_option(
    text: str = "Look in the index of this version; HEAD by default.",
    *,
    name: str = "minor",
    short: str = "-m",
    formerly: Sequence[str] = (),
) -> _Decorator:
    """The option `--minor`, which names a version.

    :param name: the keyword of the function that gets it.
    :param short: empty where the manual gives `-m` another meaning.
    """
    return click.option(
        *filter(None, ("--minor", short)), name, cls=Option, formerly=formerly,
        metavar=VERSION, shell_complete=complete_minor, help=text,
    )  # fmt: skip


def version_argument(
    name: str = "minor",
    *,
    metavar: str = f"[{VERSION}]",
    short: str = "-m",
    before: str = "",
    text: str = f"The same as {VERSION}.",
) -> _Decorator:
    """The version that a command is about: an argument, or the option `--minor`, which is the same.

    :param name: the keyword of the function that gets it; None where neither is given.
    :param before: the keyword of the argument behind it, which is the only one where `--minor` is given.
    """

    def decorate(function: Any) -> Any:
        @functools.wraps(function)
        def call(*arguments: Any, minor_given: str | None, **values: Any) -> Any:
            if minor_given is not None:
                if before and not values[before]:
                    values[before], values[name] = values[name] or values[before], None
                if values[name]:
                    raise click.UsageError(
                        f"{metavar.strip('[]')} and --minor are the same: give one of them."
                    )
                values[name] = minor_given
            return function(*arguments, **values)

        option = minor_option(text, name="minor_given", short=short)
        return click.argument(name, metavar=metavar, required=False, shell_complete=complete_minor)(
            option(call)
        )

    return decorate


def since_option(text: str = "Only versions newer than this one") -> _Decorator:
    """The option `--since`, where a range of versions begins; see :func:`perun.repository.walking.since`."""
    return click.option(
        "--since",
        metavar=f"{VERSION}|DATE",
        shell_complete=complete_minor,
        help=f"{text}, or not older than a day such as 2026-11-22, local time.",
    )


def series_option(complete: Callable[..., list[str]], text: str = "") -> _Decorator:
    """The option `--series`, which chooses what is looked at; the function gets it as `pattern`."""
    return click.option(
        "--series", "-s", "pattern", metavar="PATTERN", default="", shell_complete=complete,
        help=text or "Only series whose collector, command and location contain this, or match it "
        "(`*`, `?`, `[`).",
    )  # fmt: skip


def json_option(text: str = "Answer as JSON.") -> _Decorator:
    """The flag `--json`, which the function gets as `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help=text)


@dataclass(frozen=True)
class CommandOptions:
    """The command that is measured."""

    cmd: str = param("", short="-c", metavar="CMD", help="Measure this command instead of the job matrix.")
    args: str = param("", short="-a", metavar="ARGS", help="Arguments of the command.")
    workload: str = param(
        "", short="-w", metavar="WORKLOAD", help="Its input: last arguments, '< file', or '<< \"text\"'."
    )


_FEWEST: Final = 5
_SPAN: Final = 8


def sizes_of(text: str) -> tuple[str, ...]:
    """The numbers of `--sizes`, ascending.

    :raises UsageError: where one is none, or there are too few.
    """
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not all(word.isascii() and word.isdigit() and int(word) for word in words):
        raise UsageError(
            f"--sizes: {text!r} is no list of numbers above 0", "write it as e.g. 50,100,200,400,800"
        )
    found = sorted({int(word) for word in words})
    if text and (len(found) < _FEWEST or found[-1] < _SPAN * found[0]):
        raise UsageError(
            f"--sizes: {text} does not tell an order of growth",
            "give five numbers at least, the largest eight times the smallest, e.g. 50,100,200,400,800",
        )
    return tuple(map(str, found))


@dataclass(frozen=True)
class AnswerOptions:
    """How the answer leaves the program; the command says which formats there are."""

    format: str | None = param(None, help="Format of the answer: text by default, for people.")
    as_json: bool = param(False, long="--json", help="Answer as JSON: short for --format json.")
    output: str | None = param(
        None,
        short="-o",
        metavar=FILE,
        help="Write the answer to FILE, which is replaced once it is complete; - is standard output.",
    )

    @property
    def path(self) -> Path | None:
        """The file that the answer goes to; None for standard output."""
        return None if self.output in (None, "-") else Path(str(self.output))

    @property
    def named(self) -> str | None:
        """The format that is asked for; None where none is.

        :raises click.UsageError: if two are asked for.
        """
        if self.as_json and self.format not in (None, "json"):
            raise click.UsageError(f"--json and --format {self.format} contradict each other.")
        return "json" if self.as_json else self.format

    @contextmanager
    def opened(self, session: Session) -> Iterator[None]:
        """Within the block the answer goes to the file, which is complete once the block has ended well."""
        if self.path is None:
            yield
            return
        with opened(self.path) as file, session.writing_to(file):
            yield


def add_uniform_names(command: click.Command) -> click.Command:
    """Let the options of the command, and of those below it, be called also by the names that others use.

    The manual names one thing differently from command to command, and has some names with underscores. All
    of its names stay, and short ones keep the meaning that they have in each command.
    """
    options = [one for one in command.params if isinstance(one, click.Option)]
    taken = {name for option in options for name in (*option.opts, *option.secondary_opts)}
    for option in options:
        for name in tuple(option.opts):
            uniform = UNIFORM.get(name) or name.replace("_", "-")
            if name.startswith("--") and uniform not in taken:
                option.opts.append(uniform)
                taken.add(uniform)
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            add_uniform_names(inner)
    return command


def options_of(specs: Iterable[ParamSpec]) -> list[click.Parameter]:
    """One option, or argument, for each parameter, with its flags, type, default and help."""
    return [
        _argument(one) if one.info.argument else Option([*one.flags, one.name], **_settings(one))
        for one in specs
    ]


def with_options_of(params: type, name: str, **more: Mapping[str, Any]) -> Callable[[Any], Any]:
    """Give a command the options that the dataclass `params` declares; it gets them as one value.

    :param name: the keyword of that value.
    :param more: what click is to know beyond the declaration, by the name of the parameter: settings of
        `click.option`, and `short` for another short option.
    """
    declared = list(specs(params))

    def decorate(function: Callable[..., Any]) -> Any:
        @functools.wraps(function)
        def call(*arguments: Any, **values: Any) -> Any:
            given = {one.name: values.pop(one.name) for one in declared}
            return function(*arguments, **values, **{name: params(**given)})

        command: Any = call
        for one in reversed(declared):
            changes = dict(more.get(one.name, {}))
            spec = one._replace(info=one.info._replace(short=changes.pop("short", one.info.short)))
            settings = {"cls": Option, **_settings(spec), **changes}
            command = click.option(*spec.flags, spec.name, **settings)(command)
        return command

    return decorate


def _argument(spec: ParamSpec) -> click.Argument:
    metavar = metavar_of(spec)
    return click.Argument(
        [spec.name],
        type=click.Choice(spec.info.choices) if spec.info.choices else None,
        required=not spec.has_default,
        default=spec.default if spec.has_default else None,
        metavar=f"[{metavar}]" if spec.has_default else metavar,
    )


def _settings(spec: ParamSpec) -> dict[str, Any]:
    """What click is to know of the option."""
    info = spec.info
    settings: dict[str, Any] = {
        "help": info.help,
        "metavar": info.metavar or None,
        "formerly": info.formerly,
    }
    if spec.has_default:
        settings |= {"default": spec.default, "show_default": spec.type in (int, float) or bool(spec.default)}
    elif info.required or spec.default is MISSING:
        settings["required"] = True
    if spec.type is bool:
        settings["is_flag"] = True
    elif spec.type is int:
        settings["type"] = int if info.minimum is None else click.IntRange(min=int(info.minimum))
    elif spec.type is float:
        settings["type"] = float if info.minimum is None else click.FloatRange(min=info.minimum)
    elif spec.type == STRINGS and info.parts:
        settings |= _together(info.parts)
    elif spec.type == STRINGS:
        settings["multiple"] = True
    elif spec.type == PAIRS:
        settings |= {"multiple": True, "nargs": 2}
    elif spec.type == NUMBERED:
        settings |= {"multiple": True, "type": (str, int)}
    if info.metavar == PROFILE:
        settings["shell_complete"] = complete_any
    elif info.metavar == VERSION:
        settings["shell_complete"] = complete_minor
    elif info.metavar == FILE:
        settings["type"] = click.Path()
    if info.choices:
        settings["type"] = click.Choice(info.choices, case_sensitive=False)
    return settings


def _together(parts: tuple[Any, ...]) -> dict[str, Any]:
    """The type of several values of one option."""
    if len(set(parts)) == 1:
        return {"type": parts[0], "nargs": len(parts)}
    types = [part if isinstance(part, type) else click.Choice(part) for part in parts]
    return {"type": click.Tuple(types), "nargs": len(parts)}


def metavar_of(spec: ParamSpec) -> str:
    """What stands for the value in the usage."""
    return spec.info.metavar or spec.name.upper()


def read_params(values: tuple[str, ...]) -> dict[str, Any]:
    """Parameters given as YAML files, `key=value`, or YAML text; later ones win.

    :raises PerunError: if a file is not readable or does not hold a mapping.
    """
    from perun.core.config.reader import loads
    from perun.repository.jobs import merge_params

    merged: dict[str, Any] = {}
    for value in values:
        path = Path(value)
        if _is_file(path):
            merged |= merge_params(loads(path.read_text(encoding="utf-8"), str(path)), str(path))
        elif "=" in value and ":" not in value.partition("=")[0]:
            key, _, text = value.partition("=")
            merged[key.strip()] = loads(text, repr(value))
        else:
            content = loads(value, repr(value))
            if isinstance(content, str):
                raise click.UsageError(
                    f"{value!r} is neither a file nor parameters (write key=value, or YAML)"
                )
            merged |= merge_params(content, repr(value))
    return merged


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


class LazyGroup(click.Group):
    """A group whose commands are given as `name -> ("module:attribute", one line of help)`.

    Its own help needs none of the modules, which keeps `perun --help` quick.
    """

    def __init__(self, *args: Any, lazy: Mapping[str, tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names in the order of the table: the order of a working day."""
        return list(self.lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now; None if there is no such name."""
        if cmd_name not in self.lazy:
            return None
        module, _, attribute = self.lazy[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return add_uniform_names(command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands with their one line of help."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self.lazy.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click's, naming the nearest command if there is none of the name."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as problem:
            raise with_nearest(problem, args[0], self.list_commands(ctx)) from None


def with_nearest(problem: click.UsageError, name: str, known: list[str]) -> click.UsageError:
    """The error with the commands whose names are nearest to `name`."""
    import difflib

    close = difflib.get_close_matches(name, known, n=2)
    if not close or "Did you mean" in problem.message:
        return problem
    return click.UsageError(f"{problem.message} Did you mean {' or '.join(close)}?", problem.ctx)
