"""A second home for finished runs at any path that fsspec knows: `s3://bucket/study`, say."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from taskmix.engine._run import Executed
from taskmix.errors import OptionError, RecordError
from taskmix.extras import load
from taskmix.records import RunFolder, pack_labels, pack_run, unpack_run

WRITTEN_LAST = "run.json"  # a run is there when this is
THREADS = 8  # a copy mostly waits for the network
MOST_WAITING = 64  # copies; with more, the driver waits


class Store:
    """Copies of finished runs, each as its folder; object stores write a file whole or not at all."""

    def __init__(self, url: str) -> None:
        core = load("fsspec.core", purpose="`store`")
        try:
            found: tuple[Any, str] = core.url_to_fs(url)
        except (ImportError, ValueError) as error:
            raise OptionError(
                f"`store` should be a path that fsspec can open. Found {url!r} ({error})."
            ) from error
        self._files, root = found
        self._root = root.rstrip("/")
        self._url = url

    def has(self, folder: RunFolder) -> bool:
        return bool(self._files.exists(f"{self._root}/{folder.name}/{WRITTEN_LAST}"))

    def fetch(self, folder: RunFolder) -> bool:
        """Brings a finished run into the study; False where the store has none or a broken one."""
        path = f"{self._root}/{folder.name}"
        if not self.has(folder):
            return False
        try:
            names = self._files.find(path)
            files = {str(name).rsplit(f"{folder.name}/", 1)[1]: name for name in names}
            unpack_run(folder, {name: self._files.cat_file(files[name]) for name in files})
        except (OSError, RecordError, IndexError):  # then it is trained again
            return False
        return folder.is_finished

    def keep(self, folder: RunFolder) -> None:
        """Copies a finished run, its `run.json` last."""
        self._write(folder, pack_run(folder))

    def keep_labels(self, folder: RunFolder) -> None:
        """Copies the labels of a run that is there: it may have got some since."""
        self._write(folder, pack_labels(folder))

    def _write(self, folder: RunFolder, files: Mapping[str, bytes]) -> None:
        try:
            for name in sorted(files, key=lambda name: name == WRITTEN_LAST):
                path = f"{self._root}/{folder.name}/{name}"
                self._files.makedirs(path.rsplit("/", 1)[0], exist_ok=True)
                self._files.pipe_file(path, files[name])
        except OSError as error:
            raise RecordError(
                f"`{self._url}` should take a copy of run {folder.name}. Found: {error}. The run is "
                f"in {folder.path}; run the same command again to copy it."
            ) from error


class Copies:
    """Copies on their way, and the results that count once they are made."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._threads = ThreadPoolExecutor(THREADS)
        self._waiting: dict[Future[None], tuple[int, Executed]] = {}

    @property
    def at_work(self) -> bool:
        return bool(self._waiting)

    def fetch(self, folder: RunFolder) -> bool:
        """Whether the store had the run, which now the study has."""
        return self._store.fetch(folder)

    def make(self, folder: RunFolder, outcome: tuple[int, Executed]) -> None:
        """Begins a copy of a finished run, unless the store has one."""
        if len(self._waiting) >= MOST_WAITING:
            wait(self._waiting)
        was_there = outcome[1].outcome == "already finished"
        self._waiting[self._threads.submit(self._copy, folder, was_there)] = outcome

    def _copy(self, folder: RunFolder, was_there: bool) -> None:
        if was_there and self._store.has(folder):
            self._store.keep_labels(folder)
        else:
            self._store.keep(folder)

    def made(self) -> list[tuple[int, Executed]]:
        """The results whose copies are made; a copy that failed raises."""
        over = [future for future in self._waiting if future.done()]
        for future in over:
            future.result()
        return [self._waiting.pop(future) for future in over]

    def close(self) -> None:
        """Waits for what was begun."""
        self._threads.shutdown(wait=True)
