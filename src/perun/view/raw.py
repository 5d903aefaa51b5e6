"""Raw view: the profile itself as JSON (manual 2.1), or its resources as CSV or as a Parquet file."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Final, TextIO

from perun.core.errors import UsageError
from perun.plugin.api import NO_VIEW_CONTEXT, ViewContext
from perun.plugin.params import param
from perun.profile.factory import Profile
from perun.profile.format.json import pending_pieces
from perun.profile.table import table_of
from perun.view._common.files import write_or_print, writing

FORMATS: Final = ("json", "csv", "parquet")
_OPTION: Final = "--output-file"
_ROWS_AT_A_TIME: Final = 4096


@dataclass(frozen=True)
class RawParams:
    """Format and destination; without a file the profile goes to standard output."""

    format: str = param(
        "json",
        short="-f",
        choices=FORMATS,
        help="json: the whole profile; csv, parquet: a table with a row for each resource. "
        "parquet needs --output-file.",
    )
    output_file: str = param(
        "",
        short="-of",
        metavar="<output_file>",
        help="Write to this file, which is replaced if it exists.",
    )


class RawView:
    """Writes the profile as indented JSON, or its resources as a table for other programs.

    The columns of the table are the fields of the resources; a nested field has a column for its
    whole text, e.g. `uid`, and one for each of its parts, e.g. `uid:function`.
    """

    name: ClassVar[str] = "raw"
    help: ClassVar[str] = "Shows the profile itself, as JSON, CSV or Parquet."
    Params: ClassVar[type] = RawParams

    def render(
        self, profile: Profile, params: RawParams, out: TextIO, ctx: ViewContext = NO_VIEW_CONTEXT
    ) -> None:
        """Write the profile to `out`, or to the file that `params` name, and the name of that file to `out`.

        :raises UsageError: if Parquet is wanted without a file, or the file cannot be written.
        :raises PluginError: if Parquet is wanted and pyarrow is not installed.
        """
        if params.format == "parquet":
            _save_parquet(profile, params.output_file)
            out.write(f"{params.output_file}\n")
        else:
            write_or_print(params.output_file, _pieces(profile, params.format), out, _OPTION)


def _pieces(profile: Profile, format: str) -> Iterator[str]:
    """The profile as text, piece by piece, so that a large one is never in memory twice."""
    if format == "csv":
        yield from _csv_pieces(profile)
        return
    for piece in pending_pieces(profile):
        yield piece.decode("ascii")
    yield "\n"


def _csv_pieces(profile: Profile) -> Iterator[str]:
    table = table_of(profile)
    rows = table.rows()
    batch: list[tuple[Any, ...]] = [tuple(table.columns)]
    while batch:
        # Many rows in one piece: each write to standard output costs more than appending to a buffer.
        text = StringIO()
        csv.writer(text, lineterminator="\n").writerows(batch)
        yield text.getvalue()
        batch = list(islice(rows, _ROWS_AT_A_TIME))


def _save_parquet(profile: Profile, name: str) -> None:
    if not name:
        raise UsageError("--format parquet needs a file: it is binary", "name one with --output-file")
    from perun.profile.convert import to_arrow_table

    table: Any = to_arrow_table(profile)
    from pyarrow import parquet

    with writing(Path(name), _OPTION) as file:
        parquet.write_table(table, file)


PLUGIN = RawView
