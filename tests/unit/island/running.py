"""Runs programs with a recorder in their Python, which knows nothing of Perun."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from perun.island import record

PACKAGE = Path(record.__file__).parent
LOADED = f"""\
import sys, types
package = types.ModuleType("_perun_island")
package.__path__ = [{str(PACKAGE)!r}]
sys.modules["_perun_island"] = package
from _perun_island.recorder import open_recorder
from _perun_island import hooks
"""
RUN = (
    LOADED
    + """\
folder, native, all_calls, program, *sys.argv[1:] = sys.argv[1:]
sys.argv[0] = program
recorder = open_recorder(folder, native == "native")
uninstall = hooks.install(recorder, LIMITS, all_calls=all_calls == "all")
def run():
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    module.recorder, module.uninstall = recorder, uninstall
    sys.path[0] = os.path.dirname(program)
    exec(compile(open_code(program).read(), program, "exec"), vars(module))
import os
from io import open_code
import atexit
atexit.register(recorder.close)
del atexit
run()
"""
)


def recorded(
    program: Path | str, folder: Path, native: bool, *arguments: str | Path, python: str = sys.executable,
    limits: str = "LIMITS = None", all_calls: bool = False, **options: Any
) -> subprocess.CompletedProcess[str]:  # fmt: skip
    """Run a program, or the text of one, recorded into a new folder."""
    path = program if isinstance(program, Path) else written(folder.with_name(f"{folder.name}.py"), program)
    folder.mkdir()
    how = [str(folder), "native" if native else "pure", "all" if all_calls else ""]
    argv = [python, "-c", limits + "\n" + RUN, *how, str(path), *map(str, arguments)]
    return run(argv, **options)


def alone(
    program: Path | str, folder: Path, *arguments: str | Path, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a program without a recorder."""
    path = program if isinstance(program, Path) else written(folder.with_name(f"{folder.name}.py"), program)
    return run([options.pop("python", sys.executable), str(path), *map(str, arguments)], **options)


def run(argv: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONHASHSEED": "0"}
    return subprocess.run(
        argv, capture_output=True, text=True, check=False, env=environ, input="given\n", **options
    )


def written(path: Path, text: str) -> Path:
    path.write_text(text, "utf-8")
    return path


def recordings(folder: Path) -> list[record.Recording]:
    """What the processes of a program recorded, the first one first."""
    found = [record.read(path) for path in folder.glob("rec.*")]
    return sorted(found, key=lambda one: one.started)


def names(recording: record.Recording) -> list[tuple[str, int]]:
    """API and amount of each call of the first thread."""
    return [(recording.apis[call.api].name, call.amount) for call in recording.of_thread(0)]
