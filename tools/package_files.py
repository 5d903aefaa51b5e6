"""Print the files of a package that are to be installed, one a line, relative to its folder.

Everything is, but for compiled Python, the build's own files, the sources of native code (folders called
`native` that are no packages) and the module that the build writes the version into: a new module or data
file needs no entry anywhere.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

NOT_INSTALLED_FOLDERS = {"__pycache__", "native"}
WITH_VERSION = Path("__init__.py")
NOT_INSTALLED_FILES = {"meson.build", "meson.options"}


def package_files(package: Path) -> Iterator[Path]:
    """Files of the folder `package` to install, relative to it, in a stable order."""
    for folder, folders, files in os.walk(package):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".")
            and (name not in NOT_INSTALLED_FOLDERS or Path(folder, name, "__init__.py").is_file())
        )
        for name in sorted(files):
            if name not in NOT_INSTALLED_FILES and not name.startswith(".") and not name.endswith(".pyc"):
                path = Path(folder, name).relative_to(package)
                if path != WITH_VERSION:
                    yield path


if __name__ == "__main__":
    for path in package_files(Path(sys.argv[1])):
        print(path.as_posix())
