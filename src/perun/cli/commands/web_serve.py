"""`perun web serve`."""

from __future__ import annotations

import threading
import webbrowser
from contextlib import suppress

import click

from perun.cli.options import version_argument
from perun.cli.session import Session
from perun.cli.table import one_line
from perun.core.errors import UsageError
from perun.web.live import ServerState
from perun.web.server import LOCAL as LOCAL_NAMES
from perun.web.serving import LOCAL, BoundServer

VARIABLE = "PERUN_WEB_TOKEN"


@click.command()
@version_argument("revision")
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
    serving = BoundServer(ServerState(repository, revision), host, port, given, reads=token)
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
