"""The pager on a real (pseudo) terminal."""

import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TextIO

import pytest

from perun.cli.pager import paged
from perun.core.errors import UsageError

needs_less = pytest.mark.skipif(shutil.which("less") is None, reason="less is not installed")
PATH = {"PATH": os.environ["PATH"], "TERM": "xterm"}


class Terminal:
    """The screen side of a pseudo terminal whose other side is `stream`."""

    def __init__(self) -> None:
        self.screen, inner = pty.openpty()
        self.stream: TextIO = open(inner, "w", encoding="utf-8")  # noqa: SIM115 - closed by the fixture

    def read(self, until: str = "", seconds: float = 60.0) -> str:
        """What is there now, or what comes until `until` is among it."""
        data = b""
        end = time.monotonic() + seconds
        while select.select([self.screen], [], [], 0.05 if not until else end - time.monotonic())[0]:
            data += os.read(self.screen, 65536)
            if until and until.encode() in data:
                break
            assert time.monotonic() < end
        return data.decode().replace("\r\n", "\n")


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    made = Terminal()
    yield made
    made.stream.close()
    os.close(made.screen)


def test_no_pager_where_it_is_no_terminal(tmp_path: Path) -> None:
    with (tmp_path / "out").open("w") as stream, paged(True, PATH | {"PAGER": "false"}, stream) as out:
        assert out is stream


@pytest.mark.parametrize(("enabled", "variables"), [
    (False, {"PAGER": "false"}),
    (True, {"PAGER": ""}),
    (True, {"PAGER": "cat"}),
    (True, {"PAGER": "false", "TERM": "dumb"}),
    (True, {"PAGER": "no-such-pager -x"}),
    (True, {"PATH": "/nonexistent"}),
    (True, {"PAGER": "false", "PERUN_PAGER": ""}),
])  # fmt: skip
def test_plain_output_instead(enabled: bool, variables: dict[str, str], terminal: Terminal) -> None:
    with paged(enabled, PATH | variables, terminal.stream) as out:
        assert out is terminal.stream


def test_perun_pager_comes_before_pager(terminal: Terminal) -> None:
    with paged(True, PATH | {"PERUN_PAGER": "sed 's/^/> /'", "PAGER": "false"}, terminal.stream) as out:
        out.write("čau\nlast")
    assert terminal.read() == "> čau\n> last"


def test_defaults_of_less_unless_the_user_has_set_it(terminal: Terminal) -> None:
    show = {"PAGER": "sh -c 'cat >/dev/null; echo $LESS'"}
    with paged(True, PATH | show, terminal.stream):
        pass
    assert terminal.read() == "FRX\n"
    with paged(True, PATH | show | {"LESS": "S"}, terminal.stream):
        pass
    assert terminal.read() == "S\n"


@needs_less
def test_less_leaves_at_once_what_fits_on_the_screen(terminal: Terminal) -> None:
    with paged(True, PATH, terminal.stream) as out:
        out.write("\x1b[31mred\x1b[m\n")
    assert "\x1b[31mred" in terminal.read()


def test_lines_are_shown_while_the_output_is_made(terminal: Terminal) -> None:
    with paged(True, PATH | {"PAGER": "sed -u s/a/b/"}, terminal.stream) as out:
        out.write("a first\n")
        assert terminal.read(until="b first") == "b first\n"
        out.write("a second\n")
    assert terminal.read() == "b second\n"


def test_leaving_early_ends_the_block_quietly(terminal: Terminal) -> None:
    written = 0
    with paged(True, PATH | {"PAGER": "head -n 1"}, terminal.stream) as out:
        for _ in range(100_000):
            out.write("x" * 70 + "\n")
            written += 1
    assert 1 <= written < 100_000
    assert terminal.read() == "x" * 70 + "\n"


def test_leaving_before_anything_is_written(terminal: Terminal) -> None:
    with paged(True, PATH | {"PAGER": "true"}, terminal.stream) as out:
        time.sleep(0.1)
        out.write("short")


def test_another_broken_pipe_is_not_swallowed(terminal: Terminal) -> None:
    with pytest.raises(BrokenPipeError), paged(True, PATH | {"PAGER": "cat -u"}, terminal.stream) as out:
        out.write("shown\n")
        raise BrokenPipeError
    assert terminal.read() == "shown\n"


def test_errors_are_passed_on_after_the_output(terminal: Terminal) -> None:
    with pytest.raises(UsageError), paged(True, PATH | {"PAGER": "cat -u"}, terminal.stream) as out:
        out.write("shown\n")
        raise UsageError("then this")
    assert terminal.read() == "shown\n"


def test_unclosed_quote_is_named(terminal: Terminal) -> None:
    variables = PATH | {"PERUN_PAGER": "less '"}
    with pytest.raises(UsageError, match="PERUN_PAGER"), paged(True, variables, terminal.stream):
        pass


SCRIPT = """
import os, sys, time
from perun.cli.pager import paged
with paged(True, os.environ, sys.stdout) as out:
    for number in range(int(sys.argv[1])):
        out.write(f"line {number}\\n")
"""


def started(terminal: Terminal, lines: int, **variables: str) -> subprocess.Popen[bytes]:
    environ = {**os.environ, "TERM": "xterm", "LINES": "24", "COLUMNS": "80", **variables}
    environ = {name: value for name, value in environ.items() if name not in ("LESS", "PAGER", "PERUN_PAGER")}
    name = os.ttyname(terminal.stream.fileno())
    return subprocess.Popen(
        # A session of its own, whose first opened terminal controls it: less reads its keys from there.
        ["sh", "-c", f'exec "$0" "$@" <{name} >{name} 2>&1', sys.executable, "-c", SCRIPT, str(lines)],
        env=environ,
        start_new_session=True,
    )


@needs_less
def test_quitting_less_ends_the_program_with_success(terminal: Terminal) -> None:
    process = started(terminal, 1_000_000)
    assert "line 0" in terminal.read(until="line 20")
    os.write(terminal.screen, b"q")
    while process.poll() is None:
        terminal.read()
    assert process.returncode == 0
    assert "Traceback" not in terminal.read()


def writes_to_a_pipe(process: int) -> bool:
    """Whether it has a pipe open: it closes that to less when all is written, and waits."""
    found = []
    for link in Path(f"/proc/{process}/fd").iterdir():
        with suppress(FileNotFoundError):  # it is closed just now
            found.append(os.readlink(link))
    return any(target.startswith("pipe:") for target in found)


@needs_less
def test_ctrl_c_in_less_does_not_end_it(terminal: Terminal) -> None:
    process = started(terminal, 100)
    terminal.read(until="line 20")
    while writes_to_a_pipe(process.pid):
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    while process.poll() is None:
        os.write(terminal.screen, b"q")  # again and again: less forgets keys that come before the signal
        terminal.read()
    assert process.returncode == 0
