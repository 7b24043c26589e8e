"""Word between the driver and its workers: how far runs are, records sent home, and when to stop.

An actor is in the middle, because a worker cannot call the driver. Whatever it has not handed on is
lost with it, so nothing counts before the driver has it.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any

from taskmix.engine._ray._cluster import import_ray
from taskmix.engine._units import Progress

Files = dict[str, bytes]
Word = tuple[int, int, bool]  # a `Progress`, plain

HEAR_EVERY = 0.2  # seconds
ANSWER_SECONDS = 30.0  # in which the post must answer; a worker without it stops with a checkpoint


def post_class() -> type:
    """The actor's class. Made in a function it travels whole, and its process need not import torch."""

    class Post:
        """For each driver's call, what its workers said since it asked, and whether they should stop."""

        def __init__(self) -> None:
            self.calls: dict[str, dict[str, Any]] = {}

        def call(self, token: str) -> dict[str, Any]:
            return self.calls.setdefault(token, {"told": {}, "files": {}, "stop": False})

        def tell(self, token: str, told: list[Word], files: dict[int, Files]) -> bool:
            """Takes word of runs, of which the latest is enough; answers whether to stop."""
            call = self.call(token)
            call["told"].update((word[0], word) for word in told)
            call["files"].update(files)
            return bool(call["stop"])

        def collect(self, token: str, stop: bool) -> tuple[list[Word], dict[int, Files]]:
            """Hands everything on."""
            call = self.calls.pop(token, {"told": {}, "files": {}})
            self.call(token)["stop"] = stop
            return list(call["told"].values()), call["files"]

        def close(self, token: str) -> None:
            """Forgets a call, but for those of its workers who have yet to hear that it is over."""
            self.calls.pop(token, None)
            self.call(token)["stop"] = True

    return Post


_posts: dict[str, Any] = {}  # by Ray's name for this driver: an actor takes a while to start


def _post() -> Any:
    ray = import_ray()
    here = ray.get_runtime_context()
    job = f"{here.get_job_id()} on {here.get_node_id()}"
    if job not in _posts:
        _posts.clear()
        schedule = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        options = {"num_cpus": 0, "max_restarts": -1, "max_task_retries": -1}
        options["scheduling_strategy"] = schedule(here.get_node_id(), soft=True)
        _posts[job] = ray.remote(post_class()).options(**options).remote()
    return _posts[job]


class ProgressReceiver:
    """The driver's end."""

    def __init__(self, token: str) -> None:
        self.post = _post()
        self._token = token
        self._asked: Any = None  # a question that is not answered yet
        self._heard = 0.0

    def hear(self, *, stop: bool, now: bool) -> tuple[list[Progress], dict[int, Files]]:
        """What has come since; `now` waits for the answer, else it is asked for now and then."""
        ray = import_ray()
        told: list[Word] = []
        files: dict[int, Files] = {}
        if self._asked is None and (now or time.monotonic() - self._heard > HEAR_EVERY):
            self._asked = self.post.collect.remote(self._token, stop)
        if self._asked is not None and (now or ray.wait([self._asked], timeout=0)[0]):
            asked, self._asked, self._heard = self._asked, None, time.monotonic()
            with contextlib.suppress(ray.exceptions.RayError):  # a new one is on its way
                told, files = ray.get(asked, timeout=ANSWER_SECONDS)
        return [Progress(*word) for word in told], files

    def close(self) -> None:
        self.post.close.remote(self._token)


class ProgressSender:
    """A worker's end: word goes out now and then from a thread, and comes back whether to stop."""

    def __init__(self, post: Any, token: str, every: float) -> None:
        self._post = post
        self._token = token
        self._every = every
        self._told: dict[int, Word] = {}
        self._over = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._talk, daemon=True)

    def __enter__(self) -> ProgressSender:
        self._say([], {})  # who begins after the driver asked to stop should not begin
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()  # a last word that is under way ends by itself

    def tell(self, progress: Progress) -> None:
        self._told[progress.run] = (progress.run, progress.step, progress.done)

    def should_stop(self) -> bool:
        return self._stop.is_set()

    def send(self, number: int, files: Files) -> bool:
        """Sends a run's record home, and waits until the post has it."""
        return self._say([], {number: files})

    def _talk(self) -> None:
        while not self._over.wait(self._every):
            told, self._told = self._told, {}
            self._say(list(told.values()), {})

    def _say(self, told: list[Word], files: dict[int, Files]) -> bool:
        ray = import_ray()
        try:
            if ray.get(self._post.tell.remote(self._token, told, files), timeout=ANSWER_SECONDS):
                self._stop.set()
        except ray.exceptions.RayError:  # no driver waits for us any more
            self._stop.set()
            return False
        return True


class Snapshots:
    """Sends the record of an unfinished run home now and then, in case this machine dies."""

    def __init__(
        self, send: Callable[[int], object], has_checkpoint: Callable[[int], bool], every: float
    ) -> None:
        self._send = send
        self._has_checkpoint = has_checkpoint
        self._every = every
        self._sent: dict[int, float] = {}

    def see(self, progress: Progress) -> None:
        """A run is between two steps, so nobody is writing its record."""
        now = time.monotonic()
        since = now - self._sent.setdefault(progress.run, now)
        if since > self._every and self._has_checkpoint(progress.run):
            self._sent[progress.run] = now
            self._send(progress.run)
