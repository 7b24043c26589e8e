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
from written import writing

from taskmix.errors import InputError
from taskmix.report import ReportServer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReportServer]:
    study = tmp_path_factory.mktemp("live") / "study"
    with writing(study) as run:
        run.go_on(4, 0.5)
    yield from serving(study)


def serving(study: Path) -> Iterator[ReportServer]:
    with ReportServer(study, port=0) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def ask(
    server: ReportServer, method: str = "GET", path: str = "/", host: str | None = None
) -> tuple[http.client.HTTPResponse, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    name = host if host is not None else f"127.0.0.1:{server.server_port}"
    connection.request(method, path, headers={"Host": name})
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer, body


def test_it_hands_out_the_page_of_the_study_to_this_machine(server: ReportServer) -> None:
    assert server.socket.getsockname()[0] == "127.0.0.1"
    answer, body = ask(server, path="/?x=1", host=f"localhost:{server.server_port}")
    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert "running, last commit 20" in body
    assert f'"live":{answer.headers["ETag"]}' in body
    again, nothing = ask(server, method="HEAD")
    assert (again.status, nothing, again.headers["ETag"]) == (200, "", answer.headers["ETag"])
    assert int(again.headers["Content-Length"]) == len(body.encode())


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:PORT", "127.0.0.1", "", "localhost:1"]
)
def test_a_host_of_another_name_learns_nothing(server: ReportServer, host: str) -> None:
    answer, body = ask(server, host=host.replace("PORT", str(server.server_port)))
    assert answer.status == 421
    assert "uniform" not in body


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "MOVE"])
def test_it_takes_nothing(server: ReportServer, method: str) -> None:
    answer, _ = ask(server, method=method)
    assert answer.status == 405
    assert answer.headers["Allow"] == "GET, HEAD"


@pytest.mark.parametrize("path", ["/../_live.py", "/page.html.j2", "/%2e%2e/x", "/study"])
def test_nothing_else_can_be_read(server: ReportServer, path: str) -> None:
    assert ask(server, path=path)[0].status == 404


def test_a_browser_may_load_nothing_from_elsewhere(server: ReportServer) -> None:
    page, body = ask(server)
    other, _ = ask(server, path="/none")
    within = body.partition('http-equiv="Content-Security-Policy" content="')[2].partition('"')[0]
    assert "default-src &#39;none&#39;" in within
    assert "connect-src &#39;self&#39;" in within
    assert "unsafe" not in within
    assert "default-src 'none'" in other.headers["Content-Security-Policy"]
    for headers in (page.headers, other.headers):
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "Access-Control-Allow-Origin" not in headers


def test_a_connection_that_says_nothing_holds_nobody_up(server: ReportServer) -> None:
    with socket.create_connection(("127.0.0.1", server.server_port)):
        assert ask(server)[0].status == 200


def test_a_port_in_use_is_one_sentence(server: ReportServer, tmp_path: Path) -> None:
    (tmp_path / "study.json").write_text("{}")
    for port in (server.server_port, 70_000, -1):
        with pytest.raises(InputError, match="`--port` should be free"):
            ReportServer(tmp_path, port=port)


def test_a_folder_that_is_no_study_is_told(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()
    for path, found in ((tmp_path, "no run"), (tmp_path / "none", "no folder")):
        with pytest.raises(InputError, match=f"should be a study.*Found {found} there"):
            ReportServer(path, port=0)


def look(server: ReportServer) -> str:
    server._looked = float("-inf")  # as if a second had gone by
    return ask(server)[1]


def test_the_page_follows_the_study_and_changes_nothing_of_it(tmp_path: Path) -> None:
    study = tmp_path / "<i>study"
    study.mkdir()
    (study / "study.json").write_text("{}")  # a study before its first run
    for server in serving(study):
        answer, body = ask(server)
        assert answer.headers["Refresh"] == "2"
        assert "<title>&lt;i&gt;study</title><p>No run has begun yet." in body
        with writing(study) as run:
            run.go_on(4, 0.5)
            assert ">4 / 100<" in look(server)
            before = {path: path.stat().st_mtime_ns for path in sorted(study.rglob("*"))}
            stamp = ask(server)[0].headers["ETag"]
            assert look(server).count(stamp) == 1
            assert {path: path.stat().st_mtime_ns for path in sorted(study.rglob("*"))} == before
            run.go_on(4, 0.75)
            body = look(server)
            assert ">8 / 100<" in body
            assert stamp not in body
            (folder,) = (path for path in study.iterdir() if path.is_dir())
            kept = (folder / "run.json").read_bytes()
        with writing(study, seed=1) as run:
            run.writer.fail("the loss was NaN")
        (folder / "run.json").write_text('{"format": 1, "na')
        body = look(server)
        assert folder.name in body  # the damaged run is told, and the other is shown
        assert "the loss was NaN" in body
        document = json.loads(kept) | {"steps": 10**400, "crc32": None}
        (folder / "run.json").write_text(json.dumps(document))
        assert "as `steps`" in look(server)
        shutil.rmtree(study)
        assert "should be a study" in look(server)


def test_ctrl_c_ends_the_command_with_a_sentence(tmp_path: Path) -> None:
    with writing(tmp_path / "study") as run:
        run.go_on(4, 0.5)
    started = subprocess.Popen(
        [sys.executable, "-m", "taskmix", "report", str(tmp_path / "study"), "--live", "--port=0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert started.stdout is not None
        said = started.stdout.readline()
        address = next(word for word in said.split() if word.startswith("http://127.0.0.1:"))
        with urllib.request.urlopen(address, timeout=60) as answer:
            assert b"4 / 100" in answer.read()
        started.send_signal(signal.SIGINT)
        _, error = started.communicate(timeout=20)
    finally:
        started.kill()
    assert started.returncode == 130
    assert error == "taskmix: stopped watching. The study is as it was.\n"
    assert not (tmp_path / "study" / "report.html").exists()
