"""How unusual each of many differences is, by three measures of their spread.

* The modified z-score, 0.6745 |d - median| / MAD, is that of Iglewicz and Hoaglin: How to Detect and Handle
  Outliers, ASQC 1993, who call a score above 3.5 an outlier. MAD is the median of |d - median|, and 0.6745
  the MAD of the standard normal distribution.
* The multiple of the interquartile range says how far d lies outside the quartiles, (d - q3) / IQR or
  (q1 - d) / IQR; 1.5 is the fence of Tukey: Exploratory Data Analysis, 1977.
* The multiple of the standard deviation is |d| / sigma. It measures from zero, no change, and not from the
  mean: many differences that are alike are changes too, which the first two measures do not see.

Quartiles are interpolated linearly between the order statistics; sigma divides by n - 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Flags = NDArray[np.bool_]

NORMAL_MAD = 0.6745
MIN_DIFFERENCES = 3
"""Differences needed: of two, neither is more unusual than the other."""


class Spread(NamedTuple):
    """Where most of the differences lie.

    :param resolution: the smallest spread that is distinguished from none, so that no measure is infinite.
    """

    median: float
    mad: float
    q1: float
    q3: float
    resolution: float

    @classmethod
    def of(cls, differences: Floats, resolution: float) -> Spread:
        """The spread of `differences`, shape (n,), n > 0; `resolution` is greater than 0."""
        import numpy as np

        q1, median, q3 = np.percentile(differences, [25, 50, 75])
        mad = np.median(np.abs(differences - median))
        return cls(float(median), float(mad), float(q1), float(q3), resolution)

    def modified_z(self, differences: Floats) -> Floats:
        """The modified z-score of each, shape (n,)."""
        return NORMAL_MAD * abs(differences - self.median) / max(self.mad, self.resolution)

    def quartile_multiple(self, differences: Floats) -> Floats:
        """How many interquartile ranges each lies outside the quartiles; 0 between them, shape (n,)."""
        import numpy as np

        outside = np.maximum(np.maximum(differences - self.q3, self.q1 - differences), 0.0)
        return outside / max(self.q3 - self.q1, self.resolution)

    def away_from_zero(self, differences: Floats) -> Flags:
        """Which of them are more of a change than the median, in the same direction, shape (n,).

        A difference next to zero among many large ones is an outlier, but not a change.
        """
        import numpy as np

        same = np.sign(differences) == np.sign(differences - self.median)
        return np.asarray(same & (differences != 0))


def deviation_multiple(differences: Floats, usual: Floats, resolution: float) -> Floats:
    """|d| / sigma of each difference, shape (n,); sigma is that of the `usual` ones, shape (m,)."""
    import numpy as np

    sigma = float(np.std(usual, ddof=1)) if usual.size > 1 else 0.0
    return abs(differences) / max(sigma, resolution)
