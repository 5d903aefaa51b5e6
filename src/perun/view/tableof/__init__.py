"""Table-of view: resources or models of a profile as a two-dimensional table (manual 6.1.5)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Final, TextIO

from perun.core.errors import UsageError
from perun.plugin.api import NO_VIEW_CONTEXT, ViewContext
from perun.plugin.params import param
from perun.profile.factory import Profile
from perun.view._common.files import destination, write_pieces
from perun.view.tableof.layout import lines_of
from perun.view.tableof.table import (
    ColumnTable,
    asks_for_summaries,
    known,
    matching,
    models_of,
    ordered,
    resources_of,
)

KINDS: Final = {
    "resources": "Show the resources of the profile as a table.",
    "models": "Show the models of the profile as a table.",
}
# fmt: off
FORMATS: Final = (
    "asciidoc", "colon_grid", "double_grid", "double_outline", "fancy_grid", "fancy_outline", "github",
    "grid",
    "heavy_grid", "heavy_outline", "html", "jira", "latex", "latex_booktabs", "latex_longtable",
    "latex_raw", "mediawiki", "mixed_grid", "mixed_outline", "moinmoin", "orgtbl", "outline", "pipe",
    "plain", "presto", "pretty", "psql", "rounded_grid", "rounded_outline", "rst", "simple", "simple_grid",
    "simple_outline", "textile", "tsv", "unsafe-html", "youtrack", "unsafehtml",
)
# fmt: on
"""Formats of the manual and of tabulate, which spells `unsafe-html` as `unsafehtml`."""

_PLAIN: Final = ("grid", "outline", "plain", "presto", "pretty", "psql", "simple")
_EXTENSIONS: Final = {
    "asciidoc": "adoc",
    "github": "md",
    "html": "html",
    "latex": "tex",
    "latex_booktabs": "tex",
    "latex_longtable": "tex",
    "latex_raw": "tex",
    "orgtbl": "org",
    "pipe": "md",
    "rst": "rst",
    "textile": "textile",
    "tsv": "tsv",
    "unsafe-html": "html",
    "unsafehtml": "html",
}
_NO_ROWS: Final = {
    "resources": "collect a new profile; this one measured nothing",
    "models": "make models first, e.g. perun postprocessby <profile> regression-analysis",
}
_OUTPUT: Final = "--output-file"


@dataclass(frozen=True)
class TableParams:
    """Content, format and destination of the table; without a file it goes to standard output."""

    kind: str = param(
        "resources",
        choices=tuple(KINDS),
        commands=KINDS,
        required=True,
        help="The rows of the table.",
    )
    to_file: bool = param(
        False,
        short="-tf",
        help="Write the table to a file: that of --output-file, or a new one named after the profile.",
    )
    to_stdout: bool = param(
        False, short="-ts", help="Write the table to standard output, even if it also goes to a file."
    )
    output_file: str = param(
        "",
        short="-of",
        metavar="<output_file>",
        help="Write the table to this file, which is replaced if it exists.",
    )
    format: str = param(
        "simple",
        short="-f",
        choices=FORMATS,
        metavar="<tablefmt>",
        help="Format of the table: " + ", ".join(FORMATS) + ".",
    )
    headers: tuple[str, ...] = param(
        (),
        short="-h",
        metavar="<key>",
        modes=tuple(KINDS),
        help="Show this column only; may be repeated. By default, all columns.",
    )
    sort_by: tuple[str, ...] = param(
        (),
        short="-s",
        metavar="<key>",
        modes=tuple(KINDS),
        help="Sort the table by <key>; may be repeated, later keys order rows that are equal in the first.",
    )
    filter_by: tuple[tuple[str, str], ...] = param(
        (),
        short="-f",
        metavar="<key> <value>",
        modes=tuple(KINDS),
        help="Show only rows whose <key> has the <value>. May be repeated: rows must have one of the "
        "values for each of the keys.",
    )
    limit: int = param(
        0,
        minimum=0,
        metavar="<number>",
        modes=tuple(KINDS),
        help="Show only the first <number> of the rows; 0 shows all.",
    )


class TableOfView:
    """Writes a table of the resources or of the models of the profile."""

    name: ClassVar[str] = "tableof"
    help: ClassVar[str] = "Table of the resources or models of the profile, as text."
    Params: ClassVar[type] = TableParams

    def render(
        self, profile: Profile, params: TableParams, out: TextIO, ctx: ViewContext = NO_VIEW_CONTEXT
    ) -> None:
        """Write the table to `out`, to a file, or to both; if only to a file, its name to `out`.

        It is written while it is made, so that memory does not grow with the number of rows.

        :raises UsageError: if no row has a key, there are no rows at all, or the file cannot be written.
        """
        table, left_out = _chosen(profile, params)
        names = list(params.headers) or table.names
        more = f"... and {left_out:,} more; --limit 0 shows all" if left_out else ""
        if more and not is_plain(params.format):  # a program would take the line for a row
            ctx.note(more)
            more = ""

        def pieces() -> Iterator[str]:
            yield from lines_of(table, names, params.format)
            if more:
                yield f"{more}\n"

        saved = params.to_file or bool(params.output_file)
        if params.to_stdout or not saved:
            for piece in pieces():
                out.write(piece)
        if saved:
            extension = _EXTENSIONS.get(params.format, "txt")
            stem = f"{self.name}-{params.kind}"
            path = destination(params.output_file, stem, profile, extension, _OUTPUT)
            write_pieces(path, pieces(), _OUTPUT)
            if not params.to_stdout:
                out.write(f"{path}\n")


def is_plain(format: str) -> bool:
    """Whether the format is for people to read, and no markup or input of a program."""
    return format in _PLAIN or format.endswith(("_grid", "_outline"))


def _chosen(profile: Profile, params: TableParams) -> tuple[ColumnTable, int]:
    """The rows to show, with all columns, and how many more there are."""
    if params.kind == "models":
        table = models_of(profile)
    else:
        table = resources_of(profile, summaries=asks_for_summaries(params.filter_by))
    if not table.size:
        raise UsageError(f"the profile has no {params.kind}", _NO_ROWS[params.kind])
    for name in params.headers:
        known(table, name, "show")
    names = params.headers or table.names
    total = table.size
    if params.filter_by or params.sort_by:
        rows = ordered(table, matching(table, params.filter_by), params.sort_by)
        total = len(rows)
        table = table.taken(rows[: params.limit or None], names)
    elif params.limit:
        table = table.head(params.limit)
    return table, total - table.size


PLUGIN = TableOfView
