from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from plain_leaves import leaves
from pretended_runs import NAMES, Pretended, description

from taskmix.errors import InputError
from taskmix.records import Study, to_plain
from taskmix.transfer import (
    SubsetDesign,
    TransferDocument,
    learn,
    load_transfer,
    save_transfer,
    train_trials,
    transfer_document,
)

HERE = Path(__file__).parent
EARLIER = json.loads((HERE / "earlier_trained.json").read_text())


def test_what_was_learned_can_be_written_and_read_again(tmp_path: Path) -> None:
    measured = train_trials(description(NAMES), Study(tmp_path), executor=Pretended())
    document = transfer_document(learn(measured, Study(tmp_path)), command="taskmix transfer x")
    save_transfer(tmp_path, document)
    read = load_transfer(tmp_path)
    assert isinstance(read, TransferDocument)
    assert to_plain(read) == to_plain(document), "NaN is no equal of itself, and null is"
    source = document.targets[0].sources[0]
    assert source.low < source.gain < source.high
    assert load_transfer(tmp_path / "elsewhere") is None


@pytest.mark.parametrize("content", ["", "[]", '{"version": 7}', '{"version": 1, "targets": [{}]}'])
def test_a_file_of_another_kind_is_told_in_a_sentence(content: str, tmp_path: Path) -> None:
    (tmp_path / "transfer.json").write_text(content)
    with pytest.raises(
        InputError, match=r"should be a JSON file of version 1.*Run the command again"
    ):
        load_transfer(tmp_path)


def test_a_file_of_an_earlier_version_is_read_and_means_what_it_meant(tmp_path: Path) -> None:
    (tmp_path / "transfer.json").write_text(json.dumps(EARLIER))
    assert to_plain(load_transfer(tmp_path)) == EARLIER


def test_estimates_of_an_earlier_version_are_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "transfer.json").write_text(json.dumps(EARLIER | {"estimate": "gradients"}))
    with pytest.raises(InputError, match=r"Found estimates by gradients, which are gone\. Run"):
        load_transfer(tmp_path)


def test_programs_find_in_the_file_what_they_found_before(tmp_path: Path) -> None:
    study = description(design=SubsetDesign(count=30))
    executor = Pretended(failing=[frozenset(study.subsets(30)[0].tasks)])
    measured = train_trials(study, Study(tmp_path), executor=executor)
    lessons = learn(measured, Study(tmp_path), executor=executor)
    document = transfer_document(lessons, command="taskmix transfer digits")
    now = dict(leaves(json.loads(save_transfer(tmp_path, document).read_text())))
    before = dict(leaves(EARLIER))
    gone = (".pairs.", ".kernel.")  # surrogates
    before = {key: value for key, value in before.items() if not any(name in key for name in gone)}
    assert list(now) == list(before), "the same entries in the same order, null where they were"
    assert now == pytest.approx(before, rel=1e-6, abs=1e-9)


def places(value: Any, where: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Of everything in a document: the first of each list stands for the others."""
    inside: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        inside = list(value.items())
    elif isinstance(value, list):
        inside = list(enumerate(value[:1]))
    return [where, *(place for key, each in inside for place in places(each, (*where, key)))]


@pytest.mark.parametrize("odd", [{"a": 1}, [[]], "x", True, -1.5], ids=repr)
def test_no_part_of_another_form_is_a_traceback(odd: object, tmp_path: Path) -> None:
    refused = 0
    for *way, last in places(EARLIER)[1:]:
        document = part = copy.deepcopy(EARLIER)
        for key in way:
            part = part[key]
        part[last] = odd
        (tmp_path / "transfer.json").write_text(json.dumps(document))
        try:
            load_transfer(tmp_path)
        except InputError:
            refused += 1
    assert refused > 40
