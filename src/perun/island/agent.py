"""What the program's own Python starts, by its path, to run a program whose calls are recorded.

    agent.py FOLDER OPTIONS (PROGRAM | -m MODULE | -c CODE) [ARGUMENT...]

That Python may be another one than Perun's, and have no Perun, or another one, which the program may import.
So the package in which this file lies gets a name of its own there; `program` is its module that does the
rest.
"""

import sys
from importlib import import_module
from types import ModuleType

NAME = "_perun_island"
OLDEST = (3, 9)

if __name__ == "__main__":
    if sys.version_info < OLDEST:  # any Python reads this file, but not all that it imports
        known = [".".join(map(str, version)) for version in (OLDEST, sys.version_info[:2])]
        sys.exit("perun.island needs Python {} or newer for the program, not {}".format(*known))
    _package = sys.modules[NAME] = ModuleType(NAME)
    _package.__path__ = [sys.argv[0].rpartition("/")[0]]
    import_module(NAME + ".program").main()
