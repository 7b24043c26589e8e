"""Whether two documents mean the same: keys, types, names and numbers, but no wording.

Not compared: sentences (text with a space that is no number), and the values of what is different on
another day or machine, by its key.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

VOLATILE = re.compile(
    "seconds?|commands?|version|python|path|page|host|device|hash|digest|fingerprint|created|started"
    "|finished|ended|date|hours|minutes|wall|study|platform|pid|run|rate"
)  # one of the words of a key
HASH = re.compile(r"[0-9a-f]{8,}")


def differences(
    golden: Any, found: Any, *, at: str = "", relative: float = 5e-3, absolute: float = 2e-4
) -> Iterator[str]:
    """A line for each place where they differ."""
    limits = {"relative": relative, "absolute": absolute}
    if _is_number(golden) and _is_number(found):
        if not _close(golden, found, **limits):
            yield f"{at}: {golden} became {found}"
    elif type(golden) is not type(found):
        yield f"{at}: {_shown(golden)} became {_shown(found)}"
    elif isinstance(golden, dict):
        for key in golden.keys() | found.keys():
            here = f"{at}.{key}"
            if key not in found:
                yield f"{here} is gone (was {_shown(golden[key])})"
            elif key not in golden:
                yield f"{here} is new ({_shown(found[key])})"
            elif any(map(VOLATILE.fullmatch, key.split("_"))):
                if type(golden[key]) is not type(found[key]) and not _is_number(golden[key]):
                    yield f"{here}: {_shown(golden[key])} became {_shown(found[key])}"
            else:
                yield from differences(golden[key], found[key], at=here, **limits)
    elif isinstance(golden, list):
        if len(golden) != len(found):
            yield f"{at}: {len(golden)} entries became {len(found)}"
        else:
            for place, (one, other) in enumerate(zip(golden, found, strict=True)):
                yield from differences(one, other, at=f"{at}[{place}]", **limits)
    elif isinstance(golden, str):
        if not _is_wording(golden) and HASH.sub("*", golden) != HASH.sub("*", found):
            yield f"{at}: {golden!r} became {found!r}"
    elif golden != found:
        yield f"{at}: {golden!r} became {found!r}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _close(golden: float, found: float, *, relative: float, absolute: float) -> bool:
    if isinstance(golden, int) and isinstance(found, int):
        return golden == found
    if math.isnan(golden) or math.isnan(found):
        return math.isnan(golden) and math.isnan(found)
    return math.isclose(golden, found, rel_tol=relative, abs_tol=absolute)


def _is_wording(text: str) -> bool:
    return " " in text or "/" in text


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
