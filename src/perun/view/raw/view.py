"""The raw view: which format, and where it goes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, TextIO

from perun.errors import UsageError
from perun.plugin.api import ALONE, ViewContext
from perun.plugin.params import param

if TYPE_CHECKING:
    from perun.profile.factory import Profile

FORMATS: Final = ("json", "csv", "parquet")
_ROWS_AT_A_TIME: Final = 4096


@dataclass(frozen=True)
class RawParams:
    """Format and destination; without a destination it goes to standard output."""

    format: str = param(
        "json",
        short="-f",
        choices=FORMATS,
        help="json is the whole profile; csv and parquet are its resources, a row for each. "
        "parquet needs an --output-file.",
    )
    output_file: str = param(
        "",
        short="-of",
        metavar="<output_file>",
        help="Target output file; replaced where it exists.",
    )


class RawView:
    """Writes the profile as indented JSON, or its resources as a table for other programs.

    The columns of the table are the fields of the resources; nested ones appear both as one text, e.g. `uid`,
    and field by field, e.g. `uid:function`.
    """

    name: ClassVar[str] = "raw"
    help: ClassVar[str] = "Shows the profile itself, as JSON, CSV or Parquet."
    Params: ClassVar[type] = RawParams

    def render(self, profile: Profile, params: RawParams, out: TextIO, ctx: ViewContext = ALONE) -> None:
        """Write the profile to `out`, or to the file that `params` name; then `out` gets its name.

        :raises UsageError: where Parquet is asked for without a file, or the file cannot be written.
        :raises PluginError: where Parquet is asked for and pyarrow is not installed.
        """
        if params.format == "parquet":
            _save_parquet(profile, params.output_file)
        elif params.output_file:
            _save(profile, params)
        else:
            _write(profile, params.format, out)
        if params.output_file:
            out.write(params.output_file + "\n")


def _write(profile: Profile, format: str, out: TextIO) -> None:
    if format == "csv":
        _write_csv(profile, out)
        return
    from perun.profile.format.json import pending_pieces

    for piece in pending_pieces(profile):
        out.write(piece.decode("ascii"))
    out.write("\n")


def _write_csv(profile: Profile, out: TextIO) -> None:
    import csv
    from io import StringIO
    from itertools import islice

    from perun.profile.table import table_of

    table = table_of(profile)
    rows = table.rows()
    some: list[tuple[Any, ...]] = [tuple(table.columns)]
    while some:
        # Not row by row, as standard output may do more with each piece than add it to a buffer.
        text = StringIO()
        csv.writer(text, lineterminator="\n").writerows(some)
        out.write(text.getvalue())
        some = list(islice(rows, _ROWS_AT_A_TIME))


def _save(profile: Profile, params: RawParams) -> None:
    try:
        # The csv module does its own line breaks; what is no UTF-8, e.g. of a file name, is kept.
        with open(params.output_file, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
            _write(profile, params.format, file)
    except OSError as problem:
        raise _not_written(params.output_file, problem) from None


def _save_parquet(profile: Profile, name: str) -> None:
    if not name:
        raise UsageError("a Parquet file is not for the terminal", "name a file with --output-file")
    from perun.profile.convert import to_arrow_table

    table: Any = to_arrow_table(profile)
    from pyarrow import parquet

    try:
        parquet.write_table(table, name)
    except OSError as problem:
        raise _not_written(name, problem) from None


def _not_written(name: str, problem: OSError) -> UsageError:
    return UsageError(
        f"cannot write the profile to {name}: {problem.strerror or problem}",
        "name another file with --output-file",
    )
