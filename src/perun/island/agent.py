"""What the program's own Python starts, by its path, to run a program whose calls are recorded.

    agent.py FOLDER OPTIONS (PROGRAM | -m MODULE | -c CODE) [ARGUMENT...]

That Python may be another one than Perun's, and have no Perun, or another one, which the program may import.
So the package in which this file lies gets a name of its own there; `program` is its module that does the
rest.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

NAME = "_perun_island"

if __name__ == "__main__":
    _package = sys.modules[NAME] = ModuleType(NAME)
    _package.__path__ = [sys.argv[0].rpartition("/")[0]]
    import_module(NAME + ".program").main()
