"""`perun web`: the command, as it is typed."""

import asyncio
import contextlib
import http.client
import json
import re
import resource
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

import measured_history
from perun.cli.commands.web import web
from perun.core.errors import PluginError
from perun.store.cache import FILE, Cache
from perun.web.data.pieces import Pieces, encoded
from perun.web.data.state import load
from perun.web.serving import _Lacks

URL = re.compile(r"http://(?P<host>[^:/]+):(?P<port>\d+)/(?P<with>[?#]token=)(?P<token>\S+)")


@pytest.fixture
def serving(command, environment, measured):
    """Start `perun web serve` in the project and get the process, and what it printed of its address."""
    started = []

    def start(*arguments, **env):
        process = subprocess.Popen(
            [*command, "web", "serve", "--no-open", *arguments], cwd=measured.path, text=True,
            env={**environment, **env}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        started.append(process)
        line = process.stdout.readline()
        found = URL.search(line)
        assert found, (line, process.stderr.read())
        return process, found

    yield start
    for process in started:
        process.kill()
        process.communicate()


def ask(port, path, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=60)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, body


def test_it_serves_until_ctrl_c(serving, measured):
    process, url = serving()
    assert (url["host"], url["with"]) == ("127.0.0.1", "#token=")
    status, body = ask(url["port"], "/api/site")
    assert (status, json.loads(body)["head"]) == (200, measured.main[-1])
    assert ask(url["port"], "/")[0] == 200
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "")
    assert err == "Ctrl-C ends it\n"


def test_other_machines_need_the_token(perun, serving, measured):
    perun("web", "serve", "--host", "0.0.0.0", "--no-open", cwd=measured.path, code=2, err="needs --token")
    process, url = serving("--host", "0.0.0.0", "--token", PERUN_WEB_TOKEN="a-token-of-a-team-1234")
    assert (url["with"], url["token"]) == ("?token=", "a-token-of-a-team-1234")
    assert ask(url["port"], "/api/site")[0] == 401
    assert ask(url["port"], "/api/site", Authorization=f"Bearer {url['token']}", Host="any.example")[0] == 200
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 143


@pytest.mark.parametrize(("arguments", "env", "code", "message"), [
    (("nonsense",), {}, 4, "nonsense"),
    (("--token",), {"PERUN_WEB_TOKEN": "short"}, 2, "shorter than 16 characters"),
    (("--token",), {"PERUN_WEB_TOKEN": "with a blank and so on"}, 2, "an address cannot have"),
    (("--port", "70000"), {}, 2, "70000"),
])  # fmt: skip
def test_what_cannot_be_served_is_told(perun, measured, arguments, env, code, message):
    answer = perun("web", "serve", "--no-open", *arguments, cwd=measured.path, env=env, check=False)
    assert (answer.code, answer.out) == (code, "")
    assert message in answer.err


def test_a_port_that_is_taken_is_told(perun, measured):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        answer = perun("web", "serve", "--no-open", "--port", port, cwd=measured.path, check=False)
    assert answer.code == 2
    assert f"cannot listen on 127.0.0.1, port {port}" in answer.err
    assert "give another --port" in answer.err


def test_it_builds_a_site_of_a_version(perun, measured, tmp_path):
    arguments = ("web", "build", "public", "HEAD~10", "--url", "https://example.org/perf")
    assert perun(*arguments, cwd=measured.path).out.startswith("public/index.html: ")
    site = measured.path / "public"
    text = (site / "data" / "site.js").read_text()
    assert measured.main[-11] in text and measured.main[-1] not in text
    assert 'href="https://example.org/perf/commit.html?c=' in (site / "feed.atom").read_text()
    assert re.search(r"; [01] written$", perun(*arguments, cwd=measured.path).out.strip())


