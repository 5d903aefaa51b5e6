"""The application that `perun web serve` runs."""

from __future__ import annotations

import asyncio
import hmac
import io
import secrets
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Final

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from perun.core.errors import (
    DamagedStore,
    PerunError,
    ProfileError,
    ProfileNotFound,
    UsageError,
    VersionControlError,
)
from perun.history import acknowledged
from perun.repository.lookup import identity
from perun.repository.repository import Repository
from perun.running.showing import show
from perun.web import pages
from perun.web.data.versions import PAGES, running
from perun.web.live import HttpResponse, ServerState, answer_of

# What pages are told while they are open: that something was stored, and how far a measurement is.

EVERY: Final = 1.0
"""Seconds between two looks at the store, while somebody listens."""
ALIVE: Final = 15
"""Looks after which something is sent, so that a connection that is gone is noticed."""


class EventStream:
    """The listeners of one server, who share one look at the store a second."""

    def __init__(self, live: ServerState) -> None:
        self._live = live
        self._listeners: set[asyncio.Queue[bytes]] = set()
        self._task: asyncio.Task[None] | None = None
        self._looks = asyncio.Event()
        self._ended = False

    def look(self) -> None:
        """Look at the store at once."""
        self._looks.set()

    def end(self) -> None:
        """Close all streams: the server ends."""
        self._ended = True
        for queue in self._listeners:
            queue.put_nowait(b"")
        if self._task is not None:
            self._task.cancel()

    async def stream(self) -> AsyncIterator[bytes]:
        """The events of one listener, as the browser's `EventSource` reads them."""
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        self._listeners.add(queue)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._watch())
        try:
            yield b"retry: 2000\n\n"
            while not self._ended and (event := await queue.get()):
                yield event
        finally:
            self._listeners.discard(queue)

    async def _watch(self) -> None:
        """Look until nobody listens any more."""
        known: str | None = None
        working: object = None
        silent = 0
        while self._listeners and not self._ended:
            self._looks.clear()
            silent += 1
            try:
                state = await run_in_threadpool(self._live.refresh)
                now = await run_in_threadpool(running, self._live.repo)
            except PerunError:
                state, now = known or "", None  # it is being written, or whoever asks for a piece is told
            if state != known and known is not None:
                silent = self._tell("store", {"state": state})
            if now != working:
                silent = self._tell("progress", now)
            known, working = state, now
            if silent >= ALIVE:
                silent = self._send(b": nothing new\n\n")
            try:
                await asyncio.wait_for(self._looks.wait(), EVERY)
            except TimeoutError:
                continue

    def _tell(self, event: str, data: object) -> int:
        return self._send(f"event: {event}\ndata: {msgspec.json.encode(data).decode()}\n\n".encode())

    def _send(self, message: bytes) -> int:
        for queue in self._listeners:
            queue.put_nowait(message)
        return 0


# Who may ask the server what: the check of each request before anything else looks at it.
#
# A page of another site that the user visits can send requests to his machine, and, where it controls a name
# of the domain name system, even read the answers (DNS rebinding). So the server answers under its own names
# only, and changes something only for who has the token.

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


