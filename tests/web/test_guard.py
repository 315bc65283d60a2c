"""Who may come in: hosts, origins, tokens, and what a change must bring along."""

import http.client
import json
import re
import signal
import socket
import time

import pytest

from web.serving import Server, command, serving

TOKEN, READ = "write-0123456789abcdef", "read-0123456789abcdef"


def asked(server, path, host, **headers):
    port = int(server.address.rpartition(":")[2])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.putrequest("GET", path, skip_host=True)
    connection.putheader("Host", host)
    for name, value in headers.items():
        connection.putheader(name.replace("_", "-"), value)
    connection.endheaders()
    status = connection.getresponse().status
    connection.close()
    return status


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1", 200),
        ("localhost:1", 200),
        ("[::1]", 200),
        ("evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("localhost@evil.example", 421),
        ("", 421),
        ("[", 421),
        ("[::1].evil", 421),
        ("[::1]evil", 421),
        ("localhost:1,evil.example", 421),
        ("localhost, evil.example", 421),
        ("localhost evil.example", 421),
        ("localhost:99999999", 421),
    ],
)
def test_only_its_own_host_names_are_served(site, host, status):
    assert asked(site[0], "/api/runs", host) == status


def test_the_address_that_is_printed_is_served(filled):
    """Every address of 127.0.0.0/8 is loopback, so it needs no token."""
    with serving(filled[0], "--host", "127.0.0.2") as server:
        port = server.address.rpartition(":")[2]
        other = Server(f"http://127.0.0.2:{port}")
        assert other.get("/api/runs")[0] == 200
        assert other.get("/api/runs", headers={"Host": "evil.example"})[0] == 421


def test_another_site_can_neither_read_the_api_nor_change_anything(site):
    server, run = site
    evil = {"Origin": "http://evil.example"}
    assert server.get("/api/runs", headers=evil)[0] == 403
    assert server.get("/api/runs", headers={"Origin": "null"})[0] == 403
    assert server.get("/api/runs", headers={"Sec-Fetch-Site": "cross-site"})[0] == 403
    assert server.get("/", headers={"Sec-Fetch-Site": "cross-site"})[0] == 200  # a link
    body = json.dumps({"note": "x"}).encode()
    kind = {"Content-Type": "application/json"}
    path = f"/api/runs/{run}/remarks"
    assert server.get(path, method="POST", body=body, headers=kind)[0] == 403
    wrong = {**kind, "X-Pennyweight-Csrf": "guess"}
    assert server.get(path, method="POST", body=body, headers=wrong)[0] == 403
    right = {**kind, "X-Pennyweight-Csrf": server.csrf(), **evil}
    assert server.get(path, method="POST", body=body, headers=right)[0] == 403


@pytest.mark.parametrize(
    "path", ["/", "/nothing", "/api/runs", "/api/x", "/static/app.js", "/docs"]
)
def test_every_answer_has_the_policy(site, path):
    _, headers, _ = site[0].get(path)
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert "access-control-allow-origin" not in headers


def test_beyond_loopback_a_token_is_demanded(filled):
    done = command("serve", "--host", "0.0.0.0", "--port", "0", folder=filled[0], check=False)
    assert done.returncode == 2
    assert "PENNYWEIGHT_TOKEN" in done.stderr
    short = {"PENNYWEIGHT_TOKEN": "short"}
    done = command("serve", "--port", "0", folder=filled[0], env=short, check=False)
    assert done.returncode == 2
    assert "at least 16" in done.stderr


@pytest.fixture(scope="module")
def locked(filled):
    env = {"PENNYWEIGHT_TOKEN": TOKEN, "PENNYWEIGHT_READ_TOKEN": READ}
    with serving(filled[0], "--host", "0.0.0.0", env=env) as server:
        yield server, filled[1]


def bearer(token):
    return {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}


