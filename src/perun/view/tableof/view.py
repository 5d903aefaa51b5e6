"""The table-of view: which table, in which format, and where it goes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, TextIO

from perun.errors import UsageError
from perun.plugin.api import ALONE, ViewContext
from perun.plugin.params import param

if TYPE_CHECKING:
    from perun.profile.factory import Profile

KINDS: Final = {
    "resources": "Outputs the resources of the profile as a table.",
    "models": "Outputs the models of the profile as a table.",
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
"""Formats of the manual and of the library, which calls `unsafe-html` `unsafehtml`."""

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
    "models": "make some with a postprocessor first, e.g. perun postprocessby <profile> regression-analysis",
}
_OUTPUT: Final = "--output-file"


@dataclass(frozen=True)
class TableParams:
    """Content, format and destination of the table; without a destination it goes to standard output."""

    kind: str = param(
        "resources",
        choices=tuple(KINDS),
        commands=KINDS,
        required=True,
        help="What the rows of the table are.",
    )
    to_file: bool = param(
        False,
        short="-tf",
        help="The table will be saved into a file. By default, the name of the output file is automatically "
        "generated, unless `--output-file` option does not specify the name of the output file.",
    )
    to_stdout: bool = param(False, short="-ts", help="The table will be output to standard output.")
    output_file: str = param(
        "",
        short="-of",
        metavar="<output_file>",
        help="Target output file, where the transformed table will be saved; replaced where it exists.",
    )
    format: str = param(
        "simple",
        short="-f",
        choices=FORMATS,
        metavar="<tablefmt>",
        help="Format of the outputted table: " + ", ".join(FORMATS) + ".",
    )
    headers: tuple[str, ...] = param(
        (),
        short="-h",
        metavar="<key>",
        modes=tuple(KINDS),
        help="Sets the headers that will be displayed in the table. If none are stated then all of the "
        "headers will be outputed.",
    )
    sort_by: tuple[str, ...] = param(
        (), short="-s", metavar="<key>", modes=tuple(KINDS), help="Sorts the table by <key>."
    )
    filter_by: tuple[tuple[str, str], ...] = param(
        (),
        short="-f",
        metavar="<key> <value>",
        modes=tuple(KINDS),
        help="Filters the table to rows, where <key> == <value>. If the `--filter` is set several times, "
        "then rows satisfying all rules will be selected for different keys; and the rows satisfying some "
        "rule will be selected for same key.",
    )


class TableOfView:
    """Writes a table of the resources or of the models."""

    name: ClassVar[str] = "tableof"
    help: ClassVar[str] = "Textual representation of the profile as a table."
    Params: ClassVar[type] = TableParams

    def render(self, profile: Profile, params: TableParams, out: TextIO, ctx: ViewContext = ALONE) -> None:
        """Write the table to `out`, to a file, or to both; for a file alone `out` gets its name.

        :raises UsageError: where a key is in no row, there are no rows to choose from, or the file cannot
            be written.
        """
        from perun.view.tableof.table import columns_of, filtered, formatted, rows_of, sorted_rows

        rows = rows_of(profile, params.kind)
        if not rows:
            raise UsageError(f"the profile has no {params.kind}", _NO_ROWS[params.kind])
        known = columns_of(rows)
        columns = list(params.headers) or known
        chosen = sorted_rows(filtered(rows, params.filter_by, known), params.sort_by, known)
        text = formatted(chosen, columns, known, params.format) + "\n"
        saved = params.to_file or bool(params.output_file)
        if params.to_stdout or not saved:
            out.write(text)
        if saved:
            from perun.view._common.files import destination
            from perun.view._common.page import write_text

            extension = _EXTENSIONS.get(params.format, "txt")
            stem = f"{self.name}-{params.kind}"
            path = destination(params.output_file, stem, profile, extension, _OUTPUT)
            write_text(path, text, _OUTPUT)
            if not params.to_stdout:
                out.write(f"{path}\n")
