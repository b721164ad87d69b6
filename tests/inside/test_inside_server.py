"""The server shows one page under its secret address, to this machine alone, and to no other name of it."""

import http.client
import threading

import pytest

from minimind_edu.inside.server import PageServer


@pytest.fixture
def server(tmp_path):
    page = tmp_path / "page.html"
    page.write_text("<p>秘密</p>", encoding="utf-8")
    with PageServer(page) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def asked(server, path, method="GET", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=10)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    found = answer.status, answer.read().decode(), dict(answer.getheaders())
    connection.close()
    return found


def test_the_address_shows_the_page_and_no_frame_may_hold_it(server):
    status, text, headers = asked(server, server.path)
    assert (status, text) == (200, "<p>秘密</p>")
    assert headers["Content-Security-Policy"] == "frame-ancestors 'none'" and headers["Cache-Control"] == "no-store"
    assert server.address == f"http://127.0.0.1:{server.server_address[1]}{server.path}"


def test_nothing_else_is_shown(server):
    assert len(server.path) > 20
    for path in ("/", server.path[:-2] + "/", server.path + "..", f"{server.path}page.html", "/../page.html"):
        assert asked(server, path)[0] == 404
    assert asked(server, server.path, Host="rebound.example")[0] == 404
    assert asked(server, server.path, "POST")[0] == 501


def test_every_server_has_an_address_of_its_own_on_this_machine_only(server, tmp_path):
    with PageServer(tmp_path / "page.html") as other:
        assert other.path != server.path
        assert server.server_address[0] == other.server_address[0] == "127.0.0.1"
