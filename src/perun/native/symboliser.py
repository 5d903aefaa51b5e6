"""Finds the functions and lines of addresses of code, by one call of a symboliser for each module.

That is `addr2line` of binutils or, if it is not installed, `llvm-symbolizer`, which knows half as many
functions of libraries without debug information. But where that is in files of its own (`-gsplit-dwarf`)
addr2line does not find it, and sources that were optimised together (`-flto`) it calls `<artificial>`: there
llvm-symbolizer is asked. A cache keeps the answers by build-id, because they never change for one build.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from shutil import which
from typing import Any, Final, NamedTuple

from perun.core import atomic
from perun.core.process import programs
from perun.native.elf import Elf
from perun.native.function_names import demangled
from perun.native.symbols import SymbolTable

TOOLS: Final = ("addr2line", "llvm-symbolizer")
CACHED_MODULES: Final = 300
"""How many modules the cache holds; the one that was not used for the longest time goes first."""
_VERSION: Final = 3
_ARTIFICIAL: Final = "<artificial>"
"""What addr2line calls the source of code that was optimised together with that of other sources."""
_CLONE: Final = re.compile(r"\.(isra|constprop|part|lto_priv|localalias|llvm|cold)(\.[0-9A-F]+)?(?=\.|$)")
"""Suffixes that compilers give to copies of functions."""
_RUST_HASH: Final = re.compile(r"::h[0-9a-f]{16}$")
_UNKNOWN: Final = ("??", "")
_PARTS: Final = (" (.cold)", " [clone .cold]")
"""Suffixes in the names of cold parts, which the compiler puts away from their functions."""


class SymbolFrame(NamedTuple):
    """A function that runs, and its current line; what is not known is empty, and the line 0."""

    function: str
    source: str
    line: int


Frames = tuple[SymbolFrame, ...]
"""What runs at an address: the innermost inlined function first, and last the function that has the code."""
NOTHING: Final[Frames] = ()


class Symboliser:
    """Finds the frames at addresses of modules.

    :param tool: path of the symboliser; empty if none is installed, and then nothing is found.
    :param cache: folder of the cache; None for no cache.
    :param second: path of another one, which is asked where the first does not know the source in a module
        that has line numbers; empty for none.
    """

    def __init__(self, tool: str, cache: Path | None = None, second: str = "") -> None:
        self.tool = tool
        self._second = Symboliser(second) if second and second != tool else None
        names = "+".join(os.path.basename(one) for one in (tool, second if self._second else "") if one)
        self._cache = _Cache(cache, names) if cache and tool else None

    def frames(self, path: str, elf: Elf | None, addresses: Iterable[int]) -> dict[int, Frames]:
        """The frames at addresses in the file of a module; no frames for an address that is not known."""
        wanted = sorted(set(addresses))
        if not self.tool or elf is None:
            return dict.fromkeys(wanted, NOTHING)
        known = self._cache.read(elf) if self._cache else {}
        missing = [address for address in wanted if address not in known]
        if missing:
            subject = elf.debug_file or path
            answers = self._ask(subject, missing)
            if self._second and (elf.has_lines or elf.debug_file):
                answers |= self._second.better(subject, answers)
            answers = _checked(answers, [path, *filter(None, [elf.debug_file])])
            known |= answers
            if self._cache and answers:
                self._cache.write(elf, known)
        return {address: known.get(address, NOTHING) for address in wanted}

    def better(self, path: str, answers: Mapping[int, Frames]) -> dict[int, Frames]:
        """Of answers of another symboliser without sources those that this one has with them."""
        vague = [address for address, frames in answers.items() if _is_vague(frames)]
        found = self._ask(path, vague) if vague else {}
        return {address: frames for address, frames in found.items() if not _is_vague(frames)}

    def _ask(self, path: str, addresses: Sequence[int]) -> dict[int, Frames]:
        answers = self._answers(path, addresses)
        # A bug of binutils: for an inlined function without linkage name (static ones of C++) the first
        # answer of a process has the name of the caller, the second one is right.
        doubtful = [address for address, frames in answers.items() if _repeats(frames)]
        if doubtful and not self._is_llvm:
            twice = [address for address in doubtful for _ in range(2)]
            answers |= self._answers(path, twice)
        return answers

    @property
    def _is_llvm(self) -> bool:
        return os.path.basename(self.tool).startswith("llvm")

    def _answers(self, path: str, addresses: Sequence[int]) -> dict[int, Frames]:
        """The answer of the tool for each address; for an address that occurs twice, the last answer."""
        command = [self.tool, "-i", "-f", "-C", *([] if self._is_llvm else ["-a"]), "-e", path]
        text = "".join(f"{address:#x}\n" for address in addresses)
        try:
            done = programs.run(command, given=text.encode())
        except OSError:
            return {}
        answer = done.stdout.decode("utf-8", "replace")
        blocks = _of_llvm(answer) if self._is_llvm else _of_addr2line(answer)
        # There are fewer answers if it crashed, or could not read the file.
        return {address: _frames(block) for address, block in zip(addresses, blocks, strict=False)}


def _checked(answers: Mapping[int, Frames], paths: Sequence[str]) -> dict[int, Frames]:
    """The answers without the names of functions that do not have the address, and with those that only the
    tables of symbols in `paths` have: symbolisers name the nearest function.

    A frame with a source, or of an inlined function, comes from the debug information, which knows where
    functions end.
    """
    unsure = [
        address
        for address, frames in answers.items()
        if len(frames) < 2 and not any(frame.source for frame in frames)
    ]
    table = SymbolTable(paths if unsure else ())
    doubtful = {address: table.at(address) for address in unsure}
    names = demangled({symbol for symbols in doubtful.values() for symbol in symbols})
    found = dict(answers)
    for address, symbols in doubtful.items():
        known = [_frame(names[symbol], "??:0") for symbol in symbols]
        told = [frame for frame in answers[address] if frame in known]
        found[address] = tuple((told or known)[:1])
    return found


def _is_vague(frames: Frames) -> bool:
    """Whether the function or the source of a frame is not known."""
    return not frames or any(not frame.function or not frame.line for frame in frames)


def _repeats(frames: Frames) -> bool:
    """Whether a function appears to be inlined in itself."""
    return any(one.function == other.function for one, other in pairwise(frames))


def find_tool(environ: Mapping[str, str]) -> str:
    """Path of the symboliser to use from the PATH of `environ`; empty if none is installed."""
    return next(filter(None, (_installed(tool, environ) for tool in TOOLS)), "")


def find_second(environ: Mapping[str, str]) -> str:
    """Path of the symboliser to ask next; empty if it is not installed."""
    return _installed(TOOLS[1], environ)


def _installed(tool: str, environ: Mapping[str, str]) -> str:
    return which(tool, path=environ.get("PATH", os.defpath)) or ""


def _of_addr2line(answer: str) -> list[list[str]]:
    blocks: list[list[str]] = []
    for line in answer.splitlines():
        # An address, and then by turns the lines of a function and a place; no function is called `0x...`.
        if line.startswith("0x"):
            blocks.append([])
        elif blocks:
            blocks[-1].append(line)
    return blocks


def _of_llvm(answer: str) -> list[list[str]]:
    return [block.splitlines() for block in answer.split("\n\n") if block]


def _frames(lines: Sequence[str]) -> Frames:
    frames = [_frame(*pair) for pair in zip(lines[::2], lines[1::2], strict=False)]
    return tuple(frame for frame in frames if frame.function or frame.source)


def _frame(function: str, place: str) -> SymbolFrame:
    source, line = _place(place.partition(" (discriminator")[0])
    for part in _PARTS:
        function = function.removesuffix(part)
    function = _RUST_HASH.sub("", _CLONE.sub("", function))
    source = "" if os.path.basename(source) == _ARTIFICIAL else source
    return SymbolFrame("" if function in _UNKNOWN else function, source, line if source else 0)


def _place(place: str) -> tuple[str, int]:
    # `file:line` of addr2line, `file:line:column` of llvm-symbolizer; a file may have a colon of its own.
    parts = place.rsplit(":", 2)
    if len(parts) == 3 and parts[1].isdecimal():
        source, number = parts[0], parts[1]
    else:
        source, _, number = place.rpartition(":")
    line = int(number) if number.isdecimal() and len(number) < 10 else 0
    return ("" if source in _UNKNOWN else source), line


class _Cache:
    """Answers on the disk, a file for each build of a module.

    A damaged file counts as absent; errors while writing are ignored.
    """

    def __init__(self, folder: Path, tool: str) -> None:
        self._folder = folder
        self._tool = tool

    def read(self, elf: Elf) -> dict[int, Frames]:
        import msgspec

        path = self._path(elf)
        if path is None:
            return {}
        try:
            functions, sources, entries = msgspec.json.decode(path.read_bytes(), type=_File)
            os.utime(path)
            return {
                address: tuple(
                    SymbolFrame(functions[name], sources[place], line) for name, place, line in frames
                )
                for address, frames in entries
            }
        except (OSError, msgspec.MsgspecError, IndexError, ValueError):
            return {}

    def write(self, elf: Elf, known: Mapping[int, Frames]) -> None:
        import msgspec

        path = self._path(elf)
        if path is None:
            return
        functions: dict[str, int] = {}
        sources: dict[str, int] = {}
        entries = [
            (
                address,
                [
                    (
                        functions.setdefault(frame.function, len(functions)),
                        sources.setdefault(frame.source, len(sources)),
                        frame.line,
                    )
                    for frame in frames
                ],
            )
            for address, frames in known.items()
        ]
        with contextlib.suppress(OSError, ValueError):
            path.parent.mkdir(parents=True, exist_ok=True)
            atomic.write(path, msgspec.json.encode((list(functions), list(sources), entries)))
            self._prune()

    def _path(self, elf: Elf) -> Path | None:
        if not elf.build_id:
            return None
        # Debug information that is installed later gives better answers.
        debug = "-debug" if elf.debug_file else ""
        return self._folder / f"{elf.build_id}{debug}.{self._tool}-{_VERSION}.json"

    def _prune(self) -> None:
        files = sorted((entry.stat().st_mtime, entry.path) for entry in os.scandir(self._folder))
        for _, path in files[: max(0, len(files) - CACHED_MODULES)]:
            os.unlink(path)


_File: Any = tuple[list[str], list[str], list[tuple[int, list[tuple[int, int, int]]]]]
"""Functions, sources, and for each address its frames, which refer to both by position."""
