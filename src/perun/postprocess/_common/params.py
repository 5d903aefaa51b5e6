"""Parameters that several postprocessors have."""

from __future__ import annotations

from typing import Any

from perun.plugin.params import param


def of_key() -> Any:
    """The dependent field of models, a `str`."""
    return param(
        "",
        short="-of",
        metavar="<of_resource_key>",
        help="The dependent field (Y) of the models, e.g. amount. By default it is chosen from the profile.",
    )


def per_key() -> Any:
    """The independent field of models, a `str`."""
    return param(
        "",
        short="-per",
        metavar="<per_resource_key>",
        help="The independent field (X) of the models, e.g. structure-unit-size. By default it is chosen "
        "from the profile.",
    )
