"""Who may ask the server what: the check of each request before anything else looks at it.

A page of another site that the user visits can send requests to his machine, and, where it controls a name
of the domain name system, even read the answers (DNS rebinding). So the server answers under its own names
only, and changes something only for who has the token.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Final

LOCAL: Final = ("127.0.0.1", "localhost", "[::1]")
_EVERYWHERE: Final = ("0.0.0.0", "[::]")
_SAME: Final = ("", "same-origin", "none")
_OWN: Final = "open the address of the server itself"
_PRINTED: Final = "open the address that perun web serve printed"
HEADERS: Final[Mapping[str, str]] = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
"""What each answer carries."""


class Refused(Exception):
    """A request that is not answered. :ivar status: of HTTP. :ivar message: and :ivar hint: for people."""

    def __init__(self, status: int, message: str, hint: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.hint = hint


@dataclass(frozen=True)
class Guard:
    """The rules of one server.

    :ivar names: under which it answers; any if there are none. :ivar token: what changes need.
    :ivar reads: whether reading needs it, too. :ivar port: that it listens on.
    """

    names: Sequence[str]
    token: str
    reads: bool
    port: int

    @property
    def cookie(self) -> str:
        """The name of the cookie that readers have; browsers share cookies among all ports of a machine."""
        return f"perun-{self.port}"

    def check(self, method: str, path: str, headers: Mapping[str, str], *, enters: bool = False) -> None:
        """Let the request pass, or not.

        :param headers: by their names in lower case. :param enters: whether it comes with a token in its
            address, which is looked at later.
        :raises Refused: says why not.
        """
        self._check_name(headers.get("host", ""))
        changes = method not in ("GET", "HEAD")
        if changes:
            self._check_origin(headers)
        if path.startswith("/api/") and headers.get("sec-fetch-site", "") not in _SAME:
            raise Refused(403, "pages of other sites may not read this", _OWN)
        if changes and not self._has_token(headers):
            raise Refused(403, "this needs the token of the server", _PRINTED)
        if self.reads and not (enters or self._has_token(headers) or self._is_reader(headers)):
            raise Refused(401, "this server needs a token", _PRINTED)

    def fits(self, token: str) -> bool:
        """Whether it is the token; takes the same time for all others."""
        return hmac.compare_digest(token.encode("utf-8", "replace"), self.token.encode())

    def _has_token(self, headers: Mapping[str, str]) -> bool:
        kind, _, token = headers.get("authorization", "").partition(" ")
        return kind.lower() == "bearer" and self.fits(token.strip())

    def _is_reader(self, headers: Mapping[str, str]) -> bool:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            return False
        return found is not None and self.fits(found.value)

    def _check_name(self, host: str) -> None:
        name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
        if self.names and name.lower() not in self.names:
            raise Refused(
                421, "the server does not answer under this name",
                f"open it as {self.names[0]}, or name it: perun web serve --host NAME --token",
            )  # fmt: skip

    def _check_origin(self, headers: Mapping[str, str]) -> None:
        origin = headers.get("origin", "")
        other = origin.partition("://")[2] != headers.get("host", "")
        if other or headers.get("sec-fetch-site", "") not in _SAME:
            raise Refused(403, "pages of other sites may not change this", _OWN)


def names_of(host: str) -> tuple[str, ...]:
    """The names that a server on that host answers under; none where it listens on all addresses, whose names
    it cannot know."""
    name = f"[{host}]" if ":" in host else host.lower()
    return () if name in _EVERYWHERE else tuple(dict.fromkeys((name, *LOCAL)))


def new_token() -> str:
    """A token that nobody guesses."""
    return secrets.token_urlsafe(24)
