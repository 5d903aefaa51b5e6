"""Click options and commands made from the parameters that a plugin declares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from perun.cli.session import Session
from perun.errors import ConfigError, PerunError, UsageError
from perun.plugin.params import NUMBERED, PAIRS, STRINGS, ParamSpec, from_mapping, specs

Runner = Callable[[Session, str, Any], None]


def options_of(params: type) -> list[click.Parameter]:
    """One option for each field of the dataclass `params`, with its flags, type, default and help."""
    return [_option(spec) for spec in specs(params)]


def _option(spec: ParamSpec) -> click.Option:
    settings: dict[str, Any] = {"help": spec.info.help, "default": spec.default, "show_default": True}
    if spec.info.metavar:
        settings["metavar"] = spec.info.metavar
    if spec.type is bool:
        settings |= {"is_flag": True, "show_default": False}
    elif spec.type is int:
        settings["type"] = click.IntRange(min=_whole(spec.info.minimum))
    elif spec.type is float:
        settings["type"] = click.FloatRange(min=spec.info.minimum)
    elif spec.type == STRINGS:
        settings |= {"multiple": True, "show_default": bool(spec.default)}
    elif spec.type == PAIRS:
        settings |= {"multiple": True, "nargs": 2, "show_default": False}
    elif spec.type == NUMBERED:
        settings |= {"multiple": True, "type": (str, int), "show_default": False}
    else:
        settings["show_default"] = bool(spec.default)
    if spec.info.choices:
        settings["type"] = click.Choice(spec.info.choices)
    return click.Option([*spec.flags, spec.name], **settings)


def _whole(minimum: float | None) -> int | None:
    return None if minimum is None else int(minimum)


class PluginGroup(click.Group):
    """A group with one command for each plugin of a family.

    A plugin that brings its own click command is mounted with that; for the others the command is made from
    `Params`. `runner(session, name, params)` does the work.
    """

    family: str
    runner: Runner

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the plugins."""
        session: Session = ctx.find_object(Session) or ctx.obj
        return session.registry.names(self.family)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of the plugin; None where there is no such plugin."""
        session: Session = ctx.find_object(Session) or ctx.obj
        try:
            plugin = session.registry.get(self.family, cmd_name)
        except PerunError as problem:
            if cmd_name in self.list_commands(ctx):
                raise  # it is there, but broken
            raise UsageError(problem.message, problem.hint) from None
        own = own_command(plugin)
        return own if own is not None else self._command(plugin, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The plugins with their one line of help; a broken one does not hide the others."""
        session: Session = ctx.find_object(Session) or ctx.obj
        for warning in session.registry.shadowed(self.family):
            session.warn(warning)
        rows = []
        for name in self.list_commands(ctx):
            try:
                rows.append((name, session.registry.help(self.family, name)))
            except PerunError as problem:
                rows.append((name, f"(broken: {problem.message})"))
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click's; options are not taken for a plugin, and `--help` is obeyed behind an argument, too."""
        if args[0] == "--help":
            click.echo(ctx.get_help())
            ctx.exit()
        if args[0].startswith("-") and not ctx.resilient_parsing:
            ctx.fail(f"{args[0]} stands in the wrong place: options come before the arguments.")
        return super().resolve_command(ctx, args)

    def _command(self, plugin: Any, name: str) -> click.Command:
        runner = type(self).runner

        @click.pass_context
        def callback(ctx: click.Context, /, **values: Any) -> None:
            try:
                params = from_mapping(plugin.Params, with_params(ctx, values), f"{name!r}")
            except ConfigError as problem:
                if ctx.parent and ctx.parent.meta.get("perun.params"):
                    raise
                raise UsageError(problem.message, problem.hint) from None  # of options that contradict
            runner(ctx.obj, plugin.name, params)

        text = plugin.help if plugin.help.endswith(".") else plugin.help + "."
        doc = (type(plugin).__doc__ or "").partition("\n\n")[2]
        return click.Command(
            name,
            callback=callback,
            params=options_of(plugin.Params),
            help=f"{text}\n\n{doc}",
            short_help=text,
        )


def with_params(ctx: click.Context, values: Mapping[str, Any]) -> dict[str, Any]:
    """`values` with those of `--params` (of the parent command) where the option was not given itself."""
    given: Mapping[str, Any] = (ctx.parent.meta.get("perun.params") if ctx.parent else None) or {}
    merged = dict(values)
    for key, value in given.items():
        name = str(key).replace("-", "_")
        source = ctx.get_parameter_source(name)
        if source is None or source is click.core.ParameterSource.DEFAULT:
            merged[name] = value
    return merged


def own_command(plugin: Any) -> click.Command | None:
    """The click command that a plugin brings as its attribute `command`: itself, or as `"module:name"`."""
    command = getattr(plugin, "command", None)
    if isinstance(command, str):
        from importlib import import_module

        module, _, name = command.partition(":")
        command = getattr(import_module(module), name)
    return command if isinstance(command, click.Command) else None


def read_params(values: tuple[str, ...]) -> dict[str, Any]:
    """Parameters given as YAML files, `key=value`, or YAML text; later ones win.

    :raises PerunError: where a file is not readable or does not hold a mapping.
    """
    from perun.config.reader import loads
    from perun.porcelain.run.jobs import merge_params

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
