"""Where a chart goes: to a page, whose name is the answer, or to the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, TextIO

from perun.errors import UsageError

if TYPE_CHECKING:
    from perun.plugin.api import ViewContext
    from perun.profile.factory import Profile
    from perun.view._common.chart import Chart


class Output(NamedTuple):
    """What the user said about where charts go.

    :param view: the name of the view, for the name of a file. :param filename: empty where none was given.
    :param browse: open the page in the browser. :param terminal: draw in the terminal.
    """

    view: str
    filename: str
    browse: bool
    terminal: bool


def write(charts: Sequence[Chart], output: Output, profile: Profile, out: TextIO, ctx: ViewContext) -> None:
    """Write the charts to one page, and its name to `out`; or draw the first of them on `out`.

    :raises UsageError: where the options do not go together, or the file cannot be written.
    """
    if output.terminal:
        if output.filename or output.browse:
            option = "--filename" if output.filename else "--view-in-browser"
            raise UsageError(f"--terminal and {option} do not go together", "leave out one of them")
        from perun.view._common.screen import Screen
        from perun.view._common.terminal import drawn

        out.write(drawn(charts[0], Screen.of(out, ctx)))
        if len(charts) > 1:
            ctx.note(f"drawn is the first of {len(charts)} charts; choose one with --uid")
        return
    from perun.view._common.browser import open_in_browser
    from perun.view._common.files import destination
    from perun.view._common.plot import write_plots

    path = destination(output.filename, output.view, profile)
    write_plots(path, charts)
    out.write(f"{path}\n")
    if output.browse:
        open_in_browser(path, ctx)
