"""Small files that claim or become large ones: bounded in time and memory, and told in a sentence."""

from __future__ import annotations

import gzip
import json
import os
import resource
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from taskmix.errors import TaskmixError
from taskmix.plans import Plan
from taskmix.records import RunFolder, load_state
from taskmix.tasks import load_tasks, read_rows, read_word_vectors

MEMORY = 300 << 20  # bytes beyond what the process has
LIMIT = 4 << 20  # uncompressed bytes that a file may have here


def in_little_memory(action: Callable[[], object]) -> str:
    """What came of it in a process that may take a little memory: `read`, or the sentence."""
    ear, mouth = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            limit = pages * resource.getpagesize() + MEMORY
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
            try:
                action()
                said = "read"
            except TaskmixError as error:
                said = str(error)
            except BaseException as error:
                said = f"broken: {error!r}"
            os.write(mouth, said.encode()[:4000])
        finally:
            os._exit(0)
    os.close(mouth)
    with os.fdopen(ear, "rb") as pipe:
        said = pipe.read().decode()
    os.waitpid(child, 0)
    return said


def gzip_of(word: bytes, size: int) -> bytes:
    """A word again and again; members of a gzip file may follow each other."""
    return gzip.compress(word * (2**20 // len(word))) * (size >> 20)


def must_be_refused(said: str) -> None:
    assert "should" in said, said
    assert not said.startswith("broken"), said


@pytest.mark.parametrize(
    "ending", ["jsonl", "json", "csv", "tsv", "txt", "conll", "parquet", "xlsx", "feather"]
)
def test_a_gzip_bomb_of_one_line_is_refused(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"bomb.{ending}.gz"
    path.write_bytes(gzip_of(b"a", 128 << 20))
    must_be_refused(in_little_memory(lambda: read_rows(path, byte_limit=LIMIT)))


@pytest.mark.parametrize("line", [b"a", b"0 "], ids=["a word", "numbers"])
def test_a_bomb_of_word_vectors_is_refused(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "bomb.txt.gz"
    path.write_bytes(gzip_of(line, 400 << 20))
    must_be_refused(in_little_memory(lambda: read_word_vectors(path)))


def test_an_archive_bomb_of_word_vectors_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.npz"
    words = np.frombuffer(b"\n".join([b"a"] * 50_000), dtype=np.uint8)
    np.savez_compressed(path, words=words, vectors=np.zeros((50_000, 2000), np.float32))
    assert path.stat().st_size < 1 << 20
    must_be_refused(in_little_memory(lambda: read_word_vectors(path)))


def test_an_archive_that_only_claims_a_large_array_is_refused(tmp_path: Path) -> None:
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 300), }"
    header += b" " * (117 - len(header)) + b"\n"
    array = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(64)
    with zipfile.ZipFile(tmp_path / "v.npz", "w") as archive:
        archive.writestr("words.npy", array)
        archive.writestr("vectors.npy", array)
    must_be_refused(in_little_memory(lambda: read_word_vectors(tmp_path / "v.npz")))


def test_a_header_that_claims_endless_vectors_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "v.vec"
    for dimension in (b"99999999999", b"4194305", b"0"):
        path.write_bytes(b"1 " + dimension + b"\na 1 2\n")
        must_be_refused(in_little_memory(lambda: read_word_vectors(path)))


def test_a_pipe_and_a_folder_are_no_word_vectors(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / "folder.npz").mkdir()
    for name in ("pipe.txt", "folder.npz"):
        must_be_refused(in_little_memory(lambda name=name: read_word_vectors(tmp_path / name)))


def test_a_parquet_bomb_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.parquet"
    table = pa.table({"text": pa.repeat("a" * 1000, 20_000), "label": pa.repeat(1, 20_000)})
    pq.write_table(table, path, use_dictionary=False, compression="zstd")
    assert path.stat().st_size < 1 << 20
    must_be_refused(in_little_memory(lambda: read_rows(path, byte_limit=LIMIT)))


def test_deep_nesting_is_refused_everywhere(tmp_path: Path) -> None:
    deep = b"[" * 200_000
    run = RunFolder(tmp_path / "run")
    (run.path / "checkpoint").mkdir(parents=True)
    (tmp_path / "deep.jsonl").write_bytes(b'{"a":' + deep)
    (tmp_path / "plan.json").write_bytes(deep)
    (run.path / "run.json").write_bytes(deep)
    (run.path / "checkpoint" / "latest.json").write_bytes(deep)
    header = b'{"__metadata__":{"crc32":"00000000","taskmix":"' + deep + b'"}}'
    (tmp_path / "state").write_bytes(len(header).to_bytes(8, "little") + header)
    (tmp_path / "task.toml").write_bytes(b"label = " + deep)
    for read in (
        lambda: read_rows(tmp_path / "deep.jsonl"),
        lambda: Plan.load(tmp_path / "plan.json"),
        run.summary,
        run.checkpoint,
        lambda: load_state(tmp_path / "state"),
        lambda: load_tasks(tmp_path),
    ):
        must_be_refused(in_little_memory(read))


def test_a_header_longer_than_its_file_is_refused(tmp_path: Path) -> None:
    for size in (2**63, 2**64 - 1, 10**9):
        (tmp_path / "state").write_bytes(size.to_bytes(8, "little") + json.dumps({}).encode())
        must_be_refused(in_little_memory(lambda: load_state(tmp_path / "state")))
