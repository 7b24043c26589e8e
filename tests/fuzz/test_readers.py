"""Mutated files for every reader, a few of each; `benchmarks/fuzz.py` tries a million."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from readers import Reader, all_readers
from trial import attempt, make_input

READERS = all_readers()
FEW = 60
by_reader = pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory where there is such a folder."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        yield Path(name)


@by_reader
def test_sound_files_are_read(reader: Reader, folder: Path) -> None:
    reader.prepare(folder)
    for seed in reader.seeds:
        data = reader.refit(seed) if reader.refit is not None else seed
        (folder / reader.file).write_bytes(data)
        reader.read(folder)


@by_reader
def test_changed_files_are_read_or_refused_in_a_sentence(reader: Reader, folder: Path) -> None:
    reader.prepare(folder)
    chance = random.Random(reader.name)
    for _ in range(FEW):
        defect = attempt(reader, folder, make_input(reader, chance))
        assert defect is None, defect


@by_reader
@settings(max_examples=15)
@given(data=st.binary(max_size=200))
def test_any_bytes_are_read_or_refused_in_a_sentence(reader: Reader, data: bytes) -> None:
    with TemporaryDirectory() as name:
        reader.prepare(Path(name))
        defect = attempt(reader, Path(name), data)
        assert defect is None, defect
