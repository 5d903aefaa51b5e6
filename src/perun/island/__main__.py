"""`python -m perun.island`: see :mod:`perun.island.command_line`, which is loaded where Ctrl-C is caught."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    try:
        from perun.island.command_line import main

        main()
    except KeyboardInterrupt:  # while Python was still loading
        sys.exit(130)
