"""A server for one person on one machine: it hands out the page and the state, and takes nothing.

It listens at 127.0.0.1 alone. A page of another site could have its name resolve to 127.0.0.1 and then
read what this server says (DNS rebinding), so a request has to name this machine in its `Host`. Every
answer forbids the browser to load anything from elsewhere, or to show the page in a frame.
"""

from __future__ import annotations

import errno
import json
import socketserver
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from taskmix.errors import InputError, TaskmixError
from taskmix.files import read_plain
from taskmix.records import to_plain
from taskmix.watch._state import StudyState, StudyWatcher

ADDRESS = "127.0.0.1"
NAMES = ("127.0.0.1", "localhost")  # of this machine, as a browser may spell it
FRESH = 1.0  # seconds for which a state is handed out again: pages may be open in many windows
PATIENCE = 10.0  # seconds for a request to arrive
FILES = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class StudyServer(ThreadingHTTPServer):
    """Serves the page of a study until it is closed.

    >>> from pathlib import Path
    >>> with StudyServer(StudyWatcher(Path("study")), port=0) as server:
    ...     server.address.startswith("http://127.0.0.1:")
    True
    """

    daemon_threads = True
    # A port that was just given up may be taken again; on Windows that would take another program's.
    allow_reuse_address = sys.platform != "win32"

    def __init__(self, watcher: StudyWatcher, *, port: int) -> None:
        self._watcher = watcher
        self._looking = threading.Lock()
        self._state: tuple[float, StudyState] | None = None
        try:
            super().__init__((ADDRESS, port), partial(_Handler, self.state))
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

    def state(self) -> StudyState:
        """The study as it was a moment ago at most; one look at a time."""
        with self._looking:
            now = time.monotonic()
            if self._state is None or now - self._state[0] > FRESH:
                self._state = (time.monotonic(), self._watcher.look())
            return self._state[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that has gone away is no news."""


class _Handler(BaseHTTPRequestHandler):
    """One request. Whatever the method is called that is no reading, it is refused."""

    protocol_version = "HTTP/1.1"
    timeout = PATIENCE
    server: StudyServer

    def __init__(self, state: Callable[[], StudyState], *rest: Any) -> None:
        self._state = state
        super().__init__(*rest)

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return self._refuse
        raise AttributeError(name)

    def _refuse(self) -> None:
        self._say(HTTPStatus.METHOD_NOT_ALLOWED, "This page is only read.", {"Allow": "GET, HEAD"})

    def _answer(self) -> None:
        if not self._is_local():
            self._say(HTTPStatus.MISDIRECTED_REQUEST, f"Ask for {self.server.address}")
            return
        path = self.path.partition("?")[0]
        if path == "/state.json":
            try:
                text = json.dumps(to_plain(self._state()), ensure_ascii=False)
            except (TaskmixError, OSError) as error:  # the folder may be gone
                text = json.dumps({"error": str(error)}, ensure_ascii=False)
            # Half of a character in a name has no UTF-8.
            self._send(HTTPStatus.OK, "application/json", text.encode("utf-8", "replace"))
        elif path in FILES:
            name, kind = FILES[path]
            self._send(HTTPStatus.OK, kind, read_plain(Path(__file__).parent / name))
        else:
            self._say(HTTPStatus.NOT_FOUND, "There is nothing here.")

    def _is_local(self) -> bool:
        given = self.headers.get_all("Host") or []
        allowed = {f"{name}:{self.server.server_port}" for name in NAMES}
        return len(given) == 1 and given[0].lower() in allowed

    def _say(self, status: HTTPStatus, words: str, headers: dict[str, str] | None = None) -> None:
        self.close_connection = True  # a body that came with it is not read
        kind = "text/plain; charset=utf-8"
        self._send(
            status, kind, (words + "\n").encode(), {**(headers or {}), "Connection": "close"}
        )

    def _send(
        self, status: HTTPStatus, kind: str, body: bytes, headers: dict[str, str] | None = None
    ) -> None:
        self.send_response(status)
        for name, value in {
            "Content-Type": kind,
            "Content-Length": str(len(body)),
            "Content-Security-Policy": POLICY,
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Referrer-Policy": "no-referrer",
            "Cache-Control": "no-store",
            **(headers or {}),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def version_string(self) -> str:
        return "taskmix"

    def log_message(self, format: str, *words: Any) -> None:  # noqa: A002 - as the base has it
        """Nothing: the terminal has the address alone."""
