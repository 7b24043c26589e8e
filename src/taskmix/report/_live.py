"""The page of a study while it runs, served to one person on one machine, which takes nothing.

It is the page that `write_report` writes, made again from the records when a browser asks for it and
they have changed. It listens at 127.0.0.1 alone. A page of another site could have its name resolve to
127.0.0.1 and then read what this server says (DNS rebinding), so a request has to name this machine in
its `Host`. What the page may load it says itself; that it may not be framed only a header can say.
"""

from __future__ import annotations

import errno
import hashlib
import html
import socketserver
import sys
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from taskmix.errors import InputError, TaskmixError
from taskmix.records import Study
from taskmix.report._gather import gather_report
from taskmix.report._page import report_html

ADDRESS = "127.0.0.1"
NAMES = ("127.0.0.1", "localhost")  # of this machine, as a browser may spell it
FRESH = 1.0  # seconds for which a page is handed out again: it may be open in many windows
PATIENCE = 10.0  # seconds for a request to arrive
BEGUN = ("study.json", "ledger.json")  # either is there before the first run
POLICY = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
WAITING = (
    '<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,">'
    "<title>{title}</title><p>{words}</p>"
)


class ReportServer(ThreadingHTTPServer):
    """Serves the page of a study until it is closed: `with ReportServer(...) as server:`.

    `server.serve_forever()` does it, as `taskmix report STUDY --live`.

    >>> from pathlib import Path
    >>> ReportServer(Path("no-study"), port=0)
    Traceback (most recent call last):
    taskmix.errors.InputError: `no-study` should be a study, a folder with runs in it. Found no ...
    """

    daemon_threads = True
    # A port that was just given up may be taken again; on Windows that would take another program's.
    allow_reuse_address = sys.platform != "win32"

    def __init__(self, study: Path, *, port: int, delivered: Path | None = None) -> None:
        self._study = Study(study)
        self._delivered = delivered
        self._looking = threading.Lock()
        self._looked = float("-inf")
        self._stamp, self._page = "", b""
        self._stamp_now()  # a folder that is no study is told at once
        try:
            super().__init__((ADDRESS, port), _Handler)
        except (OSError, OverflowError) as error:
            in_use = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
            found = f"that {port} is in use" if in_use else f"{port} ({error})"
            raise InputError(
                f"`--port` should be free on this machine, from 1 to 65535. Found {found}. Choose "
                "another, or 0 for any."
            ) from error

    def server_bind(self) -> None:
        """Without asking the network for this machine's name, which can take seconds."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = ADDRESS, self.server_address[1]

    @property
    def address(self) -> str:
        return f"http://{ADDRESS}:{self.server_port}/"

    def page(self) -> tuple[str, bytes]:
        """What the records were a moment ago at most, as a stamp, and their page; one at a time."""
        with self._looking:
            if time.monotonic() - self._looked > FRESH:
                try:
                    if (stamp := self._stamp_now()) != self._stamp:
                        self._page, self._stamp = self._made(stamp), stamp
                except (TaskmixError, OSError) as error:  # the folder may be gone
                    self._page, self._stamp = self._waiting(str(error)), ""
                self._looked = time.monotonic()
            return self._stamp, self._page

    def _stamp_now(self) -> str:
        """Another word for each state of the records."""
        path, notes = self._study.path, list[str]()
        runs = self._study.summaries(note=notes.append) if path.is_dir() else []
        if not runs and not notes and not any((path / name).is_file() for name in BEGUN):
            found = "no run" if path.is_dir() else "no folder"
            raise InputError(
                f"`{path}` should be a study, a folder with runs in it. Found {found} there. Begin "
                "one with `taskmix train FOLDER --out STUDY` or `taskmix advise FOLDER --out STUDY`."
            )
        documents = [(each.name, each.stat().st_mtime_ns) for each in sorted(path.glob("*.json"))]
        rows = [(run.name, run.status, run.step, run.updated, run.labels) for run in runs]
        return hashlib.sha256(repr((documents, rows, notes)).encode()).hexdigest()[:16]

    def _made(self, stamp: str) -> bytes:
        path = self._study.path
        if not self._study.summaries(note=lambda note: None):
            return self._waiting("No run has begun yet.")
        command = f"taskmix report {path}"
        data = gather_report(self._study, command=command, delivered=self._delivered)
        return report_html(data, live=stamp).encode("utf-8", "replace")

    def _waiting(self, words: str) -> bytes:
        title = html.escape(self._study.path.resolve().name)
        return WAITING.format(title=title, words=html.escape(words)).encode("utf-8", "replace")

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that has gone away is no news."""


class _Handler(BaseHTTPRequestHandler):
    """One request. Whatever the method is called that is no reading, it is refused."""

    protocol_version = "HTTP/1.1"
    timeout = PATIENCE
    server: ReportServer

    def do_GET(self) -> None:
        allowed = {f"{name}:{self.server.server_port}" for name in NAMES}
        given = self.headers.get_all("Host") or []
        if len(given) != 1 or given[0].lower() not in allowed:
            self._say(HTTPStatus.MISDIRECTED_REQUEST, f"Ask for {self.server.address}")
        elif self.path.partition("?")[0] != "/":
            self._say(HTTPStatus.NOT_FOUND, "There is nothing here.")
        else:
            stamp, page = self.server.page()
            # A page without charts has no script that asks for the next one.
            has_charts = b'id="page-data"' in page
            more = {"Content-Security-Policy": POLICY} if has_charts else {"Refresh": "2"}
            self._send(HTTPStatus.OK, "text/html", page, {"ETag": f'"{stamp}"', **more})

    def do_HEAD(self) -> None:
        self.do_GET()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return self._refuse
        raise AttributeError(name)

    def _refuse(self) -> None:
        self._say(HTTPStatus.METHOD_NOT_ALLOWED, "This page is only read.", {"Allow": "GET, HEAD"})

    def _say(self, status: HTTPStatus, words: str, headers: dict[str, str] | None = None) -> None:
        self.close_connection = True  # a body that came with it is not read
        closing = {**(headers or {}), "Connection": "close"}
        self._send(status, "text/plain", (words + "\n").encode(), closing)

    def _send(self, status: HTTPStatus, kind: str, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {
            "Content-Type": f"{kind}; charset=utf-8",
            "Content-Length": str(len(body)),
            "Content-Security-Policy": f"default-src 'none'; img-src data:; {POLICY}",
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Referrer-Policy": "no-referrer",
            "Cache-Control": "no-store",
            **headers,
        }.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def version_string(self) -> str:
        return "taskmix"

    def log_message(self, format: str, *words: Any) -> None:  # noqa: A002 - as the base has it
        """Nothing: the terminal has the address alone."""
