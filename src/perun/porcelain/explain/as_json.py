"""The answer of `perun explain` as JSON, schema `perun.explain/1`."""

from __future__ import annotations

from typing import Any

from perun.plugin.api import MinorVersion
from perun.porcelain.explain.data import CaseReport, Cost, Explanation, FunctionChange, OtherFile
from perun.porcelain.explain.report import sentence


def as_json(found: Explanation) -> dict[str, Any]:
    """It as JSON objects."""
    return {
        "schema": "perun.explain/1",
        "base": _version(found.base),
        "head": _version(found.head),
        "stored": found.stored,
        "notes": list(found.notes),
        "configurations": [_case_data(case) for case in found.cases],
        "others": [_other_data(other) for other in found.others],
    }


def _other_data(other: OtherFile) -> dict[str, Any]:
    return {**other._asdict(), "lines": [line._asdict() for line in other.lines]}


def _version(version: MinorVersion) -> dict[str, Any]:
    return {key: getattr(version, key) for key in ("checksum", "date", "author", "subject")}


def _case_data(case: CaseReport) -> dict[str, Any]:
    return {
        "command": case.name,
        "totals": [_cost_data(cost) for cost in case.totals],
        "functions": [_function_data(one) for one in case.functions],
        "smaller": case.smaller,
        "unseen": list(case.unseen),
    }


def _cost_data(cost: Cost) -> dict[str, Any]:
    return {
        "metric": cost.metric,
        "unit": cost.unit,
        "before": cost.before,
        "after": cost.after,
        "ratio": cost.ratio,
        "exact": cost.exact,
        "interval": None if cost.exact else cost.bounds,
        "ratio_low": cost.bounds and cost.bounds[0],
        "ratio_high": cost.bounds and cost.bounds[1],
        "location": cost.location or None,
        "verdict": cost.verdict and cost.verdict.name,
        "share": cost.share,
    }


def _function_data(one: FunctionChange) -> dict[str, Any]:
    return {
        "location": one.location,
        "function": one.name,
        "source": one.source,
        "path": one.path,
        "lines": [one.first, one.last] if one.first else None,
        "sentence": sentence(one),
        "costs": [_cost_data(cost) for cost in one.costs],
        "libraries": [part._asdict() for part in one.libraries],
        "sites": [site._asdict() for site in one.sites],
        "growth": one.growth._asdict() if one.growth else None,
        "new_callers": list(one.new_callers),
        "gone_callers": list(one.gone_callers),
        "moved_with": list(one.moved_with),
        "inlined": one.inlined,
        "changed_lines": one.changed_lines,
        "diff": [line._asdict() for line in one.lines],
        "near": [{"path": path, **line._asdict()} for path, line in one.near],
    }
