"""Writes the names of the benchmarks of a script of pyperf, in their order, and measures none.

It is a script, run with the Python of the project (3.9 or newer): `names.py SCRIPT OUT`.
"""

from __future__ import annotations

import importlib
import json
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def main(script: str, out: str) -> None:
    """Run the script, with a runner of pyperf that only notes what it is asked to measure."""
    names: list[str] = []
    sys.argv[:], sys.path[0] = [script], str(Path(script).parent)
    runner = importlib.import_module("pyperf").Runner

    def noting() -> Callable[..., None]:
        def note(_: Any, name: Any, *args: Any, **kwargs: Any) -> None:
            names.append(str(name).strip())

        return note

    for method in [one for one in dir(runner) if one.startswith("bench_") or one == "timeit"]:
        setattr(runner, method, noting())
    try:
        runpy.run_path(script, run_name="__main__")
    finally:
        Path(out).write_text(json.dumps(names))


if __name__ == "__main__":
    main(*sys.argv[1:])
