"""What a campaign looks like: `index.html` and the two time series as PDF, in the folder of its results."""

from __future__ import annotations

import os
from pathlib import Path

from perun.core import atomic
from perun.core.extras import install_command
from perun.core.regular import read_regular
from perun.fuzz.pages import drawing
from perun.fuzz.pages.index import FILE, index
from perun.fuzz.results import GRAPHS, Campaign
from perun.pages.document import encodable

_MOST_BYTES = 64 * 1024 * 1024


def write(folder: Path, campaign: Campaign, *, plots: bool = True) -> tuple[str, ...]:
    """Write `index.html`, and the time series as PDF unless without `plots`.

    :return: notes for the user: that matplotlib is not installed, and how it is.
    :raises OSError: if a file cannot be written.
    """

    def read(name: str) -> bytes | None:
        # A name of a file that a stranger wrote must not lead out of the folder, not by a link either.
        try:
            path = Path(os.path.realpath(folder / name))
            inside = path.is_relative_to(os.path.realpath(folder))
            return read_regular(path, _MOST_BYTES) if inside else None
        except (OSError, ValueError):
            return None

    atomic.write(folder / FILE, encodable(index(campaign, read)).encode())
    return _write_graphs(folder / GRAPHS, campaign) if plots else ()


def _write_graphs(folder: Path, campaign: Campaign) -> tuple[str, ...]:
    try:
        for name, title, label, series in (
            ("coverage", "Executed lines", "ratio of executed lines", campaign.coverage),
            ("degradations", "Slow inputs", "slow inputs", campaign.degradations),
        ):
            atomic.write(folder / drawing.FILES[name], drawing.time_series(series, title, label))
    except ImportError:
        return (
            "the time series are not written as PDF, as matplotlib is not installed; install it with: "
            f"{install_command('fuzz')}; index.html has them",
        )
    return ()
