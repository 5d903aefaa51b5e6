"""Parameters that several postprocessors have."""

from __future__ import annotations

from typing import Any

from perun.plugin.params import param


def of_key() -> Any:
    """The field that models are made of, a `str`."""
    return param(
        "",
        short="-of",
        metavar="<of_resource_key>",
        help="Sets key for which we are finding the model (y-coordinates).",
    )


def per_key() -> Any:
    """The field that they depend on, a `str`."""
    return param(
        "",
        short="-per",
        metavar="<per_resource_key>",
        help="Sets the key that will be used as a source variable (x-coordinates).",
    )
