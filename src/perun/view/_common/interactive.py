"""Pages that draw on a canvas with a script of their own: the flame graph and the heap map.

Such a view has `page.html`, `page.css` and `page.js` beside its Python files. This module adds what all such
pages share, of :mod:`perun.pages.interactive`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from perun.pages.document import data_block, escape, text_beside
from perun.pages.interactive import shared_script, shared_style
from perun.pages.theme import PALETTE, RAMP
from perun.view._common.files import write_page


def write_interactive_page(
    path: Path,
    view: str,
    *,
    data: Mapping[str, Any],
    title: str,
    subtitle: str = "",
    scripts: Sequence[str] = ("page.js",),
) -> None:
    """Write the page of a view, whose old content is there until the new one is whole.

    :param view: the `__file__` of the view, beside which the parts of its page lie.
    :param data: what the script reads from the element `data`, with the colours of the theme added.
    :param title: any text. :param subtitle: likewise; the template `page.html` has the places for both.
    :param scripts: names of files beside the view, run in this order as one script.
    :raises UsageError: if the file cannot be written.
    """
    from string import Template

    document = {**data, "palette": PALETTE, "ramp": RAMP}
    body = Template(text_beside(view, "page.html")).substitute(
        title=escape(title), subtitle=escape(subtitle), data=data_block("data", document)
    )
    parts = [shared_script(), *(text_beside(view, name) for name in scripts)]
    write_page(
        path,
        title=title,
        body=body,
        style=shared_style() + text_beside(view, "page.css"),
        scripts=["\n".join(parts)],
    )
