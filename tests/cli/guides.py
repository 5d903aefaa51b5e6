"""The commands of a guide, run in the order in which they are printed, and what they print compared.

A block of the language `console` has lines `$ COMMAND`, each followed by what the command prints, or a part
of it: a line `...` stands for any lines. Numbers, units, checksums, verdicts and lines that are drawn are not
compared, as they depend on the machine. A comment `<!-- setup ... -->` holds commands that the reader does
not need.
"""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

_BLOCK: Final = re.compile(r"^```console\n(?P<block>.*?)^```$|^<!-- setup\n(?P<setup>.*?)^-->$", re.M | re.S)
_MARK: Final = "\x01"
_REPLACED: Final = (
    (re.compile(r"\x1b\[[0-9;]*m"), ""),
    (re.compile(r"\b[0-9a-f]{7,40}\b"), "SHA"),
    (re.compile(r"\b[k-z]{10}(?=@)"), "ID"),
    (re.compile(r"[-+]?\d[\d.,]*(e[-+]?\d+)?"), "N"),
    (re.compile(r"\bN ?(ns|us|µs|ms|s|min|h)\b"), "N s"),
    (re.compile(r"\bN ?([KMG]iB|B|k|M)\b"), "N B"),
    (re.compile(r"\bN s ago\b|\bjust now\b"), "AGO"),
    (re.compile(r"[-─━═]{3,}"), "---"),
    (re.compile(r"[▏▎▍▌▋▊▉▁▂▃▄▅▆▇█]+"), "BAR"),
    (re.compile(r"(Maybe |Severe |Total )?(Degradation|Optimization)|Unknown"), "VERDICT"),
    (re.compile(r"No Change( above N %)?"), "VERDICT"),
    (re.compile(r" \[N( !!N)?\]$| [-+]+$"), ""),
    (re.compile(r"(?<=compared: ).*"), "..."),
    # Two profiles of one second; and what depends on the load of the machine: which clock of a command stands
    # for it, what has no interval or another mark, how many rounds there were, how many are not decided.
    (re.compile(r"(?<=N)(\(N\))?\.?perf\b"), "perf"),
    (re.compile(r"\b(real|cpu) time\b(, (real|cpu) time)?"), "CLOCK"),
    (re.compile(r"± (>N %|N)"), "± N"),
    (re.compile(r"(?<=N %)( \[(N N|unknown)\])?( !!| !\?| !| \?)?(?= |$)"), ""),
    (re.compile(r"(?<=N s), N % since SHA$"), ""),
    (re.compile(r"\bn = N, N\b"), "n = N"),
    (re.compile(r"^marks: .*"), "marks"),
    (re.compile(r"^N (unknown|maybe)\b.*; to decide: .*"), "N to decide"),
    (re.compile(r"(?<=: VERDICT), unconfirmed$"), ""),
    (re.compile(r"\s+"), " "),
)
_QUICKLY: Final = {"perun bench ": "--runs 5 ", "perun compare ": "--max-pairs 10 --budget 10 "}
"""What a reader leaves to Perun takes as long as it needs on the machine: a test does with less."""


class Step(NamedTuple):
    """A command of a page, its line there, and the lines that it is to print."""

    command: str
    line: int
    expected: tuple[str, ...]


def steps(text: str) -> Iterator[Step]:
    """The commands of the page in their order; a command that ends with a backslash goes on."""
    for found in _BLOCK.finditer(text):
        line = text.count("\n", 0, found.start()) + 2
        if found["setup"] is not None:
            yield Step(found["setup"], line, ())
            continue
        yield from _of_block(found["block"], line)


def _of_block(block: str, first: int) -> Iterator[Step]:
    command, at, expected = "", first, []
    for number, text in enumerate(block.splitlines(), first):
        if text.startswith("$ "):
            if command:
                yield Step(command, at, tuple(expected))
            command, at, expected = text[2:], number, []
        elif command.endswith("\\") and not expected:
            command += "\n" + text.removeprefix("> ")
        else:
            expected.append(text)
    if command:
        yield Step(command, at, tuple(expected))


def run(page: Path, folder: Path, path: str) -> list[str]:
    """Run the commands of the page in one shell; what is wrong, each with the line of the page.

    :param path: the search path of commands.
    """
    planned = list(steps(page.read_text("utf-8")))
    script = "".join(f"{_quickly(step.command)}\nprintf '\\n{_MARK}%d\\n' $?\n" for step in planned)
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, env={**os.environ, "PATH": path, "COLUMNS": "110"},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors="replace"
    )  # fmt: skip
    answers = re.split(rf"\n?{_MARK}(\d+)\n", done.stdout)
    wrong = []
    for number, step in enumerate(planned):
        printed, status = (*answers[2 * number : 2 * number + 2], "", "")[:2]
        problem = f"ended with {status or 'nothing'}" if status != "0" else _missing(step, printed)
        if problem:
            wrong.append(f"{page.name}:{step.line}: {step.command}: {problem}; it printed:\n{printed}")
    return wrong


def _quickly(command: str) -> str:
    for beginning, options in _QUICKLY.items():
        if command.startswith(beginning) and options.split()[0] not in command:
            return beginning + options + command.removeprefix(beginning)
    return command


def _missing(step: Step, printed: str) -> str:
    """Which expected line was not printed after the ones before it; empty if none is missing."""
    lines = iter([_plain(line) for line in printed.splitlines()])
    for line in step.expected:
        if line.strip() not in ("", "...") and _plain(line) not in lines:
            return f"no line is like {line!r}"
    return ""


def _plain(line: str) -> str:
    for pattern, replaced in _REPLACED:
        line = pattern.sub(replaced, line)
    return line.strip()
