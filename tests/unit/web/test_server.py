"""What the server answers to whom, over a real connection."""

from __future__ import annotations

import gzip
import http.client
import json
import xml.etree.ElementTree as xml

import pytest

import measured_history
from measured_history import SLOWER
from perun.porcelain.acknowledged import Acknowledged
from perun.profile.factory import Profile
from perun.store.linking import link
from perun.web import pages

SAME = {"Sec_Fetch_Site": "same-origin"}


def acknowledgement(made, **more):
    return {"version": made.main[SLOWER], "location": "./app*", "because": "correct now", **more}


def allowed(server, **more):
    """The headers of a page of the server itself that has its token."""
    origin = server.serving.address.rstrip("/")
    return {"Origin": origin, "Authorization": f"Bearer {server.serving.guard.token}", **SAME, **more}


def test_each_page_comes_with_the_policy_and_without_scripts_in_it(server):
    for page in pages.PAGES:
        answer = server.ask(f"/{pages.file_name(page)}")
        assert answer.status == 200
        assert answer.headers["content-security-policy"] == pages.POLICY
        assert "unsafe" not in pages.POLICY
    assert server.ask("/").body == server.ask("/index.html").body


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


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/nonsense", 404), ("/api/commits/77", 404), ("/api/compare/a..b", 404),
        ("/api/compare/main", 400),
        ("/api/../../etc/passwd", 404), ("/assets/../pages.py", 404), ("/assets/%2e%2e%2fpages.py", 404),
        ("/..%2f..%2fetc%2fpasswd", 404), ("/nonsense.html", 404), ("/show/x/y/z", 404),
        ("/flame/main..main/0.html", 404), ("//etc/passwd", 404), ("/.perun/local.yml", 404),
    ],
)  # fmt: skip
def test_other_addresses_are_told_so(server, path, status):
    answer = server.ask(path)
    assert answer.status == status
    assert b"Traceback" not in answer.body and b"root:" not in answer.body


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "LOCALHOST"])
def test_the_server_answers_under_its_own_names(server, name):
    port = server.serving.port
    assert server.ask("/api/site", Host=f"{name}:{port}").status == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.nip.io", ""]
)
def test_other_names_are_refused(server, host):
    for path in ("/", "/api/site", "/assets/x", "/feed.atom", "/api/events"):
        assert server.ask(path, Host=host).status == 421


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_pages_of_others_read_nothing(server, site):
    answer = server.ask("/api/site", Sec_Fetch_Site=site)
    assert answer.status == 403
    assert "access-control-allow-origin" not in answer.headers


def test_every_answer_says_what_it_is_and_who_may_use_it(server):
    for path in ("/", "/api/site", "/nonsense", "/feed.atom", f"/{next(iter(pages.assets()))}"):
        headers = server.ask(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["referrer-policy"] == "no-referrer"
    assert server.ask("/", Host="evil.example").headers["x-content-type-options"] == "nosniff"


def test_who_has_the_token_acknowledges_and_pages_show_it(serve, measured):
    server = serve(measured)
    assert server.ask("/api/overview").json["verdict"]["acknowledged"] == 0
    answer = server.ask("/api/ack", "POST", acknowledgement(measured), **allowed(server))
    assert answer.status == 200
    assert answer.json["acknowledged"]["because"] == "correct now"
    (entry,) = Acknowledged.load(measured.open()).entries
    assert (entry.version, entry.location) == (measured.main[SLOWER], "./app*")
    assert server.ask("/api/overview").json["verdict"]["acknowledged"] == 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"Authorization": "Bearer wrong"}, {"Authorization": ""}, {"Authorization": "Basic {token}"},
        {"Origin": "http://evil.example"}, {"Origin": ""}, {"Origin": "null"}, {"Origin": "http://127.0.0.1:1"},
        {"Sec_Fetch_Site": "cross-site"}, {"Sec_Fetch_Site": "same-site"}, {"Host": "evil.example"},
    ],
    ids=lambda one: " ".join(f"{name}={value}" for name, value in one.items()),
)  # fmt: skip
def test_nobody_else_changes_anything(server, measured_template, wrong):
    headers = {name: value.format(token=server.serving.guard.token) for name, value in wrong.items()}
    answer = server.ask("/api/ack", "POST", acknowledgement(measured_template), **allowed(server, **headers))
    assert answer.status in (403, 421)
    assert Acknowledged.load(measured_template.open()).entries == ()


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_no_other_request_changes_anything(server, method):
    for path in ("/", "/api/site", "/api/changes", "/feed.atom"):
        assert server.ask(path, method, b"", **allowed(server)).status == 405
        assert server.ask(path, method, b"").status in (403, 405)


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{}", b"not json", b'{"version": 1, "location": 2}', b"[]", b"\xff", b"[" * 5000,
        {"version": "--output=x", "location": "*"}, {"version": "0" * 40, "location": "*"},
        {"version": "main", "location": ""}, {"version": "main", "location": "*", "until": "yesterday"},
        {"version": "main", "location": "*", "more": 1},
    ],
    ids=str,
)  # fmt: skip
def test_what_is_no_acknowledgement_is_told_so(server, measured_template, body):
    answer = server.ask("/api/ack", "POST", body, **allowed(server))
    assert answer.status in (400, 404)
    assert set(answer.json) == {"error", "hint"}
    assert Acknowledged.load(measured_template.open()).entries == ()


def test_a_request_that_is_too_large_is_not_read(server):
    assert server.ask("/api/ack", "POST", b"x" * 200_000, **allowed(server)).status == 413


def test_reading_needs_the_token_where_it_is_asked_for(serve, measured_template):
    server = serve(measured_template, reads=True)
    token, cookie = server.serving.guard.token, server.serving.guard.cookie
    asset = next(iter(pages.assets()))
    for path in ("/", "/api/site", "/feed.atom", f"/{asset}", "/api/events", "/nonsense"):
        assert server.ask(path).status == 401
        assert server.ask(path, Cookie=f"{cookie}=wrong").status == 401
    assert server.ask("/api/site", Authorization=f"Bearer {token}").status == 200
    assert server.ask("/?token=wrong").status == 403
    entered = server.ask(f"/?token={token}")
    assert entered.status == 303
    assert entered.headers["location"] == f"./#token={token}"
    given = entered.headers["set-cookie"].lower()
    assert "httponly" in given and "samesite=strict" in given
    assert server.ask("/api/site", Cookie=f"{cookie}={token}").status == 200
    assert server.ask(f"/api/site?token={token}").status == 401  # addresses are in logs


def test_a_cookie_alone_changes_nothing(serve, measured_template):
    server = serve(measured_template, reads=True)
    headers = allowed(server, Cookie=f"{server.serving.guard.cookie}={server.serving.guard.token}")
    del headers["Authorization"]
    assert server.ask("/api/ack", "POST", acknowledgement(measured_template), **headers).status == 403


def test_the_address_a_browser_is_opened_with_holds_once(serve, measured_template):
    for reads in (False, True):
        server = serve(measured_template, reads=reads)
        path = server.serving.opened_once.removeprefix(server.serving.address.rstrip("/"))
        first = server.ask(path)
        assert (first.status, first.headers["location"]) == (303, f"./#token={server.serving.guard.token}")
        assert server.ask(path).status == 403
        assert server.serving.guard.token not in server.serving.opened_once


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
