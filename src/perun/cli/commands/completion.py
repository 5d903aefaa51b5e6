"""`perun completion`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from perun.cli.session import Session
from perun.cli.streams import COMPLETE

WHERE = {
    "bash": '~/.bashrc:  eval "$(perun completion bash)"',
    "zsh": '~/.zshrc:  eval "$(perun completion zsh)"',
    "fish": "~/.config/fish/completions/perun.fish:  perun completion fish > that file",
}


@click.command()
@click.argument("shell", type=click.Choice(list(WHERE)))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script for a shell.

    The end of it says where to put it.
    """
    session: Session = ctx.obj
    found = get_completion_class(shell)
    assert found is not None
    session.say(found(ctx.find_root().command, {}, "perun", COMPLETE).source().rstrip())
    session.say(f"# for {WHERE[shell]}")
