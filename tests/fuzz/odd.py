"""What may lie where a plain file should be."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_endless_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def make_standard_input(path: Path) -> None:
    path.symlink_to("/dev/stdin")


def make_socket(path: Path) -> None:
    before = Path.cwd()
    os.chdir(path.parent)  # a socket's path may have some hundred characters only
    try:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(path.name)
    finally:
        os.chdir(before)


def make_folder(path: Path) -> None:
    path.mkdir()


def make_link_to_itself(path: Path) -> None:
    path.symlink_to(path.name)


def make_sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(20 * 2**30)


KINDS: tuple[Callable[[Path], None], ...] = (
    make_pipe,
    make_endless_device,
    make_standard_input,
    make_socket,
    make_folder,
    make_link_to_itself,
    make_sparse,
)
