"""Perun as it is installed by default: the library of an extra is imported by what needs it alone."""

from __future__ import annotations

import subprocess
import sys

EXTRAS = (
    "anyio", "bokeh", "cryptography", "dask", "distributed", "jinja2", "matplotlib", "mcp", "mcp_types",
    "memray", "obstore", "pandas",
    "psycopg", "pyarrow", "pycparser", "sqlalchemy", "starlette", "uvicorn", "z3",
)  # fmt: skip
NEED_THEM = {
    "perun.cli.commands.web_serve", "perun.web.server", "perun.web.serving",
    "perun.bounds.analysis", "perun.bounds.front.dialect", "perun.bounds.front.parsing",
    "perun.bounds.front.preprocessing", "perun.bounds.front.read", "perun.bounds.front.unit",
    "perun.bounds.lowering", "perun.bounds.serving",
}  # fmt: skip
"""Modules that are imported only where the extra is there: for `perun web serve` and bounds."""
PROGRAMS = ("perun.__main__", "perun.island.__main__", "perun.island.agent", "perun.island.program",
            "perun.collect.memory.python_agent")  # fmt: skip
CODE = f"""
import importlib, pathlib, sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {EXTRAS!r}:
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Missing())
import perun
folder = pathlib.Path(perun.__file__).parent
for file in folder.rglob("*.py"):
    module = ".".join(file.relative_to(folder.parent).with_suffix("").parts).removesuffix(".__init__")
    if module not in {PROGRAMS!r}:
        try:
            importlib.import_module(module)
        except ModuleNotFoundError:
            print(module)
"""


def test_only_what_needs_an_extra_imports_it() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    found = set(done.stdout.split())
    assert {one for one in found if not one.startswith("perun.bounds.lowering.")} == NEED_THEM
