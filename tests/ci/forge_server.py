"""A stand-in for the programming interfaces of GitHub and GitLab: as much of them as a gate asks for."""

from __future__ import annotations

import io
import json
import re
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

TOKEN = "the-token"
REPOSITORY = "owner/project"


@dataclass
class Trouble:
    """What the next requests get in place of an answer. :ivar done: it is done all the same."""

    method: str
    path: str
    status: int
    headers: dict[str, str] = field(default_factory=dict)
    message: str = ""
    times: int = 1
    done: bool = False


@dataclass
class FakeForge:
    """What it holds, and what it was asked."""

    url: str = ""
    comments: list[dict[str, Any]] = field(default_factory=list)
    checks: list[dict[str, Any]] = field(default_factory=list)
    pulls: list[dict[str, Any]] = field(default_factory=list)
    pipelines: list[dict[str, Any]] = field(default_factory=list)
    """Of the fork of GitLab, each with its jobs."""
    artifacts: dict[int, bytes] = field(default_factory=dict)
    troubles: list[Trouble] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    leaked: list[str] = field(default_factory=list)
    """Requests with a token to where none belongs."""

    def trouble(self, *given: Any, **more: Any) -> None:
        """Let the next requests of that method and path fail."""
        self.troubles.append(Trouble(*given, **more))

    def keep(self, run: int, files: dict[str, bytes]) -> None:
        """Keep the artifact of a run."""
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files.items():
                archive.writestr(name, content)
        self.artifacts[run] = packed.getvalue()

    def say(self, author: str, body: str, kind: str = "User") -> dict[str, Any]:
        """A comment of somebody."""
        user = {"login": author, "type": kind, "id": 1 if kind == "Bot" else 2}
        self.comments.append({"id": len(self.comments) + 100, "user": user, "author": user, "body": body})
        return self.comments[-1]

    def answer(self, method: str, path: str, query: dict[str, list[str]], data: Any) -> Any:
        """The answer of the API; None where there is no such thing."""
        page = int(query.get("page", ["1"])[0])
        size = int(query.get("per_page", ["30"])[0])
        part = slice((page - 1) * size, page * size)
        repo, gitlab = f"/repos/{REPOSITORY}", "/projects/5"
        if path == "/user":
            return {"login": "perun-bot", "id": 1}
        if path == f"{repo}/pulls":
            return [one for one in self.pulls if one["label"] == query["head"][0]][part]
        if found := re.fullmatch(rf"{repo}/actions/runs/(\d+)/artifacts", path):
            run = int(found[1])
            size_of = len(self.artifacts.get(run, b""))
            one = {"id": run, "name": "perun-ci", "expired": False, "size_in_bytes": size_of}
            return {"artifacts": [one] if run in self.artifacts else []}
        if path in (f"{repo}/issues/7/comments", f"{gitlab}/merge_requests/7/notes"):
            return self.comments[part] if method == "GET" else self.say("perun-bot", data["body"], "Bot")
        if found := re.fullmatch(rf"({repo}/issues/comments|{gitlab}/merge_requests/7/notes)/(\d+)", path):
            (changed,) = (one for one in self.comments if one["id"] == int(found[2]))
            changed["body"] = data["body"]
            return changed
        if path == f"{repo}/check-runs":
            self.checks.append(data)
            return data
        if path == f"{gitlab}/merge_requests":
            assert (query["state"], query["updated_after"][0][-1]) == (["opened"], "Z")
            return self.pulls[part]
        if path == f"{gitlab}/merge_requests/7/pipelines":
            return [{key: one[key] for key in one if key != "jobs"} for one in self.pipelines][part]
        if found := re.fullmatch(r"/projects/8/pipelines/(\d+)/jobs", path):
            return next(one["jobs"] for one in self.pipelines if one["id"] == int(found[1]))[part]
        if found := re.fullmatch(r"/projects/8/jobs/(\d+)/artifacts/perun-ci/gate.json", path):
            return self.artifacts.get(int(found[1]))
        if found := re.fullmatch(rf"{gitlab}/statuses/(\w+)", path):
            self.checks.append({**data, "head_sha": found[1]})
            return data
        return None


class _Handler(BaseHTTPRequestHandler):
    forge: FakeForge

    def _handle(self) -> None:
        url = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        token = self.headers.get("Authorization") or self.headers.get("PRIVATE-TOKEN")
        self.forge.asked.append(f"{self.command} {url.path}")
        if found := re.fullmatch(r"/blob/(\d+)", url.path):
            if token:
                self.forge.leaked.append(url.path)
            return self._send(200, self.forge.artifacts[int(found[1])])
        given = parse_qs(url.query), json.loads(body) if body else None
        for one in self.forge.troubles:
            if one.times and one.method == self.command and re.search(one.path, url.path):
                one.times -= 1
                if one.done:
                    self.forge.answer(self.command, url.path, *given)
                return self._send(one.status, {"message": one.message}, one.headers)
        if token not in (f"Bearer {TOKEN}", TOKEN):
            return self._send(401, {"message": "Bad credentials"})
        if found := re.fullmatch(rf"/repos/{REPOSITORY}/actions/artifacts/(\d+)/zip", url.path):
            where = f"{self.forge.url.replace('127.0.0.1', 'localhost')}/blob/{found[1]}"
            return self._send(302, {}, {"Location": where})
        answer = self.forge.answer(self.command, url.path, *given)
        return self._send(*((404, {"message": "Not Found"}) if answer is None else (200, answer)))

    do_GET = do_POST = do_PATCH = do_PUT = _handle

    def _send(self, status: int, content: Any, headers: dict[str, str] | None = None) -> None:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


@contextmanager
def serving() -> Iterator[FakeForge]:
    """A forge of its own, on this machine alone."""
    forge = FakeForge()
    handler = type("Handler", (_Handler,), {"forge": forge})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    forge.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield forge
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
