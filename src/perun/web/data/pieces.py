"""The pieces by their names: the one way to the data of pages, for a server and for a static site."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from inspect import cleandoc
from typing import Any, Final, get_args

import msgspec
import msgspec.structs

from perun.core.errors import ProfileNotFound
from perun.web.data import form
from perun.web.data.changed import Reported, change_list, explained
from perun.web.data.overview import grid, overview
from perun.web.data.series import points, points_piece, series_list, series_page
from perun.web.data.state import State
from perun.web.data.versions import CHUNK, commits, coverage, history, message, site, values

PLAIN: Final = ("site", "history", "series", "changes", "overview", "grid", "coverage")
"""The pieces of which there is one."""
_ID: Final = "[0-9a-f]{12}"
_NUMBER: Final = r"0|[1-9]\d{0,8}"
_NAME: Final = re.compile(
    rf"(?P<plain>{'|'.join(PLAIN)})"
    rf"|(?P<chunk>commits|values)/(?P<number>{_NUMBER})"
    rf"|series/(?P<id>{_ID})(?:/(?P<piece>{_NUMBER}))?"
    rf"|explained/(?P<explained>[0-9a-f]{{40,64}}|HEAD)"
    rf"|compare/(?P<pair>[^/\s]{{1,400}})"
    rf"|message/(?P<version>[^/\s]{{1,200}})",
    re.ASCII,
)


@dataclass(frozen=True)
class Pieces:
    """The pieces of one state. :ivar name: of the state. :ivar served: whether a server answers.

    :ivar reported: of which pairs of versions there is a comparison; of all where a server answers.
    """

    state: State
    name: str
    served: bool = True
    reported: Reported = lambda pair: True

    def piece(self, name: str) -> form.AnyPiece:
        """The piece of that name.

        :raises ProfileNotFound: if there is none. :raises PerunError: if what it is of cannot be read.
        """
        found = _NAME.fullmatch(name)
        if found is None:
            hint = "docs/dashboard-api.md has their names"
            raise ProfileNotFound(f"there is no piece {name[:100]!r}", hint)
        state = self.state
        if found["plain"]:
            return self._plain(found["plain"])
        if found["chunk"]:
            number = int(found["number"])
            if number * CHUNK >= len(state.commits.versions):
                raise ProfileNotFound(f"there is no chunk {number} of versions")
            return commits(state, number) if found["chunk"] == "commits" else values(state, number)
        if found["piece"]:
            return points_piece(state, found["id"], int(found["piece"]))
        if found["id"]:
            return series_page(state, found["id"], self.reported)
        if found["explained"]:
            return explained(state, found["explained"])
        if found["pair"]:
            from perun.web.data.comparing import compare

            return compare(state, found["pair"])
        return message(state.repo, found["version"])

    def points(self, series: str, first: int, last: int) -> form.Points:
        """The points of a series at positions `first` to `last`, both included.

        :raises ProfileNotFound: if there is no such series.
        """
        return points(self.state, series, first, last)

    def _plain(self, name: str) -> form.AnyPiece:
        state = self.state
        match name:
            case "site":
                return site(state, name=self.name, served=self.served)
            case "history":
                return history(state)
            case "series":
                return series_list(state)
            case "changes":
                return change_list(state, self.reported)
            case "overview":
                return overview(state, self.reported)
            case "grid":
                return grid(state)
            case _:
                return coverage(state)


def encoded(piece: form.AnyPiece) -> bytes:
    """The piece as JSON."""
    try:
        return msgspec.json.encode(piece)
    except UnicodeEncodeError:  # half of a character, which is no text of UTF-8
        return json.dumps(msgspec.to_builtins(piece)).encode()


def schema() -> dict[str, Any]:
    """The JSON schema of all pieces, each a definition of its own, as `docs/schemas` has it."""
    kinds = get_args(form.AnyPiece)
    _, definitions = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    for kind in kinds:
        definitions[kind.__name__]["properties"]["schema"] = {"const": _name_of(kind)}
    for one in definitions.values():
        if "description" in one:
            one["description"] = cleandoc(one["description"])  # as Python 3.13 keeps docstrings
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:perun:web:1",
        "title": "perun.web/1",
        "description": "The pieces of the dashboard. Keys are only ever added to them.",
        "anyOf": [{"$ref": f"#/$defs/{kind.__name__}"} for kind in kinds],
        "$defs": definitions,
    }


def _name_of(kind: type) -> str:
    """What the pieces of a kind have as their schema."""
    found: str = next(one.default for one in msgspec.structs.fields(kind) if one.name == "schema")
    return found
