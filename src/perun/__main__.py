"""The `perun` command.

Nothing heavy is imported here: `perun --version` and `perun --help` are answered before even click is loaded,
which is three quarters of the time they would take otherwise.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and exit with one of :data:`perun.errors.EXIT_CODES`."""
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        from perun import __version__

        text = f"perun {__version__}\n"
    elif arguments in ([], ["--help"]):
        # Made from the click commands by `python -m perun.cli.helptext`; a test keeps the two equal.
        with open(__file__.replace("__main__.py", "cli/help.txt"), encoding="utf-8") as file:
            text = file.read()
    else:
        from perun.cli.main import run

        sys.exit(run(arguments))
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        import os

        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(141)


if __name__ == "__main__":
    main()
