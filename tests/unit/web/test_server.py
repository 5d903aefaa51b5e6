"""What the server answers to whom, over a real connection."""

import gzip
import http.client
import json
import math
import os
import socket
import threading
import xml.etree.ElementTree as xml
from concurrent.futures import ThreadPoolExecutor

import pytest

import measured_history
from measured_history import SLOWER
from perun.history.acknowledged import Acknowledgements
from perun.profile.factory import Profile
from perun.repository import config
from perun.store.pending import link
from perun.web import pages
from perun.web.data import pieces
from perun.web.live import ServerState
from web_server import Server, acknowledgement, allowed


def test_assets_last_and_data_is_asked_for_again(server):
    names = list(pages.assets())
    answers = [server.ask(f"/{name}") for name in names]
    assert all(one.status == 200 and "immutable" in one.headers["cache-control"] for one in answers)
    kinds = {one.headers["content-type"].partition(";")[0] for one in answers}
    assert kinds == {"text/javascript", "text/css"}
    first = server.ask("/api/overview")
    assert first.headers["cache-control"] == "no-cache"
    again = server.ask("/api/overview", If_None_Match=first.headers["etag"])
    assert (again.status, again.body) == (304, b"")
    assert server.ask("/api/overview", If_None_Match='"another"').status == 200


def test_answers_are_packed_for_who_wants_that(server):
    plain = server.ask("/api/grid")
    packed = server.ask("/api/grid", Accept_Encoding="gzip, br")
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    assert len(packed.body) < len(plain.body) / 2


def test_ranges_of_points_are_answered(server):
    name = server.ask("/api/series").json["series"][0]["id"]
    whole = server.ask(f"/api/series/{name}").json["lines"][0]
    part = server.ask(f"/api/series/{name}/points?from=2&to=4").json["lines"]
    assert part == [{**part[0], "at": [2, 1, 1], "value": whole["value"][2:5]}]
    for query in ("", "?from=1", "?from=-1&to=3", "?from=1&to=9999999999", "?from=a&to=b"):
        answer = server.ask(f"/api/series/{name}/points{query}")
        assert (answer.status, list(answer.json)) == (400, ["error", "hint"])


def test_who_has_the_token_acknowledges_and_pages_show_it(serve, measured):
    server = serve(measured)
    assert server.ask("/api/overview").json["verdict"]["acknowledged"] == 0
    answer = server.ask("/api/ack", "POST", acknowledgement(measured), **allowed(server))
    assert answer.status == 200
    assert answer.json["acknowledged"]["because"] == "correct now"
    (entry,) = Acknowledgements.load(measured.open()).entries
    assert (entry.version, entry.location) == (measured.main[SLOWER], "./app*")
    assert server.ask("/api/overview").json["verdict"]["acknowledged"] == 2


def test_the_feed_is_atom_and_names_each_changed_version(server, measured_template):
    root = xml.fromstring(server.ask("/feed.atom").body)
    space = {"a": "http://www.w3.org/2005/Atom"}
    (entry,) = root.findall("a:entry", space)
    assert measured_template.main[SLOWER] in entry.find("a:id", space).text
    assert entry.find("a:title", space).text == f"2 worse: Change number {SLOWER}"
    assert "+100" in entry.find("a:content", space).text or "+99" in entry.find("a:content", space).text
    link = entry.find("a:link", space).attrib["href"]
    assert link.startswith(server.serving.address)
    assert root.find("a:updated", space).text == entry.find("a:updated", space).text


def with_stacks(made, place, amount):
    """Register a profile with call stacks."""
    header = {"type": "instructions", "units": {"instructions": "instr"}, "cmd": "./app"}
    profile = Profile({"header": header, "collector_info": {"name": "instructions"}, "postprocessors": []})
    trace = [{"function": name, "source": "a.c", "line": 1} for name in ("<b>sort</b>", "main")]
    profile.update_resources(
        [{"uid": trace[0], "type": "instructions", "subtype": "exclusive", "amount": amount, "trace": trace}]
    )
    link(made.open().store, made.main[place], [(profile, f"stacks-{place}.perf", 1_700_000_000)])


def test_profiles_with_stacks_are_drawn_in_a_sandbox(serve, measured):
    with_stacks(measured, 3, 100)
    with_stacks(measured, 4, 200)
    server = serve(measured)
    pair = f"{measured.main[3]}..{measured.main[4]}"
    cases = server.ask(f"/api/compare/{pair}").json["cases"]
    (flame,) = [case["flame"] for case in cases if "instructions" in case["title"]]
    assert {case["flame"] for case in cases} == {None, flame}
    commits = server.ask("/api/commits/0").json["commits"]
    (profile,) = [one for one in commits[3]["profiles"] if one["collector"] == "instructions"]
    assert profile["views"] == ["flamegraph"]
    shown = f"/show/{measured.main[3]}/{profile['id']}"
    for path in (f"/{flame}", f"{shown}/flamegraph"):
        answer = server.ask(path)
        assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert answer.headers["content-security-policy"].startswith("sandbox allow-scripts")
        assert b"<b>sort" not in answer.body and b"sort" in answer.body
    other = (f"{shown}/raw", f"/show/{measured.main[3]}/nonsense/flamegraph", f"/show/x/{profile['id']}/y")
    assert {server.ask(path).status for path in other} == {404}


