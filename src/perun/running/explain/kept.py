"""The answers of `perun explain` as they are kept for the dashboard: a file for each explained version.

That is a cache: what was measured is registered, and explaining the version again makes the same answer.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from perun.core import atomic
from perun.plugin.api import MinorVersion
from perun.repository.repository import PERUN_FOLDER, Repository
from perun.running.explain.causes import cause_sentence, location_of
from perun.running.explain.costs import sentence
from perun.running.explain.data import CaseReport, Cause, CostChange, Explanation, FunctionChange, OtherFile
from perun.store import tree

FOLDER: Final = "cache/explained"
"""Where they lie, in `.perun`."""
_SUFFIX: Final = ".json"
_LARGEST: Final = 64 << 20


def folder_of(repo: Repository) -> Path:
    """The folder of the answers, there or not."""
    return repo.root / PERUN_FOLDER / FOLDER


def path_of(repo: Repository, checksum: str) -> Path:
    """The file of the answer of a version, there or not."""
    return folder_of(repo) / f"{checksum}{_SUFFIX}"


def keep(repo: Repository, checksum: str, answer: Mapping[str, Any]) -> None:
    """Keep the answer in place of an earlier one of the same version; where it cannot be written, it is not
    kept.

    :param answer: JSON, schema `perun.explain/1`.
    """
    with suppress(OSError):
        folder_of(repo).mkdir(parents=True, exist_ok=True)
        data = json.dumps(answer).encode("utf-8", "surrogatepass")
        atomic.write(path_of(repo, checksum), data)


def versions(repo: Repository) -> list[str]:
    """The checksums of the versions with an answer, sorted."""
    try:
        names = os.listdir(folder_of(repo))
    except OSError:
        return []
    found = (name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX))
    return sorted(name for name in found if tree.is_minor_version(name))


def answer(repo: Repository, checksum: str) -> bytes | None:
    """The answer of the version as JSON, schema `perun.explain/1`; None if there is none.

    :raises DamagedStore: if it is there and cannot be read.
    """
    if not tree.is_minor_version(checksum):
        return None
    return tree.read(path_of(repo, checksum), _LARGEST)


# The answer of `perun explain` as JSON, schema `perun.explain/1`.


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
        "causes": [_cause_data(one) for one in case.causes],
        "totals": [_cost_data(cost) for cost in case.totals],
        "functions": [_function_data(one) for one in case.functions],
        "smaller": case.smaller,
        "remarks": list(case.remarks),
        "unseen": list(case.unseen),
    }


def _cause_data(one: Cause) -> dict[str, Any]:
    amounts = one.amounts or (None,) * len(one.lines)
    return {
        "kind": one.kind,
        "name": one.name,
        "location": location_of(one),
        "path": one.path,
        "lines": [one.first, one.last] if one.first else None,
        "sentence": cause_sentence(one),
        "before": one.before,
        "after": one.after,
        "share": one.share,
        "effects": [effect._asdict() for effect in one.effects],
        "diff": [{**line._asdict(), "cost": cost} for line, cost in zip(one.lines, amounts, strict=True)],
    }


def _cost_data(cost: CostChange) -> dict[str, Any]:
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
