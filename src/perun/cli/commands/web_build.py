"""`perun web build`."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import click

from perun.cli.options import version_argument
from perun.cli.session import Session
from perun.cli.table import one_line
from perun.core.errors import UsageError
from perun.core.wording import plural
from perun.profile.amounts import readable
from perun.web.build import build as run


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@version_argument("revision")
@click.option(
    "--url", metavar="URL", default="",
    help="Where the site will be published, such as https://example.org/perf/, for the links of its feed.",
)  # fmt: skip
@click.pass_obj
def build(session: Session, folder: Path, revision: str | None, url: str) -> None:
    """Write the dashboard as a folder of files.

    They open from disk, and any web server can publish them; they load nothing from elsewhere. In a DIR with
    an earlier build only what changed is written.

    \b
    perun web build public
    perun web build public main --url https://example.org/perf/
    """
    if url and (urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).netloc):
        raise UsageError(f"--url {url} is no address of a site", "write it as in https://example.org/perf/")
    address = url if not url or url.endswith("/") else f"{url}/"
    with session.progress(0, "reading versions") as bar:
        built = run(session.repository, session.cwd / folder, revision, address, bar.update)
    session.say(
        f"{one_line(str(folder / 'index.html'))}: {plural(built.files, 'file')}, "
        f"{readable(built.size, 'B')}; {built.written} written"
    )
