"""Print how much room Perun and each of its extras take beside this Python, as a table of Markdown.

Compiled modules count, as pip makes them. What an extra adds is what it needs and Perun alone does not.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PACKAGE = "perun-pvs"
EXTRAS = ("plots", "python-memory", "bounds", "dataframe")
_NAMED = 3
"""How many of the largest packages are named."""


def packages(requirement: str) -> set[str]:
    """Names of the installed packages that a requirement, as `perun-pvs[plots]`, leads to, itself among them.

    :raises PackageNotFoundError: where one of them is not installed.
    """
    found: set[str] = set()
    asked: set[tuple[str, str]] = set()
    waiting = [Requirement(requirement)]
    while waiting:
        one = waiting.pop()
        name = canonicalize_name(one.name)
        found.add(name)
        for extra in {"", *one.extras}:
            if (name, extra) in asked:
                continue
            asked.add((name, extra))
            needed = map(Requirement, distribution(name).requires or ())
            waiting += [
                other for other in needed if other.marker is None or other.marker.evaluate({"extra": extra})
            ]
    return found


def size(name: str) -> int:
    """Bytes of the files of an installed package."""
    files = (Path(file.locate()) for file in distribution(name).files or ())
    return sum(file.stat().st_size for file in files if file.is_file())


def _row(what: str, names: set[str]) -> str:
    sizes = sorted(((size(name), name) for name in names), reverse=True)
    largest = ", ".join(f"{name} {number / 1e6:.0f}" for number, name in sizes[:_NAMED])
    return f"| {what} | {sum(number for number, _ in sizes) / 1e6:.0f} MB | {largest} |"


if __name__ == "__main__":
    core = packages(PACKAGE)
    print("| what | installed | the largest, in MB |\n| --- | --- | --- |")
    print(_row("Perun alone", core))
    for name in EXTRAS:
        try:
            print(_row(f"`{name}` adds", packages(f"{PACKAGE}[{name}]") - core))
        except PackageNotFoundError as missing:
            raise SystemExit(f"{missing.name} is not installed, so that {name} cannot be measured") from None
