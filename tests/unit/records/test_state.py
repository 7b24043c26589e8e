from __future__ import annotations

import math
import random
import struct
from collections import Counter, OrderedDict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from taskmix.errors import OptionError, RecordError
from taskmix.records import load_state, save_state

TORCH_DTYPES = [
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool),
    *(torch.uint16, torch.complex64, torch.complex128, torch.float8_e4m3fn),
]


def same(left: Any, right: Any) -> bool:
    """Equal in type and in every bit."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return list(left) == list(right) and all(
            type(a) is type(b) and same(left[a], right[b]) for a, b in zip(left, right, strict=True)
        )
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, torch.Tensor):
        if left.dtype != right.dtype or left.shape != right.shape:
            return False
        flat = [t.contiguous().reshape(-1).view(torch.uint8) for t in (left, right)]
        return torch.equal(*flat)
    if isinstance(left, np.ndarray | np.generic):
        return (
            left.dtype == right.dtype
            and left.shape == right.shape
            and (left.tobytes() == right.tobytes())
        )
    if isinstance(left, float):
        return struct.pack("d", left) == struct.pack("d", right)
    return bool(left == right)


@st.composite
def tensors(draw: st.DrawFn) -> torch.Tensor:
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
    dtype = draw(st.sampled_from(TORCH_DTYPES))
    width = torch.empty((), dtype=dtype).element_size()
    count = math.prod(shape)
    raw = torch.tensor(list(draw(st.binary(min_size=count * width, max_size=count * width))))
    if dtype is torch.bool:
        raw = raw % 2
    tensor = raw.to(torch.uint8).view(dtype).reshape(shape)
    return tensor.transpose(0, -1) if draw(st.booleans()) and len(shape) > 1 else tensor


ARRAYS = hnp.arrays(
    dtype=st.one_of(
        *(hnp.floating_dtypes(), hnp.integer_dtypes(), hnp.boolean_dtypes()),
        *(hnp.complex_number_dtypes(), hnp.datetime64_dtypes(), hnp.unsigned_integer_dtypes()),
    ),
    shape=hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
)
LEAVES = st.one_of(
    *(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(max_size=20)),
    *(tensors(), ARRAYS, ARRAYS.filter(lambda a: a.size > 0).map(lambda a: a.reshape(-1)[0])),
)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=5) | st.integers(), inner, max_size=4),
        st.dictionaries(st.text(max_size=5), inner, max_size=3).map(OrderedDict),
    ),
    max_leaves=12,
)


@settings(max_examples=100, deadline=None)
@given(TREES)
def test_a_tree_comes_back_with_the_same_types_and_bits(tree: Any) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "state.safetensors")
        first = save_state(path, tree, sync=False)
        assert same(load_state(path, expected=first), tree)
        assert save_state(path, tree, sync=False) == first  # equal trees make equal files
        assert path.stat().st_size == first.size


def test_huge_numbers_and_special_floats_come_back(tmp_path: Path) -> None:
    odd_nan = struct.unpack("d", struct.pack("Q", 0x7FF8_0000_0000_1234))[0]
    tree = [2**100_000, -(2**64), 2**63, -0.0, float("inf"), -float("inf"), odd_nan, 5e-324, 1e22]
    save_state(tmp_path / "a", tree)
    assert same(load_state(tmp_path / "a"), tree)


def test_generators_and_an_optimiser_come_back_to_go_on_alike(tmp_path: Path) -> None:
    model = torch.nn.Linear(3, 2)
    optimiser = torch.optim.Adam(model.parameters(), betas=(0.5, 0.9))
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimiser, [2, 2, 5])
    model(torch.ones(3)).sum().backward()
    optimiser.step()
    generator = np.random.default_rng(3)
    torch_generator = torch.Generator().manual_seed(5)
    tree = {
        "model": model.state_dict(),
        "optimiser": optimiser.state_dict(),
        "scheduler": scheduler.state_dict(),
        "numpy": generator.bit_generator.state,
        "torch": torch_generator.get_state(),
        "python": random.getstate(),
    }
    save_state(tmp_path / "a", tree)
    loaded = load_state(tmp_path / "a")
    assert same(loaded["optimiser"], tree["optimiser"])
    assert type(loaded["scheduler"]["milestones"]) is Counter
    optimiser.load_state_dict(loaded["optimiser"])
    scheduler.load_state_dict(loaded["scheduler"])
    model.load_state_dict(loaded["model"])
    random.setstate(loaded["python"])
    other = np.random.default_rng()
    other.bit_generator.state = loaded["numpy"]
    assert other.random() == generator.random()
    other_torch = torch.Generator()
    other_torch.set_state(loaded["torch"])
    assert torch.equal(
        torch.rand(2, generator=other_torch), torch.rand(2, generator=torch_generator)
    )


def test_shared_expanded_and_trained_tensors_are_stored_by_value(tmp_path: Path) -> None:
    base = torch.arange(6.0)
    parameter = torch.nn.Parameter(torch.ones(2))
    tree = {"a": base, "b": base, "c": base[::2], "d": base[:1].expand(4), "e": parameter}
    save_state(tmp_path / "a", tree)
    loaded = load_state(tmp_path / "a")
    assert all(torch.equal(loaded[key], tree[key]) for key in tree)
    loaded["a"][0] = 9.0
    assert loaded["b"][0] == 0.0


def test_keys_that_make_the_same_name_are_kept_apart(tmp_path: Path) -> None:
    one, two = torch.ones(1), torch.zeros(1)
    tree = {1: one, "1": two, "a/b": one, "a": {"b": two}, "__metadata__": one, "": two}
    save_state(tmp_path / "a", tree)
    assert same(load_state(tmp_path / "a"), tree)


@pytest.mark.parametrize(
    "value",
    [
        {1.5},
        object(),
        {1.5: 2},
        {(1, 2): 3},
        np.array([object()]),
        np.ma.masked_array([1], mask=[True]),  # type: ignore[no-untyped-call]
        torch.eye(2).to_sparse(),
        torch.float32,
        Path("a"),
    ],
)
def test_what_cannot_be_stored_is_refused_before_anything_is_written(
    tmp_path: Path, value: Any
) -> None:
    with pytest.raises(OptionError, match="policy"):
        save_state(tmp_path / "a", {"policy": value})
    assert list(tmp_path.iterdir()) == []


def test_every_flipped_bit_and_every_cut_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a"
    save_state(path, {"weights": torch.arange(20.0), "step": 7, "name": "x", "big": 2**70})
    sound = path.read_bytes()
    for place in range(len(sound)):
        damaged = bytearray(sound)
        damaged[place] ^= 1 << (place % 8)
        path.write_bytes(damaged)
        with pytest.raises(RecordError, match="Restore the file"):
            load_state(path)
    for size in range(0, len(sound), 7):
        path.write_bytes(sound[:size])
        with pytest.raises(RecordError, match="Restore the file"):
            load_state(path)
    path.write_bytes(sound + b"more")
    with pytest.raises(RecordError, match="Restore the file"):
        load_state(path)


def test_a_foreign_file_and_a_missing_one_are_told_apart(tmp_path: Path) -> None:
    safetensors.torch.save_file({"a": torch.ones(2)}, tmp_path / "foreign")
    with pytest.raises(RecordError, match="another or a broken file"):
        load_state(tmp_path / "foreign")
    with pytest.raises(RecordError, match="no such file"):
        load_state(tmp_path / "missing")


def test_another_sound_file_under_the_same_name_is_noticed(tmp_path: Path) -> None:
    expected = save_state(tmp_path / "a", {"step": 1})
    save_state(tmp_path / "a", {"step": 2})
    with pytest.raises(RecordError, match="checksum"):
        load_state(tmp_path / "a", expected=expected)
