"""The command `regression-analysis` of `perun postprocessby` (manual 3.4).

It is as the parameters declare it, except that `-m` has no default and some options have a second spelling.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import click

from perun.plugin.params import specs
from perun.postprocess.regression_analysis.postprocessor import RegressionAnalysis, RegressionParams

_SPECS: Final = {spec.name: spec for spec in specs(RegressionParams)}
_Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def _option(name: str, *spellings: str, **settings: Any) -> _Decorator:
    spec = _SPECS[name]
    if spec.info.choices:
        settings["type"] = click.Choice(spec.info.choices)
    elif spec.type is int:
        settings |= {"type": click.IntRange(min=int(spec.info.minimum or 0)), "show_default": True}
    if not settings.get("required"):
        settings["default"] = spec.default
    return click.option(
        *spec.flags, *spellings, name, help=spec.info.help, metavar=spec.info.metavar or None, **settings
    )


@click.command("regression-analysis", help=f"{RegressionAnalysis.help}\n\n{RegressionAnalysis.text}")
@_option("method", required=True)
@_option("regression_models", "--regression-models", multiple=True)
@_option("steps")
@_option("depending_on")
@_option("of", "--of-key")
@_option("seed")
@click.pass_context
def regression_analysis(context: click.Context, /, **options: Any) -> None:
    """Process the profile of `postprocessby`."""
    context.obj.run_postprocessor(context.obj.profile, RegressionAnalysis.name, RegressionParams(**options))
