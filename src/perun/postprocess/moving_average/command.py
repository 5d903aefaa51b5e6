"""The command `moving-average` of `perun postprocessby`, with options before and after its sub-command.

Without a sub-command it is `sma` (manual 3.4). Each option has a spelling with dashes besides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import click

from perun.errors import UsageError
from perun.models.moving.decay import DECAYS
from perun.plugin.params import specs
from perun.postprocess.moving_average.postprocessor import MovingAverage, MovingAverageParams

_GROUP_OPTIONS: Final = "perun.postprocess.moving_average.options"
_SPECS: Final = {spec.name: spec for spec in specs(MovingAverageParams)}
_Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def _option(name: str, **settings: Any) -> _Decorator:
    spec = _SPECS[name]
    dashed = "--" + name.replace("_", "-")
    flags = spec.flags if dashed in spec.flags else [*spec.flags, dashed]
    return click.option(*flags, name, metavar=spec.info.metavar or None, help=spec.info.help, **settings)


_AT_LEAST_ONE: Final = {"type": click.IntRange(min=1)}
_width = _option("window_width", **_AT_LEAST_ONE)
_center = click.option("--center/--no-center", "center", default=None, help=_SPECS["center"].info.help)


@click.group(
    "moving-average",
    help=MovingAverage.help + "\n\n" + (MovingAverage.__doc__ or "").partition("\n\n")[2],
    invoke_without_command=True,
)
@_option("min_periods", **_AT_LEAST_ONE)
@_option("of_key")
@_option("per_key")
@click.pass_context
def moving_average(context: click.Context, /, **options: Any) -> None:
    """Keep the options for the sub-command, which does the work."""
    context.meta[_GROUP_OPTIONS] = options
    if context.invoked_subcommand is None:
        _process(context, "sma", {})


@moving_average.command("sma")
@_option("window_type", type=click.Choice(_SPECS["window_type"].info.choices))
@_center
@_width
@click.pass_context
def sma(context: click.Context, /, **options: Any) -> None:
    """Simple Moving Average.

    The mean of the points in a window around each point (--center), or of the point and those before it
    (--no-center), weighted by a window function where --window_type names one. At both ends a window has
    not enough points, which gives NaN unless --min_periods, before the sub-command, allows fewer.
    """
    _process(context, "sma", options)


@moving_average.command("smm")
@_center
@_width
@click.pass_context
def smm(context: click.Context, /, **options: Any) -> None:
    """Simple Moving Median.

    As the Simple Moving Average, but the median of the points in the window, which cannot be weighted.
    """
    _process(context, "smm", options)


@moving_average.command("ema")
@_option("decay", nargs=2, type=(click.Choice(tuple(DECAYS)), float))
@click.pass_context
def ema(context: click.Context, /, **options: Any) -> None:
    """Exponential Moving Average.

    The mean of each point and all those before it, whose weights decrease exponentially by the factor
    1 - alpha. It is given by --decay as one of

    \b
    com       center of mass, alpha = 1 / (1 + com), for com >= 0
    span      alpha = 2 / (span + 1), for span >= 1
    halflife  alpha = 1 - exp(log(0.5) / halflife), for halflife > 0
    alpha     itself, 0 < alpha <= 1

    Without it com is 0, which leaves each point as it is.
    """
    _process(context, "ema", options)


def _process(context: click.Context, method: str, options: dict[str, Any]) -> None:
    given = {**context.meta[_GROUP_OPTIONS], **options}
    given = {name: value for name, value in given.items() if value is not None}
    if "decay" in given:
        given["decay"] = tuple(map(str, given["decay"]))
    try:
        params = MovingAverageParams(moving_method=method, **given)
    except ValueError as problem:
        raise UsageError(f"moving-average {method}: {problem}") from None
    context.obj.run_postprocessor(context.obj.profile, MovingAverage.name, params)
