"""Trees of tensors and plain values in one safetensors file, read back bit for bit.

The tensors lie in the file under readable names (`optimizer/state/0/exp_avg`), so a model of plain
names is a file that any safetensors reader loads. What the format cannot say (the shape of the tree,
numbers, strings, key types) is JSON in its metadata, beside a checksum of all the rest. Nothing is
pickled: reading a state runs no code of the file's.
"""

from __future__ import annotations

import base64
import functools
import json
import os
import re
import struct
import sys
import zlib
from collections import Counter, OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from taskmix.errors import OptionError
from taskmix.files import DOCUMENT_LIMIT, free_memory, open_plain, read_plain, replacing
from taskmix.records._damage import DamageError

if TYPE_CHECKING:
    from torch import Tensor

StateTree = (
    Any  # dict (str or int keys), list, tuple, tensor, array, number, str, bytes, bool, None
)

# The types every version of safetensors knows; any other is stored as its bytes.
DTYPES = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint8": "U8",
    "bool": "BOOL",
}
MAPPINGS: dict[str, type] = {"dict": dict, "OrderedDict": OrderedDict, "Counter": Counter}
PLAIN = "biufcmM"  # numpy's kinds of fixed-width numbers and times
_DTYPE = re.compile(rf"[<>|=]?[{PLAIN}][0-9]{{1,2}}(\[[0-9]{{0,9}}[A-Za-z]{{1,2}}\])?")
NO_SUM = "00000000"  # stands for the checksum while it is taken
# What a sound checksum over another structure can make of reading it.
_MISSHAPEN = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RuntimeError,
    struct.error,
)


@dataclass(frozen=True)
class StoredFile:
    """A file as it should be found: its name, size and checksum."""

    file: str
    size: int
    crc32: str


def save_state(path: str | Path, tree: StateTree, *, sync: bool = True) -> StoredFile:
    """Writes a tree as one file; on any failure what was there before stays.

    >>> save_state("state.safetensors", {"step": 3, "weight": torch.zeros(2)}).file
    'state.safetensors'
    >>> load_state("state.safetensors")
    {'step': 3, 'weight': tensor([0., 0.])}
    """
    path = Path(path)
    packer = _Packer()
    structure = packer.pack(tree, ())
    header: dict[str, Any] = {
        "__metadata__": {"crc32": NO_SUM, "format": "pt", "taskmix": _compact(structure)}
    }
    leaves = packer.in_file_order()
    place = 0
    for name, leaf in leaves:
        header[name] = {
            "dtype": leaf.kind,
            "shape": leaf.shape,
            "data_offsets": [place, place + leaf.size],
        }
        place += leaf.size
    encoded = _compact(header).encode()
    encoded += b" " * (-len(encoded) % 8)
    with replacing(path, sync=sync) as sink:
        sink.write(len(encoded).to_bytes(8, "little"))
        sink.write(encoded)
        for _, leaf in leaves:
            if leaf.size:
                sink.write(leaf.bytes())
        total = f"{sink.crc32:08x}"
        sink.overwrite(8 + encoded.index(NO_SUM.encode()), total.encode())
        return StoredFile(path.name, sink.size, total)


