"""How large mutations may get: `--max-size`, `--max-size-increase`, `--max-size-ratio` (manual 10.3.1)."""

from __future__ import annotations

from typing import Final, NamedTuple

from perun.errors import UsageError

INCREASE: Final = 1_000_000


class SizeLimit(NamedTuple):
    """The limit as the user gives it: at most one of these, else :data:`INCREASE` more than the seeds.

    :param absolute: bytes. :param increase: bytes more than the largest seed. :param ratio: times that.
    """

    absolute: int | None = None
    increase: int | None = None
    ratio: float | None = None

    def check(self) -> None:
        """:raises UsageError: if they contradict each other."""
        options = {
            "--max-size": self.absolute,
            "--max-size-increase": self.increase,
            "--max-size-ratio": self.ratio,
        }
        given = [name for name, value in options.items() if value is not None]
        if len(given) > 1:
            raise UsageError(f"{' and '.join(given)} limit the same size", "give one of them")

    def of(self, largest: int) -> int:
        """Bytes of the largest mutation, where the largest seed has so many; no less than that."""
        if self.absolute is not None:
            return max(largest, self.absolute)
        if self.ratio is not None:
            return max(largest, int(largest * self.ratio))
        return largest + (INCREASE if self.increase is None else self.increase)
