"""The cluster: started on this machine, or one that is there; its places, and whether it lives."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from taskmix.engine._workers import count_workers
from taskmix.errors import InputError, OptionError
from taskmix.extras import load

# Ray prints the deaths of workers to standard output, where JSON may be going; the driver tells
# them in the runs' results. Lines that match the expression are not printed. Workers of our own
# cluster are as nice as any process of this machine: Ray's default leaves them what others leave.
SETTINGS = {
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_worker_niceness": "0",
}
CONNECT_SECONDS = 10.0  # for an address to answer, before it is said that nobody is there


@dataclass(frozen=True)
class Cluster:
    """How this process came to its cluster."""

    address: str | None  # None: it is our own, on this machine
    workers: int | None
    store: str | None = None  # a second home for what is finished

    @property
    def ours(self) -> bool:
        """Whether it may be started again."""
        return self.address is None

    def connect(self) -> None:
        """Starts it, or joins it."""
        ray = import_ray()
        logging.getLogger("ray").setLevel(logging.ERROR)
        options: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
        if self.ours:
            options |= {"num_cpus": count_workers(self.workers)}
            options |= {"include_dashboard": False, "address": "local"}
        else:
            options["address"] = self.address
        with _same_signals():
            try:
                _knock(self.address)
                ray.init(**options)
            except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
                words = " ".join(str(error).split())
                raise InputError(
                    f"A Ray cluster should answer at {self.address or 'this machine'}. Found: "
                    f"{words[:300]}. Start one with `ray start --head`, and set RAY_AUTH_MODE=token "
                    "where it wants a token; or leave `address` out.",
                    arguments=("address",),
                ) from error


def _knock(address: str | None) -> None:
    """Fails within seconds where nobody listens at HOST:PORT; Ray itself waits for minutes."""
    host, colon, port = (address or "").removeprefix("ray://").rpartition(":")
    if colon and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS).close()


_joined: list[Cluster] = []


@contextmanager
def cluster(
    address: str | None = None, *, workers: int | None = None, store: str | None = None
) -> Iterator[None]:
    """A cluster for the length of a `with` block: the one at `address`, or one on this machine.

    Starting takes seconds, so whoever executes runs in several rounds does it around all of them.
    Within the block another `cluster` is the same one; so it is where `ray.init` was called before.
    At most `workers` of its cores and GPUs are used. Finished runs are also copied to `store`, any
    path that fsspec knows. docs/cluster.md has examples.
    """
    ray = import_ray()
    if ray.is_initialized():
        yield
        return
    here = Cluster(address, workers, store)
    here.connect()
    _joined.append(here)
    try:
        yield
    finally:
        _joined.remove(here)
        ray.shutdown()


def is_ours() -> bool:
    """Whether the cluster was started here, for this machine alone."""
    return bool(_joined) and _joined[-1].ours


def current_store() -> str | None:
    """Where the cluster's finished runs are copied to."""
    return _joined[-1].store if _joined else None


def start_again() -> bool:
    """A new cluster in the place of our own that was lost; False where it is not ours to start."""
    if not is_ours():
        return False
    import_ray().shutdown()
    _joined[-1].connect()
    return True


def import_ray() -> Any:
    if "ray" not in sys.modules:
        for name, value in SETTINGS.items():
            os.environ.setdefault(name, value)
    return load("ray", purpose="The engine `ray`")


@dataclass(frozen=True)
class Places:
    """How many jobs of each kind can be at work at once."""

    cores: int
    gpus: int
    ahead: int = 2  # jobs for each place: one at work and one waiting


def count_places(workers: int | None) -> Places:
    """What the cluster has now; more may join it, and `workers` is a limit."""
    found = import_ray().cluster_resources()
    if workers is None and _joined:
        workers = _joined[-1].workers
    limit = sys.maxsize if workers is None else count_workers(workers)
    # Where machines join when there is work, there has to be some.
    cores, gpus = max(int(found.get("CPU", 0)), 1), int(found.get("GPU", 0))
    # A job that waits would be taken by a place that should stay free.
    ahead = 1 if limit < max(cores, gpus) else 2
    return Places(min(cores, limit), min(gpus, limit), ahead)


def choose_cluster_device(name: str) -> str:
    """`auto` becomes CUDA where the cluster has GPUs, else the CPU; workers take the one they get.

    `taskmix train --engine ray` asks it; docs/cluster.md has more.
    """
    if name == "auto":
        return "cuda" if count_places(None).gpus else "cpu"
    if name.split(":")[0] not in ("cpu", "cuda"):
        raise OptionError(f"`device` should be auto, cpu or cuda on a cluster. Found {name!r}.")
    if name != "cpu":
        require_gpus(count_places(None))
    return name.split(":")[0]


def require_gpus(places: Places) -> None:
    if not places.gpus:
        raise OptionError(
            "The cluster should have GPUs for runs on cuda. Found none in it. Use `device` cpu, or "
            "join a machine that has one.",
            arguments=("device",),
        )


def processes_live() -> bool:
    """Whether the processes of our own cluster are there, which takes microseconds to say.

    Ray ends a driver, without a word, some seconds after the raylet beside it is gone. Who notices
    before can leave in time. Ray has no public call for it.
    """
    node: Any = getattr(import_ray()._private.worker, "_global_node", None)
    if not is_ours() or not hasattr(node, "dead_processes"):
        return True
    return not {kind for kind, _ in node.dead_processes()} & {"raylet", "gcs_server"}


def is_alive() -> bool:
    """Whether the machine of the cluster that this process is joined to still answers."""
    ray = import_ray()
    if not processes_live():
        return False
    try:
        here = ray.get_runtime_context().get_node_id()
        return any(node["Alive"] for node in ray.nodes() if node["NodeID"] == here)
    except ray.exceptions.RayError:
        return False


@contextmanager
def _same_signals() -> Iterator[None]:
    """Ray takes SIGTERM for itself, and who asked for a clean stop would not hear of it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