class RequestRefusal(Exception):
    """A request that is not answered. :ivar status: of HTTP. :ivar message: and :ivar hint: for people."""

    def __init__(self, status: int, message: str, hint: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.hint = hint


@dataclass(frozen=True)
class RequestGuard:
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
        :raises RequestRefusal: says why not.
        """
        self._check_name(headers.get("host", ""))
        changes = method not in ("GET", "HEAD")
        if changes:
            self._check_origin(headers)
        if path.startswith("/api/") and headers.get("sec-fetch-site", "") not in _SAME:
            raise RequestRefusal(403, "pages of other sites may not read this", _OWN)
        if changes and not self._has_token(headers):
            raise RequestRefusal(403, "this needs the token of the server", _PRINTED)
        if self.reads and not (enters or self._has_token(headers) or self._is_reader(headers)):
            raise RequestRefusal(401, "this server needs a token", _PRINTED)

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
            raise RequestRefusal(
                421, "the server does not answer under this name",
                f"open it as {self.names[0]}, or name it: perun web serve --host NAME --token",
            )  # fmt: skip

    def _check_origin(self, headers: Mapping[str, str]) -> None:
        origin = headers.get("origin", "")
        other = origin.partition("://")[2] != headers.get("host", "")
        if other or headers.get("sec-fetch-site", "") not in _SAME:
            raise RequestRefusal(403, "pages of other sites may not change this", _OWN)


def names_of(host: str) -> tuple[str, ...]:
    """The names that a server on that host answers under; none where it listens on all addresses, whose names
    it cannot know."""
    name = f"[{host}]" if ":" in host else host.lower()
    return () if name in _EVERYWHERE else tuple(dict.fromkeys((name, *LOCAL)))


def new_token() -> str:
    """A token that nobody guesses."""
    return secrets.token_urlsafe(24)


LONGEST: Final = 64 << 10
"""Bytes of a request."""
_DOCUMENTED: Final = "docs/dashboard-api.md has its form"
_JSON: Final = "application/json"
_HTML: Final = "text/html; charset=utf-8"
_STATUS: Final = (
    (ProfileNotFound, 404), (VersionControlError, 404), (UsageError, 400), (DamagedStore, 500),
    (ProfileError, 422),
)  # fmt: skip
_KEYS: Final = frozenset({"token", "once"})
"""What the address that a browser is opened with may bring."""
_SANDBOX: Final = "sandbox allow-scripts allow-downloads; frame-ancestors 'self'"
"""Of pages that views write: what they run is of another origin, which can ask this server nothing."""


class _Ack(msgspec.Struct, forbid_unknown_fields=True):
    """What `POST api/ack` takes."""

    version: str
    location: str
    because: str = ""
    until: str = ""


class Dashboard:
    """The application. :param once: a key that is exchanged for the token, one time."""

    def __init__(self, live: ServerState, guard: RequestGuard, once: str = "") -> None:
        self._live = live
        self._guard = guard
        self._once = once
        self.events = EventStream(live)
        self._pages: dict[str, HttpResponse] = {}
        self._assets = {name: answer_of(body) for name, body in pages.assets().items()}

    @property
    def app(self) -> ASGIApp:
        """The ASGI application."""
        get = ["GET"]
        routes = [
            Route("/", self._page, methods=get),
            Route("/api/events", self._events, methods=get),
            Route("/api/ack", self._acknowledge, methods=["POST"], max_body_size=LONGEST),
            Route("/api/series/{series}/points", self._points, methods=get),
            Route("/api/{name:path}", self._piece, methods=get),
            Route("/assets/{name}", self._asset, methods=get),
            Route("/feed.atom", self._feed, methods=get),
            Route("/flame/{pair}/{number:int}.html", self._flame, methods=get),
            Route("/show/{version}/{profile}/{view}", self._show, methods=get),
            Route("/{name}", self._page, methods=get),
        ]
        failures = {PerunError: _failed, RequestRefusal: _refused, OSError: _broken, ClientDisconnect: _gone}
        return _Guarded(Starlette(routes=routes, exception_handlers=failures), self._guard)

    async def _page(self, request: Request) -> Response:
        if request.url.path == "/" and not _KEYS.isdisjoint(request.query_params):
            return self._enter(*(request.query_params.get(key, "") for key in ("token", "once")))
        names = {pages.file_name(page): page for page in pages.PAGES}
        page = names.get(request.path_params.get("name", "index.html"))
        if page is None:
            raise ProfileNotFound("there is no such page", "the overview is at /")
        if page not in self._pages:
            text = pages.html(page, project=self._live.repo.root.resolve().name, live=True)
            self._pages[page] = answer_of(text.encode("utf-8", "replace"))
        return _sent(request, self._pages[page], _HTML, {"content-security-policy": pages.POLICY})

    def _enter(self, token: str, once: str) -> Response:
        """Hand over the token to the browser that comes with it, or with the key that the server opened it
        with. It goes into the fragment, which no server and no log sees."""
        if once and self._once and once == self._once:
            self._once, token = "", self._guard.token
        if not self._guard.fits(token):
            raise RequestRefusal(
                403, "this token is not that of the server", "open the address that it printed"
            )
        answer = RedirectResponse(f"./#token={self._guard.token}", 303)
        if self._guard.reads:
            answer.set_cookie(self._guard.cookie, self._guard.token, httponly=True, samesite="strict")
        return answer

    async def _asset(self, request: Request) -> Response:
        name = f"assets/{request.path_params['name']}"
        if name not in self._assets:
            raise ProfileNotFound("there is no such file", "load the page again")
        kind = "text/css" if name.endswith(".css") else "text/javascript"
        lasting = {"cache-control": "private, max-age=31536000, immutable"}
        return _sent(request, self._assets[name], f"{kind}; charset=utf-8", lasting)

    async def _piece(self, request: Request) -> Response:
        return _sent(request, await run_in_threadpool(self._live.piece, request.path_params["name"]), _JSON)

    async def _points(self, request: Request) -> Response:
        first, last = (_number(request, name) for name in ("from", "to"))
        series = request.path_params["series"]
        return _sent(request, await run_in_threadpool(self._live.points, series, first, last), _JSON)

    async def _feed(self, request: Request) -> Response:
        address = str(request.base_url)
        return _sent(request, await run_in_threadpool(self._live.feed, address), "application/atom+xml")

    async def _flame(self, request: Request) -> Response:
        from perun.web.data import comparing

        text = await run_in_threadpool(
            comparing.flame, self._live.repo, request.path_params["pair"], request.path_params["number"]
        )
        return _sent(request, answer_of(text.encode()), _HTML, {"content-security-policy": _SANDBOX})

    async def _show(self, request: Request) -> Response:

        names = (request.path_params[name] for name in ("version", "profile", "view"))
        text = await run_in_threadpool(page, self._live.repo, *names)
        return _sent(request, answer_of(text.encode()), _HTML, {"content-security-policy": _SANDBOX})

    async def _events(self, request: Request) -> Response:
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(self.events.stream(), media_type="text/event-stream", headers=headers)

    async def _acknowledge(self, request: Request) -> Response:
        try:
            wanted = msgspec.json.decode(await request.body(), type=_Ack)
        except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
            raise UsageError(f"this is no acknowledgement: {problem}", _DOCUMENTED) from None
        if not wanted.version.isalnum():
            raise UsageError(f"{wanted.version[:40]!r} is no checksum of a version", _DOCUMENTED)
        entry, _ = await run_in_threadpool(
            acknowledged.acknowledge, self._live.repo, wanted.version, wanted.location,
            until=wanted.until, because=wanted.because,
        )  # fmt: skip
        self._live.forget()
        self.events.look()
        given = {name: value or None for name, value in entry._asdict().items()}
        return Response(msgspec.json.encode({"acknowledged": given}), media_type=_JSON)


def _number(request: Request, name: str) -> int:
    text = request.query_params.get(name, "")
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise UsageError(f"{name}={text[:20]} is no position", "write e.g. ?from=0&to=999")
    return int(text)


def _sent(request: Request, answer: HttpResponse, kind: str, more: dict[str, str] | None = None) -> Response:
    """The answer, or that the browser has it already."""
    headers = {"etag": answer.tag, "cache-control": "no-cache", "vary": "accept-encoding", **(more or {})}
    if answer.tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if answer.packed and "gzip" in request.headers.get("accept-encoding", ""):
        headers["content-encoding"] = "gzip"
        return Response(answer.packed, headers=headers, media_type=kind)
    return Response(answer.body, headers=headers, media_type=kind)


async def _failed(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, PerunError)
    status = next((status for kind, status in _STATUS if isinstance(problem, kind)), 500)
    return refusal(status, problem.message, problem.hint)


async def _refused(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, RequestRefusal)
    return refusal(problem.status, problem.message, problem.hint)


async def _broken(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, OSError)
    reason = problem.strerror or str(problem)
    where = f"{problem.filename}: " if problem.filename else ""
    return refusal(503, f"{where}{reason}", "try again; if it stays so, see what the machine lacks")


async def _gone(request: Request, problem: Exception) -> Response:
    return Response(status_code=400)  # nobody reads it any more


def refusal(status: int, message: str, hint: str) -> Response:
    """An error as JSON, for people to read."""
    body = msgspec.json.encode({"error": message, "hint": hint})
    return Response(body, status, {"cache-control": "no-store"}, _JSON)


class _Guarded:
    """An application behind the guard."""

    def __init__(self, app: ASGIApp, guard: RequestGuard) -> None:
        self._app = app
        self._guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return  # there is nothing else here

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        request = Request(scope)
        try:
            self._guard.check(
                request.method, request.url.path, request.headers,
                enters=request.url.path == "/" and not _KEYS.isdisjoint(request.query_params),
            )  # fmt: skip
            await self._app(scope, receive, sending)
        except RequestRefusal as problem:
            await refusal(problem.status, problem.message, problem.hint)(scope, receive, sending)


# A profile as a page of `perun show`.


def page(repo: Repository, version: str, profile: str, view: str) -> str:
    """The page that a view makes of a registered profile.

    :param version: its checksum. :param profile: the id of the profile, as of `commits/K`.
    :raises ProfileNotFound: if there is no such profile, or the view makes no page of it.
    :raises PerunError: if it cannot be read.
    """
    infos = [entry.info() for entry in repo.store.indexes.read(version)]
    found = next((info for info in infos if identity(info) == profile), None)
    if found is None:
        raise ProfileNotFound(f"{version[:10]} has no profile {profile[:20]!r}", "see its page")
    if view not in PAGES.get(found.configuration.collector, ()):
        raise ProfileNotFound(
            f"there is no page {view[:40]!r} of profiles of {found.configuration.collector}",
            "perun show has all views",
        )
    loaded = repo.store.objects.get(found.checksum)
    params = repo.registry.get("view", view).Params()
    with tempfile.TemporaryDirectory(prefix="perun-web-") as folder:
        path = Path(folder) / "page.html"
        show(repo, loaded, view, replace(params, filename=str(path)), io.StringIO())
        return path.read_text("utf-8")
