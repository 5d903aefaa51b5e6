"""The `perun` command.

Nothing heavy is imported here: `perun --version` and `perun --help` are answered before even click is loaded,
which is three quarters of the time they would take otherwise.
"""

from __future__ import annotations

import os
import sys

from perun.cli import streams


def main() -> None:
    """Run the command line and exit with one of :data:`perun.core.errors.EXIT_CODES`."""
    try:
        _keep_warnings_harmless()
        streams.prepare()
        sys.exit(_run(sys.argv[1:]))
    except KeyboardInterrupt:  # while Python was still loading
        sys.exit(130)


def _keep_warnings_harmless() -> None:
    """Let no warning of a library be an error: `PYTHONWARNINGS=error` is meant for the project measured."""
    if any(option.startswith("e") for option in sys.warnoptions):
        import warnings

        warnings.simplefilter("ignore")


def _run(arguments: list[str]) -> int:
    text = _known_answer(arguments)
    if text is None:
        return _command(arguments)
    try:
        sys.stdout.write(text)
    except OSError as problem:
        return streams.failed(problem)
    return streams.finish(0)


def _command(arguments: list[str]) -> int:
    from perun.cli import quick

    known = quick.recognised(arguments) if streams.COMPLETE not in os.environ else None
    if known is not None:
        return quick.run(arguments, *known)
    from perun.cli.main import run

    return run(arguments)


def _known_answer(arguments: list[str]) -> str | None:
    if arguments == ["--version"]:
        from perun import __version__

        return f"perun {__version__}\n"
    # The shell asks for completions without any argument.
    if arguments in ([], ["--help"], ["-h"]) and streams.COMPLETE not in os.environ:
        # Made from the click commands by `python -m perun.cli.helptext`; a test keeps the two equal.
        with open(__file__.replace("__main__.py", "cli/help.txt"), encoding="utf-8") as file:
            return file.read()
    return None


if __name__ == "__main__":
    main()
