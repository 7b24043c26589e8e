"""Which column of a file is meant by a name: letters in upper or lower case do not matter.

A header that was typed by hand, or came out of a spreadsheet, says `Label`, `LABEL` or ` label `, and
may have a byte order mark, a non-breaking space or quotes around it. The exact name always wins.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from taskmix.errors import InputError
from taskmix.tasks._formats._words import quoted

_AROUND = (
    " \t\r\n\f\v\u00a0\u200b\u2060\ufeff\"'`"  # what may stand around a name and is none of it
)

# Where no column is called `label`, one of these is meant; the second lot only beside a text.
USUAL_LABELS = frozenset(
    {"labels", "target", "targets", "class", "classes", "y", "gold", "gold_label", "outcome"}
)
_OF_TEXTS = """
    category categories sentiment rating ratings score scores stars star overall intent emotion emotions
    polarity stance tag tags grade toxicity toxic hate spam is_spam verdict relevance similarity
    entailment topic topics type label_text label_name is_duplicate class_name
"""
USUAL_LABELS_OF_TEXTS = frozenset(_OF_TEXTS.split())


def folded_name(name: str) -> str:
    """What is left of a name when case, white space and quotes around it do not count."""
    return unicodedata.normalize("NFC", name).strip(_AROUND).strip().casefold()


def match_column(names: Iterable[str], wanted: str) -> str | None:
    """The column that is meant: of that very name, or the only one that differs in case and the like.

    None where there is none. Several such columns, none of them exact, are an `InputError`.
    """
    known = list(names)
    if wanted in known:
        return wanted
    folded = folded_name(wanted)
    found = [name for name in known if folded_name(name) == folded] if folded else []
    if len(found) > 1:
        shown = " and ".join(quoted(name) for name in found[:3])
        raise InputError(
            f"`{wanted}` should name one column. Found {shown}, which differ only in case or in what "
            "stands around the name. Write the name exactly, or rename one of them."
        )
    return found[0] if found else None


def usual_label(names: Iterable[str]) -> str | None:
    """The only column that is called as labels often are."""
    names = list(names)
    for usual in (USUAL_LABELS, USUAL_LABELS_OF_TEXTS):
        if found := [name for name in names if folded_name(name) in usual]:
            return found[0] if len(found) == 1 else None
    return None
