"""`perun --metrics FILE ID`: how long a command took, for scripts that watch Perun itself."""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perun.core import atomic
from perun.core.errors import UsageError


class Metrics:
    """Measures from its creation to :meth:`write`, and adds one record to a JSON file of id -> record."""

    def __init__(self, path: Path, identifier: str, command: str) -> None:
        self._path = path
        self._identifier = identifier
        self._started = time.monotonic()
        self.values: dict[str, Any] = {"command": command}
        self._read()  # reports a wrong file before anything is done

    def _read(self) -> dict[str, Any]:
        try:
            content = json.loads(self._path.read_bytes() or b"{}")
        except FileNotFoundError:
            return {}
        except ValueError:
            content = None
        except OSError as problem:
            raise UsageError(f"--metrics: {self._path}: {problem.strerror}") from None
        if not isinstance(content, dict):
            raise UsageError(f"--metrics: {self._path} is not a JSON object", "name a new file")
        return content

    def add(self, phases: Mapping[str, float]) -> None:
        """Add the seconds of phases of the command's work, by their names, to those recorded so far."""
        total = self.values.setdefault("phases_s", {})
        for name, seconds in phases.items():
            total[name] = round(total.get(name, 0.0) + seconds, 6)

    def write(self, exit_code: int) -> None:
        """Add wall and CPU seconds (own and of children), peak memory in kB, and the exit code."""
        own = resource.getrusage(resource.RUSAGE_SELF)
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.values |= {
            "exit_code": exit_code,
            "wall_s": round(time.monotonic() - self._started, 6),
            "cpu_s": round(own.ru_utime + own.ru_stime, 6),
            "children_cpu_s": round(children.ru_utime + children.ru_stime, 6),
            "peak_memory_kb": own.ru_maxrss,
        }
        # Read again, as another command may have added its record meanwhile.
        content = {**self._read(), self._identifier: self.values}
        atomic.write(self._path, (json.dumps(content, indent=2) + "\n").encode())
