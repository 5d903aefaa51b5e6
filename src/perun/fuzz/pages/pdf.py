"""The two time series as PDF (manual 9.8), which matplotlib draws."""

from __future__ import annotations

import io
from typing import Final

from perun.fuzz.results import Series

FILES: Final = {"coverage": "coverage_ts.pdf", "degradations": "degradations_ts.pdf"}
_COLOURS: Final = ("#e69f00", "#d55e00", "#cc79a7")
_NAMES: Final = ("first quartile", "second quartile", "third quartile")


def time_series(series: Series, title: str, label: str) -> bytes:
    """A series over time with the places of its quartiles, as the bytes of a PDF.

    :raises ImportError: where matplotlib is not installed.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.add_subplot()
    axes.step(
        [one.seconds for one in series.points],
        [one.value for one in series.points],
        where="post",
        color="#0072b2",
    )
    for name, colour, one in zip(_NAMES, _COLOURS, series.quartiles(), strict=False):
        axes.axvline(one.seconds, color=colour, linestyle="--", linewidth=1)
        axes.axhline(one.value, color=colour, linestyle=":", linewidth=1)
        axes.plot([one.seconds], [one.value], "o", color=colour, label=f"{name}: {one.value:.4g}")
    axes.set(title=title, xlabel="time [s]", ylabel=label)
    if series.points:
        axes.legend()
    written = io.BytesIO()
    # No date, so that the same results make the same file.
    figure.savefig(written, format="pdf", metadata={"CreationDate": None})
    return written.getvalue()
