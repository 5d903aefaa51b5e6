"""`perun web`: the dashboard."""

from __future__ import annotations

import threading
import webbrowser
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import click

from perun.cli.completing import complete_minor
from perun.cli.options import LazyGroup
from perun.cli.session import Session
from perun.cli.table import one_line
from perun.core.errors import PluginError, UsageError
from perun.core.extras import install_command
from perun.core.wording import listed, plural
from perun.profile.amounts import readable
from perun.web.build import build as run
from perun.web.live import Live
from perun.web.server import LOCAL as LOCAL_NAMES
from perun.web.serving import LOCAL, Serving

COMMANDS: Final = {
    "serve": ("perun.cli.commands.web:serve", "Show the dashboard of the project in a browser."),
    "build": ("perun.cli.commands.web:build", "Write the dashboard as a folder of files."),
}
_NEEDS: Final = {"serve": ("jinja2", "starlette", "uvicorn"), "build": ("jinja2",)}
"""Libraries of the extra `web`. The first is part of the extra `plots`, too."""


class _WebGroup(LazyGroup):
    """A group whose commands need an extra of Perun."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now; None if there is no such name.

        :raises PluginError: if the extra is not installed.
        """
        missing = [name for name in _NEEDS.get(cmd_name, ()) if find_spec(name) is None]
        if missing:
            raise PluginError(
                f"perun web {cmd_name} needs what is not installed here: {listed(missing)}",
                f"install it with: {install_command('web')}",
            )
        return super().get_command(ctx, cmd_name)


@click.group(cls=_WebGroup, lazy=COMMANDS)
def web() -> None:
    """Show the dashboard: what got slower, since when and why.

    \b
    perun web serve             in the browser of this machine
    perun web build public      as files, which open from disk and from any web server
    """


# `perun web build`.


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@click.argument("revision", metavar="[REV]", required=False, shell_complete=complete_minor)
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


# `perun web serve`.

VARIABLE = "PERUN_WEB_TOKEN"


@click.command()
@click.argument("revision", metavar="[REV]", required=False, shell_complete=complete_minor)
@click.option(
    "--port", "-p", type=click.IntRange(0, 65535), default=0, metavar="N", help="Port; a free one by default."
)
@click.option(
    "--host", metavar="NAME", default=LOCAL, show_default=True,
    help="Name or address of this machine to listen on, for other machines. Needs --token.",
)  # fmt: skip
@click.option(
    "--token", is_flag=True,
    help=f"Only who has the token can read: that of ${VARIABLE}, else a new one, which is printed.",
)  # fmt: skip
@click.option("--no-open", is_flag=True, help="Do not open the browser.")
@click.pass_obj
def serve(session: Session, revision: str | None, port: int, host: str, token: bool, no_open: bool) -> None:
    """Show the dashboard of the project in a browser, until Ctrl-C.

    It follows the history along the first parents of REV, HEAD by default, and is brought up to date while
    profiles are stored. Nothing can be changed through it but the acknowledging of changes, by who opened the
    address that is printed.

    \b
    perun web serve
    perun web serve --port 8080 --no-open
    perun web serve --host 192.0.2.7 --token
    """
    given = session.environ.get(VARIABLE, "")
    if host not in (*LOCAL_NAMES, "::1") and not token:
        raise UsageError(
            f"--host {host} lets other machines read what is measured here, and needs --token",
            f"add --token; for this machine alone leave out --host, or give {LOCAL}",
        )
    if given and (len(given) < 16 or not given.isascii() or any(one in given for one in ' ;,"\\&#?%+')):
        raise UsageError(
            f"${VARIABLE} is shorter than 16 characters, or has some that an address cannot have",
            "make one with: python3 -c 'import secrets; print(secrets.token_urlsafe(24))'",
        )
    repository = session.repository
    if revision is not None:
        repository.version(revision)  # a mistake is told before anything is opened
    serving = Serving(Live(repository, revision), host, port, given, reads=token)
    session.say(f"dashboard of {one_line(str(repository.root))}: {serving.with_token}")
    session.note("Ctrl-C ends it")
    if not no_open:
        threading.Thread(target=_open, args=(serving.opened_once,), daemon=True).start()
    # To be ended is how a server ends.
    with suppress(KeyboardInterrupt):
        serving.run()


def _open(address: str) -> None:
    """Open the browser; where there is none, the address was printed."""
    with suppress(webbrowser.Error, OSError):
        webbrowser.open(address)
