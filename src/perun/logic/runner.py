"""How the click command of a plugin starts it (manual 4.2 and 5.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from perun.profile.factory import Profile


def run_collector_from_cli_context(
    ctx: click.Context, collector_name: str, params: Mapping[str, Any]
) -> None:
    """Collect with the named collector, with the options of the `perun collect` that is running.

    :param params: the options of the collector's own command.
    """
    ctx.obj.run_collector(collector_name, dict(params))


def run_postprocessor_on_profile(
    profile: Profile, postprocessor_name: str, params: Mapping[str, Any]
) -> None:
    """Postprocess `profile` with the named postprocessor, under the `perun postprocessby` that is running.

    :param params: the options of the postprocessor's own command.
    """
    click.get_current_context().obj.run_postprocessor(profile, postprocessor_name, dict(params))
