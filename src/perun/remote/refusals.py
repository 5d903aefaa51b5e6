"""What holds a remote refuses, told in words of who uses it: tables of what is known of each kind."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from perun.errors import RemoteError
from perun.remote.contract import Remote

AGAIN: Final = "try again: what was sent or fetched is not sent or fetched again"
"""The hint where nothing better is known."""


class Refusal(NamedTuple):
    """What is told where a pattern is found in an answer; names in braces are replaced."""

    pattern: re.Pattern[str]
    message: str
    hint: str

    @classmethod
    def of(cls, pattern: str, message: str, hint: str) -> Refusal:
        """The refusal with the pattern compiled."""
        return cls(re.compile(pattern), message, hint)


def told(remote: Remote, known: Iterable[Refusal], text: str, **values: str) -> RemoteError | None:
    """The error of the first refusal whose pattern is in the text of an answer; None if there is none.

    :param values: what is put in place of the names.
    """
    for one in known:
        if one.pattern.search(text):
            message = one.message.format(**values)
            return RemoteError(f"{remote.url}: {message}", one.hint.format(**values))
    return None
