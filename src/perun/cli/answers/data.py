"""Parts of the JSON answers that several verbs share (docs/json.md)."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any, Final, TextIO

from perun.profile.changes import DegradationInfo

TYPE_COLOURS = {"bound": "magenta", "memory": "green", "mixed": "cyan", "time": "blue"}
"""The colours of the types of profiles, in every list."""
CHUNK: Final = 200
"""Items of a list that become JSON at once: so many fit into the caches of a processor."""


def write_json(out: TextIO, answer: Mapping[str, Any]) -> None:
    """Write an object of JSON, the items of its lists one a line: readable, and quick for thousands.

    A list may be an iterator, whose items are made as they are written.
    """
    out.write("{")
    separator = "\n"
    for key, value in answer.items():
        out.write(f"{separator}{json.dumps(key)}: ")
        if isinstance(value, (list, Iterator)):
            _write_list(out, iter(value))
        else:
            out.write(json.dumps(value))
        separator = ",\n"
    out.write("\n}\n")


def _write_list(out: TextIO, items: Iterator[Any]) -> None:
    before = "[\n "
    while chunk := list(itertools.islice(items, CHUNK)):
        # One call for many items takes much less than one for each. Quotes within texts are escaped, so that
        # what is replaced stands between objects only.
        text = json.dumps(chunk)[1:-1].replace('}, {"', '},\n {"')
        out.write(before + text)
        before = ",\n "
    out.write("[]" if before[0] == "[" else "\n]")


def change_data(change: DegradationInfo) -> dict[str, Any]:
    """A change as JSON data; interval, p_value, sizes, detectable and rule are null if the check does not
    know them, and so are the values, percent and factor of what is no number.

    A rate, confidence or bound that is no finite number is null, too.
    """
    from perun.cli.answers.changes import amounts_of, percent_interval, ratio_of

    ratio, bounds = ratio_of(change), percent_interval(change)
    before, after = (
        None if one is None else {"value": float(one.value), "unit": one.unit} for one in amounts_of(change)
    )
    return {
        "result": change.result.name,
        "location": change.location,
        "type": change.type,
        "from": change.from_baseline,
        "to": change.to_target,
        "rate": finite(change.rate_degradation),
        "relative_rate": finite(change.rate_degradation_relative),
        "confidence_type": change.confidence_type,
        "confidence": finite(change.confidence_rate),
        "interval": None if change.interval is None else [finite(bound) for bound in change.interval],
        "p_value": finite(change.p_value),
        "sizes": None if change.sizes is None else list(change.sizes),
        "detectable": finite(change.detectable),
        "rule": change.rule or None,
        **_verdict_data(change),
        "from_value": before,
        "to_value": after,
        "factor": finite(ratio),
        "percent": None if ratio is None else finite(100 * (ratio - 1)),
        "percent_interval": None if bounds is None else [finite(bound) for bound in bounds],
    }


def _verdict_data(change: DegradationInfo) -> dict[str, Any]:
    """What lists and histories say of a difference as well, by the same names; without a ratio, or where the
    method is another one, that is null."""
    from perun.measurement.verdict import UNDECIDED

    known = change.type == "ratio" and change.p_value is not None
    low, high = (change.interval if known else None) or (None, None)
    return {
        "ratio": finite(change.rate_degradation) if known else None,
        "ratio_low": finite(low),
        "ratio_high": finite(high),
        "verdict": change.result.name,
        "reason": change.rule or None,
        "decides": change.result not in UNDECIDED,
    }


def finite(number: float | None) -> float | None:
    """The number; None if it is infinite or none at all, which JSON has no words for."""
    return number if number is not None and isfinite(number) else None
