"""Polynomial Regression: the difference of the best models, and its degree (manual 8.2.6)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from perun.check._common.model_changes import DifferenceParams
from perun.plugin.api import CheckContext
from perun.profile.changes import DegradationInfo

if TYPE_CHECKING:
    from perun.profile.factory import Profile


class PolynomialRegression:
    """Reports every uid, also the unchanged ones; rates are in percent of the baseline.

    Whether and how much a uid changed is what FAST says as well. The type of a change is the lowest degree of
    a polynomial that the difference is: `constant`, `linear`, `quadratic`, `cubic` or `other`.
    """

    name: ClassVar[str] = "polynomial_regression"
    short: ClassVar[str] = "PREG"
    help: ClassVar[str] = (
        "Compares the best models of each uid: 25 % more is a degradation, of a type by polynomial degree."
    )
    Params: ClassVar[type] = DifferenceParams

    def compare(
        self, baseline: Profile, target: Profile, params: DifferenceParams, ctx: CheckContext
    ) -> Iterator[DegradationInfo]:
        """One change for each uid, in the order of their names, see :mod:`perun.check._common.differences`.

        :raises ProfileError: where one of the profiles has no models of a regression analysis.
        """
        from perun.check._common.model_changes import changes, polynomial

        yield from changes(baseline, target, params, polynomial)


PLUGIN = PolynomialRegression
