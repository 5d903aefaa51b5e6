"""The parameters of the scatter view."""

from __future__ import annotations

from dataclasses import dataclass

from perun.plugin.params import param
from perun.view._common import options


@dataclass(frozen=True)
class ScatterParams:
    """The keys to show, and where the charts go."""

    of: str = param(
        "amount", short="-o", metavar="<of_key>", help="The key whose values give the Y axis of the points."
    )
    per: str = param(
        "",
        short="-p",
        metavar="<per_key>",
        help="The key whose values give the X axis of the points. By default, the first of "
        "structure-unit-size, workload, order (of runs), snapshots, call-order and timestamp of which the "
        "profile has numbers.",
    )
    uid: tuple[str, ...] = param(
        (), metavar="<uid>", help="Show only this uid; may be repeated. All uids by default."
    )
    filename: str = options.filename()
    x_axis_label: str = options.axis_label("X")
    y_axis_label: str = options.axis_label("Y")
    x_scale: str = options.scale("X")
    y_scale: str = options.scale("Y")
    graph_title: str = options.title("chart")
    view_in_browser: bool = options.view_in_browser()
    terminal: bool = options.terminal()