def load_state(path: str | Path, *, expected: StoredFile | None = None) -> StateTree:
    """Reads what `save_state` wrote; tensors come back on the CPU.

    With `expected` the file must be that very one, not just a sound one.

    >>> stored = save_state("state.safetensors", {"step": 3})
    >>> load_state("state.safetensors", expected=stored)
    {'step': 3}
    """
    path = Path(path)
    try:
        if expected is None:
            _check_size(path)
        data = read_plain(path, limit=free_memory() // 2 if expected is None else expected.size)
    except FileNotFoundError:
        raise DamageError(f"`{path}` should hold a state. Found no such file.") from None
    return _parse(data, path, expected)


def _check_size(path: Path) -> None:
    """Raises where a file is not as long as its header says: it may claim a terabyte of nothing."""
    with open_plain(path) as file:
        size = os.fstat(file.fileno()).st_size
        length = int.from_bytes(file.read(8), "little")
        try:
            if length > min(size, DOCUMENT_LIMIT):
                raise ValueError("a header longer than the file")
            header = json.loads(file.read(length))
            ends = [each["data_offsets"][1] for name, each in header.items() if name[:2] != "__"]
            if 8 + length + max(ends, default=0) != size:
                raise ValueError("another size")
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise _damaged(path, "another or a broken file") from error


def _damaged(path: Path, found: str) -> DamageError:
    return DamageError(
        f"`{path}` should hold a state that taskmix wrote. Found {found}. Restore the file from "
        "a copy, or go on from an earlier checkpoint."
    )


def _parse(data: bytes, path: Path, expected: StoredFile | None) -> StateTree:
    import safetensors.torch
    from safetensors import SafetensorError

    damaged = functools.partial(_damaged, path)
    if expected is not None and len(data) != expected.size:
        raise damaged(f"{len(data)} bytes instead of {expected.size}")
    try:
        end = 8 + int.from_bytes(data[:8], "little")
        header = data[8:end]
        metadata = json.loads(header)["__metadata__"]
        structure, total = json.loads(metadata["taskmix"]), metadata["crc32"]
        place = header.index(b'"crc32":"') + len(b'"crc32":"')
    except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
        raise damaged("another or a broken file") from error
    view = memoryview(data)
    blank = header[:place] + NO_SUM.encode() + header[place + len(NO_SUM) :]
    found = zlib.crc32(view[end:], zlib.crc32(blank, zlib.crc32(view[:8])))
    if f"{found:08x}" != total or (expected is not None and expected.crc32 != total):
        raise damaged("a checksum that does not fit (some bits have changed)")
    try:
        return _unpack(structure, safetensors.torch.load(data))
    except (SafetensorError, *_MISSHAPEN) as error:
        raise damaged(f"a structure that cannot be read ({error})") from error


@dataclass(frozen=True)
class _Leaf:
    """A tensor or an array on its way to the file; fetched from its device when its turn comes."""

    value: Any
    kind: str  # in the words of safetensors
    shape: list[int]
    size: int

    def bytes(self) -> Any:
        if isinstance(self.value, np.ndarray):
            return np.ascontiguousarray(self.value).reshape(-1).view(np.uint8)
        import torch

        plain = self.value.detach().cpu().resolve_conj().resolve_neg().contiguous()
        return plain.reshape(-1).view(torch.uint8).numpy()


@dataclass
class _Packer:
    leaves: dict[str, _Leaf] = field(default_factory=dict)

    def in_file_order(self) -> list[tuple[str, _Leaf]]:
        """Wide numbers first, so that each tensor begins at a multiple of its number's width."""
        widths = {"F64": 8, "I64": 8, "F32": 4, "I32": 4, "F16": 2, "BF16": 2, "I16": 2}
        return sorted(self.leaves.items(), key=lambda item: -widths.get(item[1].kind, 1))

    def pack(self, value: StateTree, place: tuple[str, ...]) -> Any:
        """The JSON of a value; a dict of one key is a tag for what JSON lacks."""
        kind = type(value)
        if value is None or kind is bool or kind is str:
            return value
        if kind is int:
            return value if -(2**63) <= value < 2**63 else {"int": hex(value)}
        if kind is float:
            return value if np.isfinite(value) else {"float": struct.pack(">d", value).hex()}
        if kind is list:
            return list(self._pack_items(value, place))
        if kind is tuple:
            return {"tuple": list(self._pack_items(value, place))}
        if kind in MAPPINGS.values():
            return {kind.__name__: self._pack_mapping(value, place)}
        if kind is bytes:
            return {"bytes": base64.b64encode(value).decode()}
        if isinstance(value, np.generic) and value.dtype.kind in PLAIN:
            return {"scalar": [value.dtype.str, value.tobytes().hex()]}
        if kind in (np.ndarray, np.memmap) and value.dtype.kind in PLAIN:
            return {"array": self._pack_array(value, place)}
        if _is_tensor(value):
            return {"tensor": self._pack_tensor(value, place)}
        raise OptionError(
            f"`{'/'.join(place) or 'state'}` should be a tensor, an array, a number, a string, "
            f"bytes, None, or a dict, list or tuple of these. Found {kind.__name__}. Convert it "
            "before it is stored."
        )

    def _pack_items(self, values: Any, place: tuple[str, ...]) -> Iterator[Any]:
        for index, item in enumerate(values):
            yield self.pack(item, (*place, str(index)))

    def _pack_mapping(self, values: Any, place: tuple[str, ...]) -> list[list[Any]]:
        for key in values:
            if type(key) not in (str, int):
                raise OptionError(
                    f"The keys of `{'/'.join(place) or 'state'}` should be strings or whole numbers. "
                    f"Found {key!r}. Convert it before it is stored."
                )
        return [
            [self.pack(key, place), self.pack(item, (*place, str(key)))]
            for key, item in values.items()
        ]

    def _pack_array(self, array: Any, place: tuple[str, ...]) -> list[Any]:
        kind = DTYPES.get(array.dtype.name) if array.dtype.isnative else None
        shape = list(array.shape) if kind else [array.nbytes]
        name = self._keep(_Leaf(array, kind or "U8", shape, array.nbytes), place)
        return [name, array.dtype.str, list(array.shape)]

    def _pack_tensor(self, tensor: Tensor, place: tuple[str, ...]) -> list[Any]:
        dtype, shape = str(tensor.dtype).removeprefix("torch."), list(tensor.shape)
        kind, size = DTYPES.get(dtype), tensor.numel() * tensor.element_size()
        name = self._keep(_Leaf(tensor, kind or "U8", shape if kind else [size], size), place)
        return [name, dtype, shape]

    def _keep(self, leaf: _Leaf, place: tuple[str, ...]) -> str:
        plain = "/".join(place).encode("utf-8", "replace").decode() or "state"
        name, copies = plain, 1
        while name in self.leaves or name == "__metadata__":
            copies += 1
            name = f"{plain}#{copies}"  # keys 1 and "1" of one dict, say
        self.leaves[name] = leaf
        return name


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _unpack(node: Any, tensors: dict[str, Tensor]) -> StateTree:
    if isinstance(node, list):
        return [_unpack(item, tensors) for item in node]
    if not isinstance(node, dict):
        return node
    ((tag, content),) = node.items()
    if tag in MAPPINGS:
        pairs = ((_unpack(key, tensors), _unpack(item, tensors)) for key, item in content)
        return MAPPINGS[tag](dict(pairs))
    if tag == "tuple":
        return tuple(_unpack(item, tensors) for item in content)
    if tag == "tensor":
        return _as_tensor(tensors[content[0]], content[1], content[2])
    if tag == "array":
        return _as_array(tensors[content[0]], content[1], content[2])
    if tag == "scalar":
        return np.frombuffer(bytes.fromhex(content[1]), dtype=_plain(content[0]))[0]
    if tag == "bytes":
        return base64.b64decode(content)
    if tag == "int":
        return int(content, 16)
    if tag == "float":
        return struct.unpack(">d", bytes.fromhex(content))[0]
    raise ValueError(f"no such tag: {tag}")


def _as_tensor(stored: Tensor, dtype: str, shape: list[int]) -> Tensor:
    import torch

    if dtype in DTYPES:
        return stored
    wanted = getattr(torch, dtype)
    if not isinstance(wanted, torch.dtype):
        raise TypeError(f"{dtype!r} as the type of a tensor")
    return stored.view(wanted).reshape(shape)


def _as_array(stored: Tensor, dtype: str, shape: list[int]) -> Any:
    array = stored.numpy()
    return array if array.dtype.str == dtype else array.view(_plain(dtype)).reshape(shape)


def _plain(name: str) -> np.dtype[Any]:
    """A type of numbers or times: an object's would be a pointer out of the file."""
    if _DTYPE.fullmatch(name) is None:  # NumPy reads lists of types, too, by Python's own parser
        raise TypeError(f"{name!r} as the type of an array")
    return np.dtype(name)


def _is_tensor(value: object) -> bool:
    if "torch" not in sys.modules:  # then nobody has made one
        return False
    import torch

    if not isinstance(value, torch.Tensor):
        return False
    return value.layout is torch.strided and not value.is_quantized
