"""Files as they should not be: sound ones with something changed, cut, doubled or put in."""

from __future__ import annotations

import contextlib
import copy
import json
import random
from collections.abc import Callable, Sequence
from typing import Any

WORDS = (
    b"\x00",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\r\n",
    b"\r",
    b"\n\n",
    b"\t",
    b",",
    b'"',
    b"'",
    b"\\",
    b"\\u0000",
    b"\\ud800",
    b"\\x",
    b"{}",
    b"[]",
    b"null",
    b"true",
    b"NaN",
    b"-Infinity",
    b"-1",
    b"0",
    b"1e309",
    b"1e-400",
    b"-0.0",
    b"9223372036854775808",
    b"18446744073709551616",
    b"99999999999999999999999999999999999999",
    b"1" * 5000,
    b"../../../etc/passwd",
    b"/etc/passwd",
    b"__class__",
    b"<script>alert(1)</script>",
    "\u202e".encode(),
    "\u2028".encode(),
    "é".encode(),
    "e\u0301".encode(),
    "🤷🏽‍♀️".encode(),
    "\u00b2\u0663\uff11".encode(),
    b"\xed\xa0\x80",  # half a surrogate pair
    b"\xc0\x80",
    b"\xf8\x88\x80\x80\x80",
    b"a" * 4096,
    b"[" * 3000,
    b'{"a":' * 1500,
    b"(" * 400,
    b"#",
    b"=",
    b" ",
)

Mutation = Callable[[bytearray, random.Random, Sequence[bytes]], bytearray]


def flip_bits(data: bytearray, chance: random.Random, words: Sequence[bytes]) -> bytearray:
    for _ in range(chance.choice((1, 1, 2, 8))):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return data


def set_bytes(data: bytearray, chance: random.Random, words: Sequence[bytes]) -> bytearray:
    place = chance.randrange(len(data))
    for offset in range(min(chance.choice((1, 2, 4, 8)), len(data) - place)):
        data[place + offset] = chance.choice((0, 255, 127, 128, chance.randrange(256)))
    return data


def cut_short(data: bytearray, chance: random.Random, words: Sequence[bytes]) -> bytearray:
    return data[: chance.randrange(len(data))]


def take_out(data: bytearray, chance: random.Random, words: Sequence[bytes]) -> bytearray:
    begin, end = sorted(chance.randrange(len(data)) for _ in range(2))
    return data[:begin] + data[min(end, begin + 64) :]


def copy_block(data: bytearray, chance: random.Random, words: Sequence[bytes]) -> bytearray:
    begin, end = sorted(chance.randrange(len(data)) for _ in range(2))
    place = chance.randrange(len(data))
    return data[:place] + data[begin:end] * chance.choice((1, 1, 3)) + data[place:]


def put_word(data: bytearray, chance: random.Random, words: Sequence[bytes]) -> bytearray:
    place = chance.randrange(len(data))
    taken = chance.choice((0, 0, 1, 4))
    return data[:place] + chance.choice(words) + data[place + taken :]


def replace_token(data: bytearray, chance: random.Random, words: Sequence[bytes]) -> bytearray:
    """A whole number or word becomes another: most files stay well-formed."""
    place = chance.randrange(len(data))
    end = begin = place
    while begin > 0 and _is_wordy(data[begin - 1]):
        begin -= 1
    while end < len(data) and _is_wordy(data[end]):
        end += 1
    return data[:begin] + chance.choice(words) + data[end:]


def swap_lines(data: bytearray, chance: random.Random, words: Sequence[bytes]) -> bytearray:
    lines = data.split(b"\n")
    one, two = (chance.randrange(len(lines)) for _ in range(2))
    lines[one], lines[two] = lines[two], lines[one]
    return bytearray(b"\n").join(lines)


def other_line_ends(data: bytearray, chance: random.Random, words: Sequence[bytes]) -> bytearray:
    return data.replace(b"\n", chance.choice((b"\r\n", b"\r", b"\n\n", b"\x0b", b"")))


def _is_wordy(byte: int) -> bool:
    return chr(byte).isalnum() or byte in b"._-+"


MUTATIONS: tuple[Mutation, ...] = (
    flip_bits,
    set_bytes,
    cut_short,
    take_out,
    copy_block,
    put_word,
    put_word,
    replace_token,
    replace_token,
    replace_token,
    swap_lines,
    other_line_ends,
)


def mutated(
    seeds: Sequence[bytes], chance: random.Random, words: Sequence[bytes] = ()
) -> tuple[bytes, str]:
    """One of the sound files after one to four changes, and which they were."""
    data = bytearray(chance.choice(seeds))
    names = []
    for _ in range(chance.choice((1, 1, 2, 4))):
        if not data:
            break
        mutation = chance.choice(MUTATIONS)
        names.append(mutation.__name__)
        data = mutation(data, chance, (*WORDS, *words) if words else WORDS)
    return bytes(data), "+".join(names)


ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    3,
    7.5,
    3_000_000,
    2**31 - 1,
    2**63,
    10**400,
    float("nan"),
    float("inf"),
    "",
    "a",
    "\u0378",
    "\ud800",
    "a\0b",
    "../a",
    "gpt2",
    "a" * 5000,
    [],
    [[]],
    [0, 0],
    [3_000_000],
    [None, "a"],
    ["a", "a"],
    {},
    {"type": "x"},
    {"names": [0]},
    {"feature": {"names": "ab"}},
    [{"filename": ["data-00000-of-00001.arrow"]}],
    {"AutoConfig": "odd.Odd"},
)


def refit_document(sound: bytes) -> Callable[[bytes], bytes]:
    """What is no JSON any more becomes the sound document with one to three values changed."""

    def refit(data: bytes) -> bytes:
        with contextlib.suppress(ValueError, RecursionError):
            json.loads(data)
            return data
        chance, document = random.Random(data), json.loads(sound)
        for _ in range(chance.choice((1, 1, 2, 3))):
            document = _changed(document, chance)
        return json.dumps(document).encode()

    return refit


def _changed(value: Any, chance: random.Random) -> Any:
    """The value with another in place of it, or of one inside it, or with an entry more."""
    if not isinstance(value, dict | list) or not value or chance.random() < 0.1:
        return copy.deepcopy(chance.choice(ODD))
    if isinstance(value, dict) and chance.random() < 0.05:
        return value | {"odd": copy.deepcopy(chance.choice(ODD))}
    place = chance.choice(list(value) if isinstance(value, dict) else range(len(value)))
    value[place] = _changed(value[place], chance)
    return value
