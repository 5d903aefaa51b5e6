"""Files of a `.perun` are opened by `perun.core.regular` alone: each other place that opens any is listed."""

import ast
import re
from collections import Counter
from pathlib import Path

import perun

SOURCE = Path(perun.__file__).parent
OPENING = {
    "open", "read_bytes", "read_text", "load", "fromfile", "memmap", "mmap", "loadtxt", "genfromtxt",
    "read_csv", "copyfile", "copyfileobj", "copy", "copy2", "fdopen",
}  # fmt: skip
MAY_OPEN = re.compile(rf"\b({'|'.join(sorted(OPENING))})\b")
PARSERS = {"json", "np", "numpy", "yaml", "pickle", "marshal", "pd", "pandas", "shutil", "os", "io", "mmap"}
ALLOWED = {
    "perun.__main__": "its own help",
    "perun.core.regular": "the one way",
    "perun.core.atomic": "writes",
    "perun.core.machine": "/proc and /sys",
    "perun.core.conditions": "/proc and /sys",
    "perun.core.config.templates": "files of the project that tell how it is built; programs of the project",
    "perun.cli.crash": "makes a file",
    "perun.cli.streams": "/dev/null",
    "perun.cli.completing": "writes what the user names",
    "perun.cli.metrics": "the file that the user names",
    "perun.cli.options": "the file that the user names",
    "perun.running.bench.plan": "a program of the user, to see whether it is compiled",
    "perun.running.run.identical": "programs and files of working copies, which the user lets run",
    "perun.running.compare.plan": "files of the user, links as links",
    "perun.running.explain.explaining": "a page that it has written itself into a folder of its own",
    "perun.repository.create": "texts of Perun itself",
    "perun.repository.hooks": "hooks of git, copied",
    "perun.running.pool.folders": "locks, among the caches of the user; a lock, never read",
    "perun.running.pool.ssh": "what ssh has written into a scratch folder",
    "perun.running.pool.worker": "makes a log among the caches of the user",
    "perun.running.run.pre_run": "the log of a build, which it has written itself",
    "perun.repository.journal": "opened to be written on; checked before it is read",
    "perun.repository.workloads": "files that a generator has written for it",
    "perun.store.files": "makes a file; writes at the end of one, never through a link",
    "perun.store.lock": "an empty file, never read",
    "perun.cli.commands.web_serve": "a browser",
    "perun.island.supervisor": "/proc, and the control groups of the system",
    "perun.island.program_runner": "a pipe of its own",
    "perun.web.server": "the page that it has written into a scratch folder",
    "perun.web.build": "a folder, by a method of this name",
    "perun.web.pages": "templates and scripts of Perun itself",
    "perun.fuzz.folder": "tries how much can be written",
    "perun.fuzz.findings": "the folder that the user names for the results",
    "perun.fuzz.seeds": "inputs that the user names",
    "perun.core.process.ending": "/proc",
    "perun.core.process.execution": "the current folder; what a workload of the user names",
    "perun.core.process.programs": "what the launcher has written into a scratch folder",
    "perun.store.remote.cloud": "the settings of the user, who has the credentials there",
    "perun.sharing.forge": "the network, an archive in memory, the event that the forge writes for a job",
    "perun.store.remote.file": "locks",
    "perun.running.run.builds": "locks",
    "perun.vcs.tagit": "locks",
    "perun.view._common.files": "writes",
    "perun.pages": "scripts of Perun itself",
    "perun.view._common.chart_view": "scripts of a library",
    "perun.workload.textfile": "writes",
    "perun.running.compare.answers": "what programs have written into a scratch folder",
    "perun.plugin.interchange": "what the user names to be imported",
    "perun.cli.commands.importing": "a pipe that the user names to be imported",
    "perun.running.guard.lock": "the headers of a program that is then run",
    "perun.core.process.command": "the first line of a program that is then run",
    "perun.core.process.layout": "copies a program that is then run",
}
"""Modules that open files in another way, with the reason why that is no danger."""
COLLECTORS = (
    "perun.collect", "perun.harness", "perun.fuzz.coverage", "perun.bounds", "perun.native", "perun.importer"
)  # fmt: skip
"""These open programs and sources of working copies, and what they recorded in a folder of their own; the
user let them run. An importer opens what the user names."""


def modules():
    for path in sorted(SOURCE.rglob("*.py")):
        name = ".".join(("perun", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
        text = path.read_text("utf-8")
        if MAY_OPEN.search(text):  # to parse all takes seconds
            yield name, ast.parse(text, str(path))


def opens(call: ast.Call) -> bool:
    if isinstance(call.func, ast.Name):
        return call.func.id == "open"
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in OPENING:
        return False
    owner = call.func.value
    named = owner.id if isinstance(owner, ast.Name) else ""
    if call.func.attr in ("open", "read_bytes", "read_text"):
        return True
    return named in PARSERS and not (named == "shutil" and call.func.attr == "copyfileobj")


def test_only_known_modules_open_files_in_another_way():
    found: Counter[str] = Counter()
    for name, tree in modules():
        if not name.startswith(COLLECTORS):
            found[name] += sum(isinstance(node, ast.Call) and opens(node) for node in ast.walk(tree))
    others = {name for name, count in found.items() if count}
    assert sorted(others - ALLOWED.keys()) == [], "read by perun.core.regular, or say here why not"
    assert sorted(ALLOWED.keys() - others) == [], "these need no exception any more"


def test_the_test_sees_what_it_looks_for():
    for text in (
        "open(p)", "p.read_bytes()", "p.open()", "os.open(p, 0)", "np.load(p)", "json.load(f)",
    ):  # fmt: skip
        (call,) = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
        assert opens(call), text
