from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from taskmix.errors import InputError
from taskmix.plans import AdviceDocument, load_advice, save_advice

EARLIER = (
    Path(__file__).parent / "earlier_advice.json"
).read_bytes()  # of three tasks of digits, as it was


@pytest.fixture
def document(tmp_path: Path) -> AdviceDocument:
    (tmp_path / "advice.json").write_bytes(EARLIER)
    read = load_advice(tmp_path)
    assert read is not None
    return read


def within(earlier: Any, now: Any) -> bool:
    """Whether all that an earlier file says stands in a new one, whatever that has besides."""
    if isinstance(earlier, dict):
        return all(key in now and within(value, now[key]) for key, value in earlier.items())
    if isinstance(earlier, list):
        return len(earlier) == len(now) and all(map(within, earlier, now))
    return bool(earlier == now)


def test_a_file_of_an_earlier_version_is_read_and_written_with_all_it_says(
    document: AdviceDocument, tmp_path: Path
) -> None:
    assert document.chosen in {row.name for row in document.candidates}
    assert document.delivered is not None
    assert document.delivered.members
    written = save_advice(tmp_path / "again", document).read_bytes()
    assert within(json.loads(EARLIER), json.loads(written))
    assert load_advice(tmp_path / "again") == document


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"delivered": {"members": 3}}, "AdviceDocument.delivered.members should be a list"),
        ({"lines": 3}, "AdviceDocument.lines should be a list, and is 3"),
        ({"batches": 2.5}, "AdviceDocument.batches should be a whole number, and is 2.5"),
        ({"candidates": [{}]}, r"AdviceDocument.candidates\[0\] should have `name`"),
        ({"commands": {"Train": 1}}, "AdviceDocument.commands.Train should be words, and is 1"),
        (
            {"plan": {"tasks": ["a"], "probabilities": [], "groups": []}},
            "a probability for each task. Found 0 for 1",
        ),
    ],
)
def test_a_part_in_another_form_is_a_sentence_that_says_where(
    tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    (tmp_path / "advice.json").write_text(json.dumps(json.loads(EARLIER) | change))
    with pytest.raises(InputError, match=rf"`taskmix advise` wrote. Found .*{words}"):
        load_advice(tmp_path)
