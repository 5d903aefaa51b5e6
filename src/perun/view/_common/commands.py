"""The commands of views that take a function as an argument before their options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from perun.plugin.params import ParamSpec, specs

_ARGUMENT = "function"


def with_function(view: Any, required: Sequence[str]) -> click.Command:
    """The command of a view, made from its parameters; the one called `function` is an argument.

    :param view: the class of the view. :param required: parameters that have to be given.
    """

    @click.pass_context
    def callback(context: click.Context, /, **values: Any) -> None:
        context.obj.render(view.name, view.Params(**values))

    declared = list(specs(view.Params))
    params: list[click.Parameter] = [
        _argument(one) if one.name == _ARGUMENT else _option(one, required) for one in declared
    ]
    (function,) = (one for one in declared if one.name == _ARGUMENT)
    doc = (
        f"{view.help}\n\n{view.__doc__}\n\n"
        f"<aggregation_function> is one of {', '.join(function.info.choices)}; {function.default} by default."
    )
    return click.Command(view.name, callback=callback, params=params, help=doc, short_help=view.help)


def _argument(spec: ParamSpec) -> click.Argument:
    return click.Argument(
        [spec.name],
        type=click.Choice(spec.info.choices),
        default=spec.default,
        required=False,
        metavar="[<aggregation_function>]",
    )


def _option(spec: ParamSpec, required: Sequence[str]) -> click.Option:
    needed = spec.name in required
    settings: dict[str, Any] = {} if needed else {"default": spec.default}
    if spec.type is bool:
        settings["is_flag"] = True
    if spec.info.metavar:
        settings["metavar"] = spec.info.metavar
    return click.Option(
        [*spec.flags, spec.name],
        help=spec.info.help,
        required=needed,
        show_default=bool(spec.default) or "/" in spec.flags[-1],
        **settings,
    )
