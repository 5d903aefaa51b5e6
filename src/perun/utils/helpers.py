"""Decorators for the click commands of plugins (manual 1.6.3)."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import TypeVar

import click

R = TypeVar("R")

__all__ = ["pass_profile"]


def pass_profile(function: Callable[..., R]) -> Callable[..., R]:
    """Give the profile that is shown or postprocessed to a click command, as its first argument."""

    @click.pass_context
    def with_profile(ctx: click.Context, /, *args: object, **kwargs: object) -> R:
        return ctx.invoke(function, ctx.obj.profile, *args, **kwargs)

    return update_wrapper(with_profile, function)
