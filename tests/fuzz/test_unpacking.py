"""Small files that claim or become large ones: refused in a sentence, in a tenth of the free memory."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path

import bombs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bombs import GIGABYTE, peak_of, zeros_of

from taskmix.laws import read_table
from taskmix.plans import Plan
from taskmix.records import RunFolder, Study, load_state
from taskmix.tasks import load_tasks, read_rows, read_word_vectors

MOST = GIGABYTE // 10
LARGEST_FILE = 8 << 20  # bytes of a bomb as it lies on the disk


def must_be_refused(path: Path, read: Callable[[], object], names: str = "byte_limit") -> None:
    assert path.stat().st_size < LARGEST_FILE
    must_be_told(read, names)


def must_be_told(read: Callable[[], object], names: str = "") -> None:
    """Refused in a sentence, and in little memory."""
    said, grown = peak_of(read)
    assert "should" in said, said
    assert names in said, said
    assert not said.startswith("broken"), said
    assert grown < MOST, f"{grown >> 20} MB"


@pytest.mark.parametrize(
    "make",
    [
        bombs.parquet_of_references,
        bombs.parquet_of_nested_references,
        bombs.parquet_of_rows,
        bombs.parquet_of_nulls,
        bombs.parquet_of_one_list,
        bombs.parquet_of_prefixes,
        bombs.parquet_that_lies,
    ],
    ids=lambda make: make.__name__,
)
def test_a_parquet_bomb_is_refused_by_default(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    path = make(tmp_path / "train.parquet")
    must_be_refused(path, lambda: read_rows(path))


@pytest.mark.parametrize(
    ("ending", "begin", "word"),
    [
        ("csv", b"text,label\n", b"aaaaaaaaaaaa,1\n"),
        ("csv", b"text\n", b"a\n"),
        ("csv", b"x,y\n1,", b"a"),
        ("csv", b'x,y\n1,"', b"a\n"),
        ("csv", b"", b","),
        ("csv", b"x\n", b"\n"),
        ("jsonl", b"", b'{"text": "a", "label": 1}\n'),
        ("jsonl", b"", b"{}\n"),
        ("jsonl", b"", b"\n"),
        ("jsonl", b'{"a": "', b"a"),
        ("jsonl", b'{"a": ', b"["),
        ("jsonl", b'{"a": [', b"[],"),
        ("json", b"[", b'{"text": "a", "label": 1},'),
        ("json", b"", b"["),
        ("json", b'"', b"a"),
        ("tsv", b"text\tlabel\n", b"aaaaaaaaaaaa\t1\n"),
        ("csv", "text,label\n".encode("utf-16"), "a,1\n".encode("utf-16-le")),
        ("csv", b"text;label\n\xe9;1\n", b"1,5;2\n"),
        ("feather", b"ARROW1\0\0", b"\0"),
        ("xlsx", b"PK", b"\0"),
        ("conll", b"", b"word\tO\n"),
        ("conll", b"a\tb\n", b"\n"),
        ("conll", b"", b"a b "),
        ("txt", b"", b"a\n"),
        ("txt", b"", b"\n"),
        ("parquet", b"PAR1", b"\0"),
    ],
)
def test_a_gzip_bomb_is_refused_by_default(
    tmp_path: Path, ending: str, begin: bytes, word: bytes
) -> None:
    path = tmp_path / f"train.{ending}.gz"
    path.write_bytes(zeros_of(word, begin))
    must_be_told(lambda: read_rows(path))


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (bombs.csv_of_columns, "train.csv"),
        (bombs.jsonl_of_keys, "train.jsonl"),
        (bombs.jsonl_of_spaced_keys, "train.jsonl"),
        (bombs.jsonl_of_paths, "train.jsonl"),
        (bombs.jsonl_of_lists, "train.jsonl.gz"),
        (bombs.conll_of_columns, "train.conll"),
        (bombs.json_of_keys, "train.json"),
        (bombs.json_of_lists, "train.json.gz"),
        (bombs.xlsx_of_cells, "train.xlsx"),
        (bombs.xlsx_of_texts, "train.xlsx"),
        (bombs.xlsx_of_gaps, "train.xlsx"),
        (bombs.feather_of_zeros, "train.feather"),
        (bombs.feather_of_references, "train.feather"),
        (bombs.feather_of_nothing, "train.feather"),
    ],
    ids=lambda thing: getattr(thing, "__name__", thing),
)
def test_a_text_that_becomes_a_huge_table_is_refused(
    tmp_path: Path, make: Callable[[Path], Path], name: str
) -> None:
    path = make(tmp_path / name)
    must_be_refused(path, lambda: read_rows(path))


def test_a_workbook_whose_directory_lies_gives_no_more_than_it_says(tmp_path: Path) -> None:
    path = bombs.xlsx_that_lies(tmp_path / "train.xlsx")
    said, grown = peak_of(lambda: read_rows(path))
    assert "should be a whole workbook" in said, said
    assert grown < MOST, f"{grown >> 20} MB"


def test_blank_rows_of_a_wide_conll_file_are_read_in_little_memory(tmp_path: Path) -> None:
    path = bombs.conll_of_blank_rows(tmp_path / "train.conll")
    said, grown = peak_of(lambda: read_rows(path))
    assert said == "read"
    assert grown < MOST


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (bombs.vectors_of_one_word, "v.txt.gz"),
        (bombs.vectors_archive, "v.npz"),
        (bombs.vectors_that_lie, "v.npz"),
        (bombs.vectors_of_numbers, "v.txt.gz"),
    ],
    ids=lambda thing: getattr(thing, "__name__", thing),
)
def test_a_bomb_of_word_vectors_is_refused_by_default(
    tmp_path: Path, make: Callable[[Path], Path], name: str
) -> None:
    path = make(tmp_path / name)
    must_be_refused(path, lambda: read_word_vectors(path), names="v.")


def test_a_bomb_is_refused_as_a_task_folder_and_as_a_table_of_laws(tmp_path: Path) -> None:
    path = bombs.parquet_of_references(tmp_path / "train.parquet")
    must_be_refused(path, lambda: load_tasks(tmp_path))
    must_be_refused(path, lambda: load_tasks(tmp_path, cache=tmp_path / "cache"))
    must_be_refused(path, lambda: read_table(path, ["label"]))


def test_who_means_it_says_so_and_is_not_refused(tmp_path: Path) -> None:
    path = tmp_path / "train.txt.gz"
    path.write_bytes(gzip.compress(b"a" * 999_999 + b"\n") * 30)
    assert peak_of(lambda: read_rows(path))[0] != "read"
    assert peak_of(lambda: read_rows(path, byte_limit=40 << 20))[0] == "read"
    plain = tmp_path / "train.txt"
    plain.write_bytes(gzip.decompress(path.read_bytes()))  # unpacked, it is no bomb
    assert peak_of(lambda: read_rows(plain))[0] == "read"


def test_a_plain_file_of_more_than_half_of_the_memory_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    path.write_bytes(b"some words\n" * 200_000)
    said, _ = peak_of(lambda: read_rows(path), free=3 << 20)
    assert "half of the free memory" in said
    assert peak_of(lambda: read_rows(path), free=6 << 20)[0] == "read"


def test_honest_data_that_packs_well_is_read(tmp_path: Path) -> None:
    """Each becomes more than is taken without a question, at a hundred times its size or so."""
    chance = random.Random(1)
    cells = np.full((70_000, 200), ord(","), np.uint8)
    cells[:, ::2] = ord("0") + (np.random.default_rng(1).random((70_000, 100)) < 0.003)
    cells[:, -1] = ord("\n")
    sparse = cells.tobytes()
    header = ",".join(f"c{place}" for place in range(100))
    (tmp_path / "sparse.csv.gz").write_bytes(gzip.compress(f"{header}\n".encode() + sparse))
    log = "".join(
        f'{{"time": {second}, "text": "GET /index.html HTTP/1.1 200", "label": "ok"}}\n'
        for second in range(300_000)
    )
    (tmp_path / "log.jsonl.gz").write_bytes(gzip.compress(log.encode()))
    ones = np.random.default_rng(1).random((200_000, 40)) < 0.05
    table = pa.table({f"c{place}": ones[:, place].astype(np.int64) for place in range(40)})
    pq.write_table(table, tmp_path / "sparse.parquet")
    words = [f"word{chance.randrange(2000)}" for _ in range(400_000)]
    lists = pa.array([words[place : place + 20] for place in range(0, len(words), 20)] * 20)
    pq.write_table(pa.table({"tokens": lists}), tmp_path / "tokens.parquet", compression="zstd")
    for path in sorted(tmp_path.iterdir()):
        said, _ = peak_of(lambda path=path: read_rows(path))
        assert said == "read", (path.name, said)
        size = read_rows(path).table.nbytes
        assert size > GIGABYTE // 100, (path.name, size)  # so that it was asked about


def test_wide_rows_and_nested_objects_that_are_meant_are_read(tmp_path: Path) -> None:
    (tmp_path / "wide.csv").write_text(
        ",".join(f"c{place}" for place in range(5000))
        + "\n"
        + (",".join("12345" * 1 for _ in range(5000)) + "\n") * 20
    )
    row = '{"answer": {"text": "a: {b}", "spans": [{"from": 1, "to": 2}]}, "label": "x\\": y"}\n'
    (tmp_path / "nested.jsonl").write_text(row * 30_000)
    for path in tmp_path.iterdir():
        assert peak_of(lambda path=path: read_rows(path))[0] == "read", path.name


def test_a_packed_batch_of_a_saved_data_set_is_refused(tmp_path: Path) -> None:
    path = bombs.saved_zeros(tmp_path)
    must_be_refused(path, lambda: load_tasks(tmp_path))


def test_rows_of_a_run_that_are_a_bomb_are_refused(tmp_path: Path) -> None:
    part = bombs.run_of_equal_steps(tmp_path)
    run = Study(tmp_path).run_named("1")
    must_be_refused(part, run.steps, names="steps")
    said, grown = peak_of(lambda: sum(len(batch) for batch in run.iter_step_batches()))
    assert said == "read"  # piece by piece there is nothing wrong with them
    assert grown < MOST


def test_a_limit_in_bytes_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "bomb.parquet"
    table = pa.table({"text": pa.repeat("a" * 1000, 20_000), "label": pa.repeat(1, 20_000)})
    pq.write_table(table, path, use_dictionary=False, compression="zstd")
    must_be_refused(path, lambda: read_rows(path, byte_limit=4 << 20), names="byte_limit")
    (tmp_path / "rows.txt.gz").write_bytes(zeros_of(b"a"))
    must_be_told(lambda: read_rows(tmp_path / "rows.txt.gz", byte_limit=4 << 20), "byte_limit")


def test_a_header_that_claims_endless_vectors_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "v.vec"
    for dimension in (b"99999999999", b"4194305", b"0"):
        path.write_bytes(b"1 " + dimension + b"\na 1 2\n")
        must_be_told(lambda: read_word_vectors(path))


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
        must_be_told(read)


def test_a_header_longer_than_its_file_is_refused(tmp_path: Path) -> None:
    for size in (2**63, 2**64 - 1, 10**9):
        (tmp_path / "state").write_bytes(size.to_bytes(8, "little") + json.dumps({}).encode())
        must_be_told(lambda: load_state(tmp_path / "state"))
