"""Who may ask the server of the dashboard what: strangers on the network, and pages of other sites."""

import pytest

from perun.history.acknowledged import Acknowledgements
from perun.web import pages
from web_server import acknowledgement, allowed


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
    assert answer.status == 403 and "access-control-allow-origin" not in answer.headers


def test_every_answer_says_what_it_is_and_who_may_use_it(server):
    for path in ("/", "/api/site", "/nonsense", "/feed.atom", f"/{next(iter(pages.assets()))}"):
        headers = server.ask(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["referrer-policy"] == "no-referrer"
    assert server.ask("/", Host="evil.example").headers["x-content-type-options"] == "nosniff"


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
    assert Acknowledgements.load(measured_template.open()).entries == ()


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
    assert answer.status in (400, 404) and set(answer.json) == {"error", "hint"}
    assert Acknowledgements.load(measured_template.open()).entries == ()


def test_a_request_that_is_too_large_is_not_read(server):
    assert server.ask("/api/ack", "POST", b"x" * 200_000, **allowed(server)).status == 413


def test_reading_needs_the_token_where_it_is_asked_for(serve, measured_template):
    server = serve(measured_template, reads=True)
    token, cookie = server.serving.guard.token, server.serving.guard.cookie
    asset = next(iter(pages.assets()))
    for path in ("/", "/api/site", "/feed.atom", f"/{asset}", "/api/events", "/nonsense"):
        assert server.ask(path).status == 401 and server.ask(path, Cookie=f"{cookie}=wrong").status == 401
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


def test_each_page_comes_with_the_policy_and_without_scripts_in_it(server):
    for page in pages.PAGES:
        answer = server.ask(f"/{pages.file_name(page)}")
        assert answer.status == 200
        assert answer.headers["content-security-policy"] == pages.POLICY and "unsafe" not in pages.POLICY
    assert server.ask("/").body == server.ask("/index.html").body
