"""Commands of plugins: made from the parameters that they declare, or brought by themselves."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final

import click

from perun.cli.options import add_uniform_names, metavar_of, options_of
from perun.cli.session import Session
from perun.core.errors import ConfigError, NotTrusted, PerunError, UsageError
from perun.plugin.params import ParamSpec, from_mapping, selector, specs

PARAMS: Final = "perun.params"
"""Where the context holds the values of `--params`."""

Runner = Callable[[Session, str, Any], None]


class _Modes(click.Group):
    """A plugin with a sub-command for each mode, which may be spelled with underscores, too."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name."""
        return super().get_command(ctx, cmd_name.replace("_", "-"))


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
        """The command of the plugin; None if there is no such plugin."""
        session: Session = ctx.find_object(Session) or ctx.obj
        try:
            plugin = session.registry.get(self.family, cmd_name)
        except NotTrusted:
            if ctx.resilient_parsing:  # the shell completes a command, where nobody is asked
                return None
            raise
        except PerunError as problem:
            if cmd_name in self.list_commands(ctx):
                raise  # it is there, but broken
            raise UsageError(problem.message, problem.hint) from None
        own = own_command(plugin)
        return add_uniform_names(command_of(plugin, cmd_name, type(self).runner) if own is None else own)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The plugins with their one line of help."""
        session: Session = ctx.find_object(Session) or ctx.obj
        write_plugins(session, self.family, "Commands", formatter)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click's; options are not taken for a plugin, and help is given behind an argument, too.

        Where the argument is the name of a plugin and help is asked for, it is that of the plugin:
        `perun show bars --help` needs no profile.
        """
        helps = self.get_help_option_names(ctx)
        if not {args[0], args[0].replace("_", "-")} & set(self.list_commands(ctx)):
            name = self.plugin_as_argument(ctx)
            if name and any(word in helps for word in args):
                return name, self.get_command(ctx, name), args
        if args[0] in helps:
            click.echo(ctx.get_help())
            ctx.exit()
        if args[0].startswith("-") and not ctx.resilient_parsing:
            ctx.fail(f"{args[0]} is in the wrong place: options come before the arguments.")
        return super().resolve_command(ctx, args)

    def missing(self, ctx: click.Context) -> str:
        """What to say where no plugin is named, or one stands in the place of the argument."""
        name, argument = self.plugin_as_argument(ctx), self._argument
        if name is None or argument is None:
            return f"{ctx.command_path}: name one of {', '.join(self.list_commands(ctx))}"
        place = argument.human_readable_name
        return f"{name} stands in the place of {place}; write: {ctx.command_path} {place} {name}"

    def plugin_as_argument(self, ctx: click.Context) -> str | None:
        """The name of the plugin that stands where the argument of the group is expected; else None."""
        given = str(ctx.params.get(self._argument.name)) if self._argument and self._argument.name else ""
        known = self.list_commands(ctx)
        return next((name for name in (given, given.replace("_", "-")) if name in known), None)

    @property
    def _argument(self) -> click.Argument | None:
        """The argument of the group, before the name of the plugin."""
        return next((one for one in self.params if isinstance(one, click.Argument)), None)


def write_plugins(session: Session, family: str, title: str, formatter: click.HelpFormatter) -> None:
    """A section of a help: the plugins of the family with their one line of help.

    A broken one does not hide the others.
    """
    for warning in session.registry.shadowed(family):
        session.warn(warning)
    rows = []
    for name in session.registry.names(family):
        try:
            rows.append((name, session.registry.help(family, name)))
        except PerunError as problem:
            rows.append((name, f"(broken: {problem.message})"))
    if rows:
        with formatter.section(title):
            formatter.write_dl(rows)


def lists_formats(family: str) -> type[click.Command]:
    """A command that takes the name of a plugin of the family, and lists these in its help."""

    class _ListsFormats(click.Command):
        def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
            """The options, and the plugins with their one line."""
            super().format_options(ctx, formatter)
            session = ctx.find_object(Session)
            if session is not None:
                write_plugins(session, family, "Formats", formatter)

    return _ListsFormats


def command_of(plugin: Any, name: str, runner: Runner) -> click.Command:
    """The command that the parameters of a plugin declare, with a sub-command for each mode if it has any.

    :param runner: gets the session, the name of the plugin and its parameters, and does the work.
    """

    @click.pass_context
    def callback(ctx: click.Context, /, **_: Any) -> None:
        if ctx.invoked_subcommand is not None:
            return
        try:
            params = from_mapping(plugin.Params, _given(ctx, plugin.Params), f"{name!r}")
        except ConfigError as problem:
            if ctx.meta.get(PARAMS):
                raise
            raise UsageError(problem.message, problem.hint) from None  # of options that contradict
        runner(ctx.obj, plugin.name, params)

    declared = list(specs(plugin.Params))
    mode = selector(plugin.Params)
    common = [one for one in declared if one.info.modes is None and not one.info.commands]
    text = plugin.help if plugin.help.endswith(".") else plugin.help + "."
    more = inspect.cleandoc(type(plugin).__doc__ or "").partition("\n\n")[2]
    settings: dict[str, Any] = {
        "callback": callback,
        "params": options_of(common),
        "help": "\n\n".join(filter(None, (text, more, *map(_described, common)))),
        "short_help": text,
    }
    if mode is None:
        return click.Command(name, **settings)
    group = _Modes(name, invoke_without_command=mode.has_default, **settings)
    for value, about in (mode.info.commands or {}).items():
        own = [one for spec in declared if (one := spec.in_mode(value))]
        group.add_command(click.Command(value, callback=callback, params=options_of(own), help=about))
    return group


def _described(spec: ParamSpec) -> str:
    """The description of an argument, which click prints nowhere; empty for an option."""
    if not spec.info.argument:
        return ""
    default = f"; {spec.default} by default" if spec.has_default else ""
    what = f"is one of {', '.join(spec.info.choices)}" if spec.info.choices else f"is {spec.info.help}"
    return f"{metavar_of(spec)} {what}{default}."


def _given(ctx: click.Context, params: type) -> dict[str, Any]:
    """What the command line says of a plugin, its sub-command included, over what `--params` say."""
    values = dict(ctx.meta.get(PARAMS) or {})
    mode = selector(params)
    if mode is not None and ctx.parent is not None and isinstance(ctx.parent.command, _Modes):
        values |= {mode.name: ctx.command.name, **_explicit(ctx.parent)}
    return values | _explicit(ctx)


def _explicit(ctx: click.Context) -> dict[str, Any]:
    """The parameters that the command line names; the others have their defaults."""
    source, default = ctx.get_parameter_source, click.core.ParameterSource.DEFAULT
    return {name: value for name, value in ctx.params.items() if source(name) is not default}


def with_params(ctx: click.Context, values: Mapping[str, Any]) -> dict[str, Any]:
    """`values` of a command that a plugin brings, with those of `--params` if the option was not given."""
    return {**values, **(ctx.meta.get(PARAMS) or {}), **_explicit(ctx)}


def own_command(plugin: Any) -> click.Command | None:
    """The click command that a plugin brings as its attribute `command`: itself, or as `"module:name"`."""
    command = getattr(plugin, "command", None)
    if isinstance(command, str):
        from importlib import import_module

        module, _, name = command.partition(":")
        command = getattr(import_module(module), name)
    return command if isinstance(command, click.Command) else None
