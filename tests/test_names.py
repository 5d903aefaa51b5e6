"""Each public class name is of one class, so that it says what it is and can be searched for."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "perun"
PUBLISHED = {"web/data/form.py", "fuzz/results.py"}
"""Modules whose names are those of definitions in `docs/schemas`, beside the names of the others."""
DOCUMENTED = {
    "Job": {"repository/jobs.py", "utils/structs.py"},
    "Session": {"cli/session.py", "profile/session.py"},
}
"""The manual or a page of the documentation has one of each."""
PAIRS = {
    "MovingAverage": {"models/moving_average.py", "postprocess/moving_average.py"},
    "Regressogram": {"models/regressogram.py", "postprocess/regressogram.py"},
}
"""A postprocessor has the name of the model that it makes."""


def test_a_public_class_name_is_of_one_class() -> None:
    modules: dict[str, set[str]] = defaultdict(set)
    for file in SOURCE.rglob("*.py"):
        module = file.relative_to(SOURCE).as_posix()
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and module not in PUBLISHED:
                modules[node.name].add(module)
    assert {name: own for name, own in modules.items() if len(own) > 1} == DOCUMENTED | PAIRS
