"""The base of the views that draw charts, which differ only in the charts that they make."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Generic, Protocol, TextIO, TypeVar

from perun.plugin.api import NO_VIEW_CONTEXT, Readiness, ViewContext

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from perun.profile.factory import Profile
    from perun.view._common.chart import Chart


class ChartParams(Protocol):
    """The parameters of every chart view: where the charts go."""

    @property
    def filename(self) -> str:
        """The page to write; empty for a new file named after the profile."""

    @property
    def view_in_browser(self) -> bool:
        """Whether to open the page in the browser."""

    @property
    def terminal(self) -> bool:
        """Whether to draw as text on the output instead of writing a page."""


P = TypeVar("P", bound=ChartParams)


class ChartView(ABC, Generic[P]):
    """A view whose charts go to a page or to the terminal; a subclass makes the charts."""

    name: ClassVar[str]
    DRAWN: ClassVar[int] = 1
    """How many charts are drawn in the terminal."""
    CHOSEN_BY: ClassVar[str] = "choose another one with --uid"
    """What shows the other ones."""

    @abstractmethod
    def charts(self, profile: Profile, params: P) -> Sequence[Chart]:
        """The charts of the profile, at least one; the first is shown first."""

    def readiness(self, environ: Mapping[str, str]) -> Iterator[Readiness]:
        """What this machine lacks to write pages."""
        from perun.view._common.plot import readiness

        return readiness()

    def render(self, profile: Profile, params: P, out: TextIO, ctx: ViewContext = NO_VIEW_CONTEXT) -> None:
        """Write the charts to a page and its name to `out`, or draw the first ones on `out` as text.

        :raises UsageError: if no resource has a key, options contradict each other, or the file cannot be
            written.
        :raises ProfileError: if the profile has no resources.
        :raises PluginError: if a page is wanted and Bokeh is not installed.
        """
        charts = self.charts(profile, params)
        if params.terminal:
            self._draw(charts, params, out, ctx)
            return
        from perun.view._common.files import destination, report
        from perun.view._common.plot import write_plots

        path = destination(params.filename, self.name, profile)
        write_plots(path, charts)
        report(path, out, ctx, browse=params.view_in_browser)

    def _draw(self, charts: Sequence[Chart], params: P, out: TextIO, ctx: ViewContext) -> None:
        from perun.errors import UsageError
        from perun.view._common.screen import Screen
        from perun.view._common.terminal import chart_text

        if params.filename or params.view_in_browser:
            option = "--filename" if params.filename else "--view-in-browser"
            raise UsageError(
                f"--terminal and {option} exclude each other", f"leave out --terminal or {option}"
            )
        screen = Screen.of(out, ctx)
        out.write("\n".join(chart_text(one, screen) for one in charts[: self.DRAWN]))
        if len(charts) > self.DRAWN:
            which = "the first" if self.DRAWN == 1 else f"the first {self.DRAWN}"
            ctx.note(f"the terminal shows {which} of {len(charts)} charts; {self.CHOSEN_BY}")
