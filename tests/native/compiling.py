"""Compiles each program once for all tests of a run, also where several processes run them."""

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

Command = Sequence[str | Path]


class CompilerCache:
    """What compilers have made in this run, by the compiler, its arguments and the content of its inputs.

    Processes that share the folder share what is in it: one compiles, the others wait for it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # That of the run, not of a test: some compilers look for their parts in the home folder.
        self._environ = {**os.environ, "LC_ALL": "C"}
        folder.mkdir(exist_ok=True)

    def __call__(self, *command: str | Path) -> Path:
        """The file that a command makes, whose option `-o` is added. It is not to be changed.

        The compiler may have a sub-command (`"go build"`). An argument that is a `Path` is an input; the
        headers beside it are inputs too.

        :raises subprocess.CalledProcessError: with the messages of the compiler, where it fails.
        """
        key = self._key(command)
        sources = [Path(argument) for argument in command if isinstance(argument, Path)]
        made = self._folder / f"{sources[0].stem}-{key}"
        with open(self._folder / f"{key}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not made.exists():
                new = self._folder / f"{key}.new"
                # Libraries are searched after what needs them: the output goes before all arguments.
                subprocess.run(
                    [*str(command[0]).split(), "-o", new, *command[1:]], env=self._environ, check=True,
                    capture_output=True, text=True
                )  # fmt: skip
                new.rename(made)
        return made

    def _key(self, command: Command) -> str:
        found = hashlib.sha256()
        for part in self._parts(command):
            found.update(len(part).to_bytes(8, "little") + part)
        return found.hexdigest()[:16]

    def _parts(self, command: Command) -> Iterator[bytes]:
        """Everything that what is made depends on."""
        compiler = os.path.realpath(shutil.which(str(command[0]).split()[0]) or command[0])
        yield compiler.encode()
        for argument in command:
            yield os.fsencode(argument)
            if isinstance(argument, Path) and argument.is_file():
                for file in (argument, *sorted(argument.parent.glob("*.h"))):
                    yield file.read_bytes()


def sanitized(compile_once: CompilerCache, *command: str | Path) -> Path:
    """What a command with a sanitizer makes; skips the test where the compiler has no such sanitizer."""
    try:
        return compile_once(*command)
    except subprocess.CalledProcessError as failure:
        import pytest  # benchmarks compile without it

        if "cannot find" in failure.stderr:
            pytest.skip(f"the compiler has no sanitizer: {failure.stderr}")
        pytest.fail(failure.stderr)
