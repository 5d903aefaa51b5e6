"""The script that writes the numbers of a page as :mod:`perun.profile.amounts` does.

`numbers.js` has `perunNumber(value, unit, digits)`, and `perunTick(tick, ticks, unit)`, which writes all
ticks of an axis in one unit. Both take the units and the limits from Python.
"""

from __future__ import annotations

from perun.pages.document import embed_json, text_beside
from perun.profile.amounts import BITS, BYTES, PLAIN, SECONDS, SIZES, SIZES_OF_RATES, SMALLEST, TIMES, end_of


def numbers_script() -> str:
    """`numbers.js` with the units of this module, for a page; it defines `perunNumber` and `perunTick`."""
    units = {
        "times": {"factors": TIMES, "steps": SECONDS, "end": end_of(SECONDS)},
        "sizes": {"factors": SIZES, "steps": BYTES, "end": end_of(BYTES)},
        "plain": {"factors": {}, "steps": PLAIN, "end": end_of(PLAIN)},
        "rates": SIZES_OF_RATES,
        "bits": BITS,
        "smallest": SMALLEST,
    }
    return f"const perunUnits = {embed_json(units)};\n" + text_beside(__file__, "numbers.js")
