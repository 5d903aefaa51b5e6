"""Where a module may be imported inside a function: the rule of `docs/architecture.md`, "Local imports"."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "perun"

SLOW = {
    "anyio", "asyncio", "bokeh", "capstone", "click", "concurrent", "dask", "dataclasses", "distributed",
    "elftools", "http.client",
    "importlib.metadata", "ipaddress", "jinja2", "matplotlib",
    "mcp", "mcp_types", "memray", "msgspec", "multiprocessing", "numpy", "pandas", "puremagic", "pyarrow",
    "obstore", "boto3", "pycparser", "psycopg", "rich", "ruamel", "sqlalchemy", "scipy",
    "sqlite3", "tabulate", "unittest", "urllib.request", "xml", "z3",
}  # fmt: skip
"""Libraries that take milliseconds to import: whoever needs one may import it where it is needed."""

START_UP = {
    "__main__.py", "cli/__init__.py", "cli/answers/__init__.py", "cli/answers/changes.py",
    "cli/answers/data.py", "cli/answers/log.py", "cli/answers/status.py", "cli/answers/steps.py",
    "cli/boundary.py", "cli/main.py", "cli/pager.py", "cli/plugins.py", "cli/quick.py", "cli/session.py",
    "cli/streams.py", "cli/table.py", "core/atomic.py", "core/config/__init__.py", "core/config/convert.py",
    "core/config/layers.py", "core/config/reader.py", "core/config/schema.py", "core/errors.py",
    "core/process/command.py", "core/process/git.py", "core/regular.py", "history/acknowledged.py",
    "history/log.py", "history/status.py", "measurement/difference.py", "measurement/verdict.py",
    "plugin/loading.py", "profile/changes.py", "profile/head.py", "profile/helpers.py",
    "repository/lookup.py", "repository/repository.py", "repository/walking.py", "store/__init__.py",
    "store/cache.py", "store/changes.py", "store/files.py", "store/index.py", "store/pending.py",
    "store/summaries.py", "store/tree.py", "vcs/__init__.py", "vcs/_common/history.py",
    "vcs/_common/repository.py", "vcs/git.py",
}  # fmt: skip
"""What `perun status`, `perun log` or `perun --help` load, and the lazy tree of commands."""

BY_NAME = {"plugin/registry.py", "plugin/legacy/__init__.py"}
"""The one way from Perun to its plugins: what is found is loaded when it is used."""

DASHBOARD = {"web/data/pieces.py", "web/build.py", "web/server.py"}
"""What one kind of piece alone needs, such as a comparison, is loaded with the first of these: an update of a
site in which nothing changed, and the first page of a server, shall not wait for it."""

MEASURED = {
    "island/agent.py", "island/hooks/files.py", "island/hooks/sockets.py", "island/program.py",
    "island/recorder/__init__.py",
}  # fmt: skip
"""What a measured program loads, which must not load for it what it does not need itself."""

ALLOWED = {
    "cli": 30, "collect": 80, "history": 1, "native": 2, "pages": 1, "plugin": 5,
    "postprocess": 11, "profile": 15, "repository": 11, "running": 6, "utils": 1, "view": 10, "workload": 2,
}  # fmt: skip
"""Local imports in other modules, by package: numbers that may only shrink. Views and postprocessors are
loaded to show their options, too, so they import numpy and JSON where they need them."""


INDENTED = re.compile(r"(^[ \t]+|[:;][ \t]*)(import|from)\s", re.MULTILINE)
"""What every import inside of a function looks like, among others."""


def imported(node: ast.AST, inside: bool = False) -> Iterator[ast.Import | ast.ImportFrom]:
    """The import statements inside functions."""
    for child in ast.iter_child_nodes(node):
        if inside and isinstance(child, (ast.Import, ast.ImportFrom)):
            yield child
        is_function = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        yield from imported(child, inside or is_function)


def is_slow(statement: ast.Import | ast.ImportFrom) -> bool:
    names = [one.name for one in statement.names]
    if isinstance(statement, ast.ImportFrom):
        names = [statement.module or ""]
    return all(any(name == slow or name.startswith(f"{slow}.") for slow in SLOW) for name in names)


def local_imports() -> dict[str, list[str]]:
    """Those that the rule does not allow, as places in the source, by package."""
    found: dict[str, list[str]] = {}
    for file in sorted(SOURCE.rglob("*.py")):
        path = file.relative_to(SOURCE)
        if str(path) in START_UP | BY_NAME | DASHBOARD | MEASURED:
            continue
        package = path.parts[0] if len(path.parts) > 1 else ""
        text = file.read_text(encoding="utf-8")
        if not INDENTED.search(text):  # to parse all takes seconds
            continue
        for statement in imported(ast.parse(text)):
            if not is_slow(statement):
                found.setdefault(package, []).append(f"{path}:{statement.lineno}: {ast.unparse(statement)}")
    return found


def test_modules_import_at_their_top() -> None:
    for package, places in local_imports().items():
        assert len(places) <= ALLOWED.get(package, 0), (
            f"{package or 'perun'}: import these at the top of the module:\n" + "\n".join(places)
        )


def test_the_modules_of_the_rule_exist() -> None:
    named = START_UP | BY_NAME | DASHBOARD | MEASURED
    assert [path for path in sorted(named) if not (SOURCE / path).is_file()] == []


def test_an_import_inside_a_function_is_seen() -> None:
    code = "import re\ndef f():\n  def g():\n    import json, numpy\n  from numpy.random import rand\n"
    found = list(imported(ast.parse(code)))
    assert [(ast.unparse(one), is_slow(one)) for one in found] == [
        ("import json, numpy", False),
        ("from numpy.random import rand", True),
    ]


def test_a_slow_library_is_not_imported_by_what_starts_up() -> None:
    for path in sorted(START_UP - {"cli/main.py", "cli/plugins.py"}):
        tree = ast.parse((SOURCE / path).read_text(encoding="utf-8"))
        top = [one for one in tree.body if isinstance(one, (ast.Import, ast.ImportFrom))]
        assert [ast.unparse(one) for one in top if is_slow(one)] == [], path
