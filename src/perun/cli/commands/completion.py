"""`perun completion`."""

from __future__ import annotations

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    add_completion_class,
    get_completion_class,
)

from perun.cli.session import Session
from perun.cli.streams import COMPLETE

WHERE = {
    "bash": '~/.bashrc:  eval "$(perun completion bash)"',
    "zsh": '~/.zshrc:  eval "$(perun completion zsh)"',
    "fish": "~/.config/fish/completions/perun.fish:  perun completion fish > that file",
}


@add_completion_class
class Bash(BashComplete):
    """Completion for bash, which takes `HEAD~1:0@i` for three words, and completes only the last of them."""

    _before = ""

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the one at the cursor, and that one; what a colon divides is one word."""
        words, incomplete = super().get_completion_args()
        joined: list[str] = []
        for word in (*words, incomplete):
            if joined and (word.startswith(":") or joined[-1].endswith(":")):
                joined[-1] += word
            else:
                joined.append(word)
        last = joined.pop()
        if last != incomplete:
            self._before = last[: last.rindex(":") + 1]
        return joined, last

    def format_completion(self, item: CompletionItem) -> str:
        """The type of the item, and what bash is to put in the place of the word at the cursor."""
        return f"{item.type},{str(item.value).removeprefix(self._before)}"


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
