from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from taskmix.errors import InputError
from taskmix.watch import StudyServer, StudyWatcher

from .written import writing


@pytest.fixture
def server(tmp_path: Path) -> Iterator[StudyServer]:
    with writing(tmp_path / "study") as run:
        run.go_on(4, 0.5)
    with StudyServer(StudyWatcher(tmp_path / "study"), port=0) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def ask(
    server: StudyServer, method: str = "GET", path: str = "/", host: str | None = None
) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    name = host if host is not None else f"127.0.0.1:{server.server_port}"
    connection.request(method, path, headers={"Host": name})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


def test_it_hands_out_the_page_and_the_state(server: StudyServer) -> None:
    for path, kind in (
        ("/", "text/html"),
        ("/page.js", "text/javascript"),
        ("/page.css", "text/css"),
    ):
        answer, body = ask(server, path=path)
        assert answer.status == 200
        assert answer.headers["Content-Type"].startswith(kind)
        assert len(body) > 500
    answer, body = ask(server, path="/state.json?x=1")
    assert json.loads(body)["counts"] == {"running": 1}
    answer, body = ask(server, host=f"localhost:{server.server_port}")
    assert answer.status == 200


def test_it_listens_on_this_machine_alone(server: StudyServer) -> None:
    assert server.socket.getsockname()[0] == "127.0.0.1"


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:PORT", "127.0.0.1", "", "localhost:1"]
)
def test_a_host_of_another_name_learns_nothing(server: StudyServer, host: str) -> None:
    answer, body = ask(
        server, path="/state.json", host=host.replace("PORT", str(server.server_port))
    )
    assert answer.status == 421
    assert b"counts" not in body


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "MOVE"])
def test_it_takes_nothing(server: StudyServer, method: str) -> None:
    answer, _ = ask(server, method=method)
    assert answer.status == 405
    assert answer.headers["Allow"] == "GET, HEAD"


def test_head_has_no_body(server: StudyServer) -> None:
    answer, body = ask(server, method="HEAD", path="/state.json")
    assert (answer.status, body) == (200, b"")
    assert int(answer.headers["Content-Length"]) > 100


@pytest.mark.parametrize("path", ["/../_state.py", "/page.html", "/%2e%2e/x", "/study"])
def test_nothing_else_can_be_read(server: StudyServer, path: str) -> None:
    assert ask(server, path=path)[0].status == 404


def test_a_browser_may_load_nothing_from_elsewhere(server: StudyServer) -> None:
    for path in ("/", "/state.json", "/none"):
        headers = ask(server, path=path)[0].headers
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "Access-Control-Allow-Origin" not in headers
    page = (Path(sys.modules["taskmix.watch"].__file__ or "").parent / "page.html").read_text()
    assert "http" not in page
    assert "style=" not in page


def test_a_study_that_is_gone_is_told_in_the_state(server: StudyServer, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "study")
    server._state = None
    found = json.loads(ask(server, path="/state.json")[1])
    assert "should be a study" in found["error"]


def test_a_port_in_use_is_one_sentence(server: StudyServer, tmp_path: Path) -> None:
    for port in (server.server_port, 70_000, -1):
        with pytest.raises(InputError, match="`--port` should be free"):
            StudyServer(StudyWatcher(tmp_path), port=port)


def test_a_connection_that_says_nothing_holds_nobody_up(server: StudyServer) -> None:
    with socket.create_connection(("127.0.0.1", server.server_port)):
        assert ask(server)[0].status == 200


def test_ctrl_c_ends_the_command_with_a_sentence(tmp_path: Path) -> None:
    with writing(tmp_path / "study") as run:
        run.go_on(4, 0.5)
    started = subprocess.Popen(
        [sys.executable, "-m", "taskmix", "watch", str(tmp_path / "study"), "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert started.stdout is not None
        said = started.stdout.readline()
        address = next(word for word in said.split() if word.startswith("http://127.0.0.1:"))
        with urllib.request.urlopen(f"{address}state.json", timeout=20) as answer:
            assert json.loads(answer.read())["steps"] == 4
        started.send_signal(signal.SIGINT)
        _, error = started.communicate(timeout=20)
    finally:
        started.kill()
    assert started.returncode == 130
    assert error == "taskmix: stopped watching. The study is as it was.\n"