def test_pages_say_what_changes_says(perun, measured):
    """The headline counts those that lead, are definite, and are not taken back, since the tag."""
    pieces = Pieces(load(measured.open()), "")
    piece = lambda name: json.loads(encoded(pieces.piece(name)))  # noqa: E731
    answer = perun("changes", "v1.0..", "--json", cwd=measured.path).json
    steps = [step for one in answer["changes"] for step in one["steps"] if step["headline"]]
    left = [step for step in steps if step["decides"] and not (step["taken_back"] or step["takes_back"])]
    verdict = piece("overview")["verdict"]
    assert verdict["changes"] == len(left) == 2
    assert verdict["doubtful"] == sum(not step["decides"] and not step["taken_back"] for step in steps)
    told = perun("changes", cwd=measured.path).out
    for one in piece("changes")["changes"]:
        line = next(line for line in told.splitlines() if f"  {one['location']}  " in line)
        assert f"{one['word']}  {one['location']}  {' -> '.join(one['sides'])}  {one['text']}" in line.strip()


def test_what_cannot_be_built_is_told(perun, measured):
    perun("web", "build", ".", cwd=measured.path, code=2, err="holds other files")
    wrong = perun("web", "build", "public", "--url", "example.org", cwd=measured.path, check=False)
    assert (wrong.code, "is no address of a site" in wrong.err) == (2, True)
    perun("web", "build", "public", "nonsense", cwd=measured.path, code=4)
    assert not (measured.path / "public").exists()


def test_without_the_libraries_it_says_how_to_install_them(monkeypatch):
    monkeypatch.setitem(sys.modules, "starlette", None)
    context = click.Context(web)
    with pytest.raises(PluginError, match=r"perun web serve needs .*: starlette$") as problem:
        web.get_command(context, "serve")
    assert "starlette" in problem.value.hint
    assert web.list_commands(context) == ["serve", "build"]


def test_a_site_is_built_without_the_libraries_of_the_server(monkeypatch):
    monkeypatch.setitem(sys.modules, "starlette", None)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert web.get_command(click.Context(web), "build").name == "build"
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(PluginError, match=r"perun web build needs .*: jinja2$"):
        web.get_command(click.Context(web), "build")


def test_the_caches_are_made_anew(perun, measured):
    perun("changes", cwd=measured.path)
    cache = measured.path / ".perun" / "cache" / FILE
    cache.write_bytes(b"spoiled")
    perun("fsck", "--rebuild", cwd=measured.path, out="made the caches of 44 versions anew")
    assert len(Cache(cache).all("columns", bytes)) == 44
    found = perun("changes", "--json", cwd=measured.path).json["changes"]
    assert [one["version"] for one in found] == [measured.main[measured_history.SLOWER]]


def asked_again(port):
    """The status of an answer; one that is refused is asked for again."""
    for _ in range(600):
        with contextlib.suppress(ConnectionError):
            return ask(port, "/api/site")[0]
        time.sleep(0.1)
    return 0


@pytest.mark.slow
def test_more_connections_than_it_may_have(serving):
    """Those beyond half of its descriptors are closed at once, so that it always has some for the others."""
    process, url = serving()
    assert process.stderr.readline() == "Ctrl-C ends it\n"
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (400, 400))
    with contextlib.ExitStack() as stack:
        for _ in range(300):
            stack.enter_context(socket.create_connection(("127.0.0.1", int(url["port"]))))
    assert asked_again(url["port"]) == 200
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60) == ("", "")


def test_no_descriptor_for_a_connection(serving):
    process, url = serving()
    assert asked_again(url["port"]) == 200
    assert process.stderr.readline() == "Ctrl-C ends it\n"
    taken = len(list(Path(f"/proc/{process.pid}/fd").iterdir()))
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (taken + 1, 4096))
    with contextlib.ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(socket.create_connection(("127.0.0.1", int(url["port"]))))
        assert process.stderr.readline() == "new connections have to wait: Too many open files\n"
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (1024, 4096))
    assert asked_again(url["port"]) == 200
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60) == ("", "")


def test_a_loop_that_listens_again_after_the_end(capfd):
    """Where it lacked descriptors, it does so for a second, also if its socket has been closed."""
    listening = socket.socket()

    async def listen_again():
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(_Lacks(listening))
        listening.close()
        loop.call_soon(lambda: loop.add_reader(listening, print))
        await asyncio.sleep(0)

    asyncio.run(listen_again())
    assert capfd.readouterr() == ("", "")
