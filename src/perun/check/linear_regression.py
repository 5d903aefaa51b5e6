"""Linear Regression: the difference of the best models, and whether it is a line (manual 8.2.5)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from perun.check._common.model_changes import DifferenceParams
from perun.plugin.api import CheckContext
from perun.profile.changes import DegradationInfo

if TYPE_CHECKING:
    from perun.profile.factory import Profile


class LinearRegression:
    """Reports every uid, also the unchanged ones; rates are in percent of the baseline.

    Whether and how much a uid changed is what FAST says as well. The type of a change is that of a linear
    regression of the difference on x: `constant`, `linear`, `quadratic` or `other`.
    """

    name: ClassVar[str] = "linear_regression"
    short: ClassVar[str] = "LREG"
    help: ClassVar[str] = (
        "Compares the best models of each uid: 25 % more is a degradation, of a type by linear regression."
    )
    Params: ClassVar[type] = DifferenceParams

    def compare(
        self, baseline: Profile, target: Profile, params: DifferenceParams, ctx: CheckContext
    ) -> Iterator[DegradationInfo]:
        """One change for each uid, in the order of their names, see :mod:`perun.check._common.differences`.

        :raises ProfileError: where one of the profiles has no models of a regression analysis.
        """
        from perun.check._common.model_changes import changes, straight

        yield from changes(baseline, target, params, straight)


PLUGIN = LinearRegression
