"""Tables with one numpy array for each column (structure of arrays), so that no loop goes over rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
_TYPES: Final = {"Ints": np.int64, "Bools": np.bool_, "Floats": np.float64}


@dataclass(frozen=True, eq=False)
class Columns:
    """Base of tables: each field is one column, an array of shape (rows,), annotated `Ints`,
    `Bools` or `Floats`.

    Iterating yields the columns in the order of the fields. The length is the number of rows.
    """

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return (getattr(self, field.name) for field in fields(self))

    def __len__(self) -> int:
        return len(next(iter(self)))

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(field.name for field in fields(cls))

    @classmethod
    def empty(cls) -> Self:
        """A table without rows."""
        return cls(*(np.empty(0, _TYPES[str(field.type)]) for field in fields(cls)))

    @classmethod
    def joined(cls, tables: Sequence[Self]) -> Self:
        """The rows of all tables, one table after the other; an empty table for no tables."""
        if len(tables) == 1:
            return tables[0]
        return cls(*map(np.concatenate, zip(*tables, strict=True))) if tables else cls.empty()

    def where(self, rows: Any) -> Self:
        """The rows that a mask, an array of positions or a slice selects."""
        return type(self)(*(column[rows] for column in self))

    def replace(self, **columns: NDArray[Any]) -> Self:
        """The table with other values in the named columns."""
        return replace(self, **columns)
