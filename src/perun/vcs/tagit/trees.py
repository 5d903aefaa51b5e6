"""Lists of files as objects: what a snapshot is made of."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from perun.errors import VersionControlError
from perun.vcs.tagit import files
from perun.vcs.tagit.files import Entry, Tree
from perun.vcs.tagit.objects import Objects


class Trees:
    """Makes lists of the files below `root`, and keeps them with their contents in `objects`."""

    def __init__(self, root: Path, objects: Objects) -> None:
        self._root = root
        self.objects = objects

    def of_folder(self) -> dict[str, Entry]:
        """All files below the root that are not ignored; their contents are kept."""
        with self.objects.together():
            return {path: files.keep(self._root, path, self.objects) for path in files.scan(self._root)}

    def put(self, tree: Tree) -> str:
        """Keep the list; its checksum."""
        return self.objects.put(json.dumps(tree, sort_keys=True, separators=(",", ":")).encode())

    def get(self, checksum: str) -> dict[str, Entry]:
        """The list of that checksum.

        :raises VersionControlError: where it is missing or damaged.
        """
        try:
            listed: dict[str, Any] = json.loads(self.objects.get(checksum))
            tree = {path: Entry(*entry) for path, entry in listed.items()}
        except (ValueError, TypeError, AttributeError):
            raise VersionControlError(f"the list of files {checksum} is damaged") from None
        outside = [path for path in tree if path.startswith("/") or ".." in path.split("/")]
        if outside:
            raise VersionControlError(f"the list of files {checksum} leads out of its folder: {outside[0]!r}")
        return tree

    def is_held(self, tree: Tree) -> bool:
        """Whether every file of the list is in the folder as it says."""
        return all(files.look(self._root, path, entry) == entry for path, entry in tree.items())

    def changed(self, tree: Tree) -> dict[str, Entry | None]:
        """The files of the list that are otherwise in the folder, as they are now; None where they are gone.

        What they hold is kept. A file in whose place a folder is counts as gone.
        """
        found: dict[str, Entry | None] = {}
        for path, entry in tree.items():
            now = files.look(self._root, path, entry)
            if now == entry:
                continue
            gone = now is None or now.kind == files.OTHER
            found[path] = None if gone else files.keep(self._root, path, self.objects)
        return found


def with_changes(tree: Tree, changes: dict[str, Entry | None]) -> dict[str, Entry]:
    """The list with those files replaced, or taken out where they are None."""
    merged = {**tree, **changes}
    return {path: entry for path, entry in merged.items() if entry is not None}


def paths_of(trees: Iterable[Tree]) -> list[str]:
    """All paths of the lists, each once, sorted."""
    return sorted({path for tree in trees for path in tree})
