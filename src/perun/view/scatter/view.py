"""The scatter view: one key over another as points, with the models of each uid (manual 6.1.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, TextIO

from perun.plugin.api import ALONE, Readiness, ViewContext
from perun.view.scatter.params import ScatterParams

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from perun.profile.factory import Profile


class ScatterView:
    """Interactive visualization of resources and models in scatter plot format.

    Resources are shown as points, the models that the profile has as lines. One page holds all uids, to be
    chosen from; very many points are shown as the density of them.
    """

    name: ClassVar[str] = "scatter"
    help: ClassVar[str] = "Interactive visualization of resources and models in scatter plot format."
    Params: ClassVar[type] = ScatterParams

    def readiness(self, environ: Mapping[str, str]) -> Iterator[Readiness]:
        """Whether pages can be written here."""
        from perun.view._common.plot import readiness

        return readiness()

    def render(self, profile: Profile, params: ScatterParams, out: TextIO, ctx: ViewContext = ALONE) -> None:
        """Write the charts to a page, whose name `out` gets, or the first of them as text to `out`.

        :raises UsageError: where a key is in no resource or has no numbers, no resource has the uid, or the
            file cannot be written.
        :raises ProfileError: where the profile has no resources.
        """
        from perun.view._common.output import Output, write
        from perun.view.scatter.charts import charts

        output = Output(self.name, params.filename, params.view_in_browser, params.terminal)
        write(charts(profile, params), output, profile, out, ctx)
