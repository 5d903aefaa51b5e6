"""numpy, imported where it is first used: views and formats are loaded to show their options, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    np = numpy
    Floats = NDArray[np.float64]
    Codes = NDArray[np.intp]
else:

    class _Numpy:
        """Stands for it."""

        def __getattr__(self, name: str) -> object:
            import numpy

            setattr(self, name, getattr(numpy, name))
            return getattr(numpy, name)

    np = _Numpy()
    Floats = Codes = object