@pytest.fixture
def listen():
    """The stream of events of a server, as lines."""
    opened = []

    def start(server):
        connection = http.client.HTTPConnection("127.0.0.1", server.serving.port, timeout=60)
        connection.request("GET", "/api/events")
        opened.extend((connection, connection.getresponse()))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


def test_who_listens_is_told_that_something_was_stored(serve, listen, measured):
    server = serve(measured)
    stream = listen(server)
    assert stream.readline() == b"retry: 2000\n"
    before = server.ask("/api/site").json
    measured_history.commit(measured, 40)
    while not (line := stream.readline()).startswith(b"event: store"):
        assert line
    told = json.loads(stream.readline().removeprefix(b"data: "))
    after = server.ask("/api/site").json
    assert (after["commits"], after["head"]) == (before["commits"] + 1, measured.main[-1])
    assert told["state"] == after["state"] != before["state"]
    assert server.ask("/api/series").json["series"][0]["latest_at"] == after["commits"] - 1


def test_the_server_ends_while_somebody_listens(serve, listen, measured_template):
    server = serve(measured_template)
    stream = listen(server)
    assert stream.readline()
    server.end()
    while stream.readline():
        pass


def test_two_who_ask_for_the_same_get_it_made_once(measured_template, monkeypatch):
    both, made = threading.Barrier(2), []
    live = ServerState(measured_template.open())
    overview, look = pieces.overview, ServerState.pieces

    def making(state, reported):
        made.append(state)  # a server of another test may still answer
        return overview(state, reported)

    def looking(self):
        both.wait()
        return look(self)

    monkeypatch.setattr(pieces, "overview", making)
    monkeypatch.setattr(ServerState, "pieces", looking)
    monkeypatch.setattr("perun.web.live._REFRESHED", math.inf)
    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(live.piece, ["overview"] * 2)
    assert first.body == second.body
    assert sum(one is live._state for one in made) == 1


def test_another_threshold_makes_other_verdicts(measured, monkeypatch):
    monkeypatch.setattr("perun.web.live._REFRESHED", 0)
    live = ServerState(measured.open())

    def words():
        return {one["result"] for one in json.loads(live.piece("changes").body)["changes"]}

    assert words() == {"SevereDegradation"}
    local = measured.path / ".perun" / "local.yml"
    config.set_in(measured.path, os.environ, "degradation.hodges_lehmann_ratio.severe", "4", "local")
    assert words() == {"Degradation"}
    local.write_text("degradation: [", encoding="utf-8")
    assert words() == {"Degradation"}  # what is wrong is left to the commands to tell


def connected(server: Server) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.serving.port), timeout=60)


def answered(connection: socket.socket) -> bytes:
    """The next bytes of an answer; none where the connection has ended."""
    try:
        return connection.recv(1 << 16)
    except ConnectionResetError:
        return b""


@pytest.mark.parametrize(
    "begin",
    [b"", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET /",
     b"POST /api/ack HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Length: 9\r\n%s\r\n{"],
    ids=["nothing", "half a head", "half a second head", "half a body"],
)  # fmt: skip
def test_a_request_that_does_not_come_is_not_waited_for(serve, measured, capfd, begin):
    server = serve(measured, patience=1.0)
    if b"%d" in begin:
        given = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in allowed(server).items())
        begin %= (server.serving.port, given.encode())
    with connected(server) as connection:
        connection.sendall(begin)
        answer = b"".join(iter(lambda: answered(connection), b""))
        assert not answer or answer.startswith(b"HTTP/1.1")
    assert server.ask("/api/site").status == 200
    assert capfd.readouterr().err == ""


def until(connection: socket.socket, text: bytes) -> None:
    """Read until a text comes."""
    got = b""
    while text not in got:
        got += (piece := connection.recv(1 << 16))
        assert piece


def test_a_byte_now_and_then_is_not_waited_for(serve, measured):
    server = serve(measured, patience=1.0)
    with connected(server) as connection:
        connection.settimeout(0.05)
        connection.sendall(b"GET / HTTP/1.1\r\nA: ")
        sent = 0
        while sent < 1000:
            try:
                assert connection.recv(1) == b""
                break
            except TimeoutError:
                connection.sendall(b"a")
                sent += 1
            except ConnectionError:
                break
        assert sent < 1000


def test_events_and_connections_that_are_used_again_stay(serve, measured):
    server = serve(measured, patience=1.0)
    with connected(server) as events, connected(server) as silent:
        events.sendall(f"GET /api/events HTTP/1.1\r\nHost: 127.0.0.1:{server.serving.port}\r\n\r\n".encode())
        until(events, b"retry: 2000")
        assert answered(silent) == b""
        again = http.client.HTTPConnection("127.0.0.1", server.serving.port, timeout=60)
        for _ in range(3):
            again.request("GET", "/api/site")
            assert json.loads(again.getresponse().read())["head"] == measured.main[-1]
        again.close()
        server.ask("/api/ack", "POST", acknowledgement(measured), **allowed(server))
        until(events, b"event: store")
