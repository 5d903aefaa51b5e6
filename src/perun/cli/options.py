"""Click options made from declared parameters."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import click

from perun.cli.completing import complete_any
from perun.plugin.params import NUMBERED, PAIRS, STRINGS, ParamSpec, specs

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
        _argument(one) if one.info.argument else click.Option([*one.flags, one.name], **_settings(one))
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
            command = click.option(*spec.flags, spec.name, **{**_settings(spec), **changes})(command)
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
    settings: dict[str, Any] = {"help": info.help, "metavar": info.metavar or None}
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
