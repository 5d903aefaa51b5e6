"""Charts as a page: the JSON of a Bokeh document for each, which the script of the page draws with BokehJS.

BokehJS is part of the installed package of Bokeh, whose Python modules are not imported.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from perun.core.errors import PluginError
from perun.pages.document import numbers_script
from perun.plugin.api import Readiness
from perun.view._common.chart import Chart, shortened
from perun.view._common.plot_document import NAME_IN_HOVER, document

_NO_BOKEH: Final = "Bokeh is not installed, and pages with charts need it"


def write_plots(path: Path, charts: Sequence[Chart]) -> None:
    """Write a page that shows the first chart, and lets the reader choose among all.

    :raises UsageError: if the file cannot be written.
    :raises PluginError: if Bokeh is not installed.
    """
    import json

    from perun.pages.document import data_block, escape, text_beside
    from perun.pages.theme import CSS, dark_colours
    from perun.view._common.files import write_page

    data = [
        {
            "name": shortened(chart.name, NAME_IN_HOVER),
            "title": chart.title,
            "notes": [*chart.notes],
            "item": document(chart),
        }
        for chart in charts
    ]
    first = charts[0]
    body = _BODY.format(
        title=escape(first.title),
        notes=escape(". ".join(note.rstrip(".") for note in first.notes)),
        chooser=_CHOOSER if len(charts) > 1 else "",
        data=data_block("charts", data),
    )
    colours = f"const perunDarkColours = {json.dumps(dark_colours())};\n"
    scripts = (bokeh_script(), numbers_script(), colours + text_beside(__file__, "plot.js"))
    write_page(
        path,
        title=shortened(first.title, NAME_IN_HOVER),
        body=body,
        style=CSS + text_beside(__file__, "plot.css"),
        scripts=scripts,
        evaluates=True,  # BokehJS compiles the code of its formatters
    )


def bokeh_script() -> str:
    """The text of BokehJS, from the files of the installed package.

    :raises PluginError: if it is not installed.
    """
    path = _bokeh_path()
    if path is None:
        raise PluginError(_NO_BOKEH, f"{_how_to_install()}, or draw in the terminal with --terminal")
    return path.read_text("utf-8")


def readiness() -> Iterator[Readiness]:
    """What this machine lacks to write pages with charts; nothing where all is there."""
    if _bokeh_path() is None:
        yield Readiness("pages", _NO_BOKEH, f"{_how_to_install()}; --terminal works without it")


def _how_to_install() -> str:
    from perun.core.extras import install_command

    return f"install it with: {install_command('plots')}"


def _bokeh_path() -> Path | None:
    from importlib.util import find_spec

    found = find_spec("bokeh")
    for folder in (found.submodule_search_locations or ()) if found else ():
        script = Path(folder, "server", "static", "js", "bokeh.min.js")
        if script.is_file():
            return script
    return None


_CHOOSER: Final = """\
<div class="controls">
<label for="chooser">Show</label> <select id="chooser"></select>
<input id="find" type="search" placeholder="find" aria-label="find a chart by its name">
<button id="before" type="button" title="the previous chart">&#9664;</button>
<button id="behind" type="button" title="the next chart">&#9654;</button>
</div>"""

_BODY: Final = """\
<main>
<h1 id="title">{title}</h1>
<p class="subtitle" id="notes">{notes}</p>
{chooser}
<div id="plot" role="img"></div>
<p class="note">Click a name in the legend to hide or show its data; drag to move the chart, choose the
magnifier to zoom into a box, point at data to read the values.</p>
</main>
<noscript>This page draws its chart with JavaScript, which is turned off in this browser.</noscript>
{data}"""