def test_tokens_have_rights(locked):
    server, run = locked
    assert server.get("/api/runs")[0] == 401
    assert server.get("/openapi.json")[0] == 303
    status, headers, _ = server.get("/runs/x?a=b")
    assert status == 303
    assert headers["location"] == "/enter?next=%2Fruns%2Fx%3Fa%3Db"
    assert server.get("/static/style.css")[0] == 200
    assert server.get("/api/runs", headers=bearer(READ))[0] == 200
    plan = json.dumps({"suite": "none"}).encode()
    asked = server.json("/api/plan", method="POST", body=plan, headers=bearer(READ))
    assert asked[0] == 400  # allowed, but there is no such suite
    path, body = f"/api/runs/{run}/remarks", json.dumps({"note": "seen"}).encode()
    assert server.get(path, method="POST", body=body, headers=bearer(READ))[0] == 403
    assert server.get(path, method="POST", body=body, headers=bearer(TOKEN))[0] == 201


def test_a_person_enters_with_a_token(locked):
    server, _ = locked
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    status, headers, _ = server.get(
        "/enter?next=//evil.example", method="POST", body=f"token={READ}".encode(), headers=form
    )
    assert (status, headers["location"]) == (303, "/")
    cookie = headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert READ not in cookie
    assert server.get("/", headers={"Cookie": cookie.partition(";")[0]})[0] == 200
    assert server.get("/", headers={"Cookie": "pennyweight_session=guess"})[0] == 303


def test_guessing_is_limited(filled):
    with serving(filled[0], env={"PENNYWEIGHT_TOKEN": TOKEN}) as server:
        codes = [server.get("/api/runs", headers=bearer(f"guess-{i}"))[0] for i in range(12)]
        assert codes == [401] * 10 + [429] * 2
        assert server.get("/api/runs", headers=bearer(TOKEN))[0] == 200  # nobody is locked out


def printed(process):
    """Read the link and the token that a server prints."""
    link, token = (process.stderr.readline() for _ in range(2))
    return re.search(r"http://\S+(/enter\?code=\S+)", link)[1], re.search(r"token (\S+);", token)[1]


def test_on_this_machine_too_a_link_signs_in_once(filled):
    with serving(filled[0], open_to_all=False) as server:
        link, token = printed(server.process)
        assert server.get("/api/runs")[0] == 401
        assert server.get("/")[1]["location"].startswith("/enter")
        assert server.get("/enter?code=guess")[0] == 401
        status, headers, page = server.get(link)
        assert (status, "url=/" in page) == (200, True)
        cookie = headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        session = {"Cookie": cookie.partition(";")[0]}
        assert server.get("/api/runs", headers=session)[0] == 200
        assert server.get(link)[0] == 401  # a second time
        assert server.get("/api/runs", headers={"Authorization": f"Bearer {token}"})[0] == 200
        assert server.get("/api/runs", headers={"Authorization": "Bearer wrong"})[0] == 401


def test_the_link_opens_the_page_in_a_browser(filled, open_page):
    with serving(filled[0], open_to_all=False) as server:
        link, _ = printed(server.process)
        page = open_page().page
        page.goto(f"data:text/html,<a href='{server.address}{link}'>go</a>")  # from elsewhere
        page.get_by_text("go").click()
        page.get_by_role("heading", name="Runs").wait_for()


def test_an_upload_that_is_broken_off_leaves_no_traceback(filled):
    with serving(filled[0]) as server:
        port = int(server.address.rpartition(":")[2])
        head = f"POST /api/uploads?kind=suite HTTP/1.1\r\nHost: localhost:{port}\r\n"
        head += f"X-Pennyweight-Csrf: {server.csrf()}\r\nContent-Length: 1000\r\n\r\nsuite: s"
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(head.encode())
            time.sleep(0.5)
        assert server.get("/api/runs")[0] == 200
        server.process.send_signal(signal.SIGINT)
        assert "Traceback" not in server.process.stderr.read()
