"""Fast Check: the difference of the best models, and the best model of the difference (manual 8.2.4)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from perun.check._common.model_changes import DifferenceParams
from perun.plugin.api import CheckContext
from perun.profile.changes import DegradationInfo

if TYPE_CHECKING:
    from perun.profile.factory import Profile


class FastCheck:
    """Reports every uid, also the unchanged ones; rates are in percent of the baseline.

    The type of a change is the best model of a full regression of the difference: `constant`, `linear`,
    `logarithmic`, `quadratic`, `power` or `exponential`.
    """

    name: ClassVar[str] = "fast_check"
    short: ClassVar[str] = "FAST"
    help: ClassVar[str] = (
        "Compares the best models of each uid: 25 % more is a degradation, of a type by full regression."
    )
    Params: ClassVar[type] = DifferenceParams

    def compare(
        self, baseline: Profile, target: Profile, params: DifferenceParams, ctx: CheckContext
    ) -> Iterator[DegradationInfo]:
        """One change for each uid, in the order of their names, see :mod:`perun.check._common.differences`.

        :raises ProfileError: where one of the profiles has no models of a regression analysis.
        """
        from perun.check._common.model_changes import changes, regression

        yield from changes(baseline, target, params, regression)


PLUGIN = FastCheck
