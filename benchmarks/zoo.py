"""What each engine makes of programs that are each strange in one way: a table, made as the tests make it.

    python benchmarks/zoo.py [--write docs/zoo.md] [--commands]

It ends with status 1 where something is wrong without a word. With `--commands` it runs a hundred commands of
Debian too, which takes ten minutes.
"""

from __future__ import annotations

import argparse
import datetime
import platform
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "native"))

from compiling import CompilerCache  # noqa: E402
from zoo.cells import CHECKED, EXACT, NOTED, REFUSED, WRONG, Cell, judged, lacking  # noqa: E402
from zoo.commands import COMMANDS, compared, is_there, make_files  # noqa: E402
from zoo.programs import PROGRAMS, Program  # noqa: E402
from zoo.recording import ENGINES, compile_program  # noqa: E402

ABSENT = "absent"
SHOWN = {kind: kind for kind in (EXACT, CHECKED, NOTED, REFUSED)} | {WRONG: "**wrong**", ABSENT: "not here"}
COLLECTORS = ("memory", "ebpf")
INTRODUCTION = """# The zoo

Programs that are each strange in one way, under every collector and engine. Made by `make bench` with the
code that `tests/native/test_zoo.py` runs, on {date}, Linux {kernel}.

| word | means |
| --- | --- |
| exact | the program prints and ends as it does alone, and the profile has all calls, or all allocations |
| noted | the same, but the profile lacks something and a note says what |
| checked | SystemTap cannot run on the machine that made the table, but finds all that the script names |
| refused | Perun says why it cannot, and makes no profile |
| wrong | none of these: a known gap |
| not here | the engine cannot run on the machine that made the table |
| | the engine is not made for such programs |
"""


def cells(folder: Path) -> Iterator[tuple[Program, dict[str, Cell]]]:
    """The programs, each with what every engine makes of it."""
    compile_once = CompilerCache(folder / "compiled")
    for program in PROGRAMS:
        compiled = compile_program(program, compile_once)
        found: dict[str, Cell] = {}
        for name, engine in ENGINES.items():
            if not engine.suits(program):
                continue
            if lacks := compiled.lacks or lacking(program, name):
                found[name] = Cell(ABSENT, lacks)
                continue
            with tempfile.TemporaryDirectory(dir=folder) as place:
                found[name] = judged(program, compiled, name, Path(place))
        yield program, found


def table(rows: Sequence[tuple[Program, dict[str, Cell]]]) -> str:
    """The table, and below it what refusals and notes say."""
    lines = [
        f"| program | strange is that | {' | '.join(ENGINES)} |",
        "| --- | --- |" + " --- |" * len(ENGINES),
    ]
    for program, found in rows:
        words = [SHOWN[found[name].kind] if name in found else "" for name in ENGINES]
        lines.append(f"| {program.name} | {program.strange} | {' | '.join(words)} |")
    lines += ["", "## What refusals and notes say", "", "| program | engine | |", "| --- | --- | --- |"]
    for program, found in rows:
        for name, cell in found.items():
            if cell.kind not in (EXACT, CHECKED, ABSENT):
                lines.append(f"| {program.name} | {name} | {SHOWN[cell.kind]}: {_told(cell.why)} |")
    missing = {name: cell.why for _, found in rows for name, cell in found.items() if cell.kind == ABSENT}
    lines += ["", *(f"- {name}: {_told(why)}" for name, why in missing.items())]
    return "\n".join(lines) + "\n"


def commands(folder: Path) -> str:
    """How commands of Debian fare, and which of them do not."""
    files = folder / "files"
    files.mkdir()
    make_files(files)
    counted: Counter[tuple[str, str]] = Counter()
    lines = []
    for command in filter(is_there, COMMANDS):
        for collector in COLLECTORS:
            if lacks := ENGINES[collector].lacks():
                cell = Cell(ABSENT, lacks)
            else:
                with tempfile.TemporaryDirectory(dir=folder) as place:
                    cell = compared(command, collector, files, Path(place))
            counted[collector, cell.kind] += 1
            if cell.kind != EXACT:
                lines.append(f"- `{command}` under {collector}: {SHOWN[cell.kind]}: {_told(cell.why)}")
    lines.insert(0, f"\n## Commands of Debian\n\nOf {len([*filter(is_there, COMMANDS)])} commands so many")
    lines[0] += " print the same, leave the same files and end alike as without Perun:\n\n"
    lines[0] += "\n".join(f"- {collector}: {counted[collector, EXACT]}" for collector in COLLECTORS)
    return "\n".join(lines) + "\n"


def _told(text: str) -> str:
    """A text as a cell of a table of Markdown, without folders of this run."""
    words = " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
    return re.sub(rf"{re.escape(tempfile.gettempdir())}/\S*/", "", words)


def main() -> int:
    """Print and write the table; 1 where a program or a command is treated wrongly."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path)
    parser.add_argument("--commands", action="store_true", help="also run a hundred commands of Debian")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="perun-zoo-") as folder:
        for program, found in cells(Path(folder)):
            print(program.name, *(f"{name}: {cell.kind}" for name, cell in found.items()), flush=True)
            rows.append((program, found))
        kernel = platform.release().split("-")[0]
        text = INTRODUCTION.format(date=datetime.date.today(), kernel=kernel) + "\n" + table(rows)
        if options.commands:
            text += commands(Path(folder))
    print("\n" + text)
    if options.write:
        options.write.write_text(text, encoding="utf-8")
    return int(any(cell.kind == WRONG for _, found in rows for cell in found.values()))


if __name__ == "__main__":
    sys.exit(main())
