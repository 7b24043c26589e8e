"""Adapters of many members over one frozen base train as they do alone."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import torch
from fleet_toys import (
    RUN,
    WORDS,
    after,
    changed,
    must_be_alike,
    runs_of,
    side_by_side,
    tag_source,
    text_source,
)

from taskmix.engine import Fleet, FolderSource, Here, Run
from taskmix.errors import TaskmixWarning
from taskmix.models import Adapters, FrozenBase, Transformer
from taskmix.policies import HardProgress
from taskmix.records import Study
from taskmix.tasks import TaskSet, tables_as_tasks
from taskmix.weighting import Equal, GroupDRO

transformers = pytest.importorskip("transformers", reason="the extra `text` is not installed")
tokenizers = pytest.importorskip("tokenizers", reason="the extra `text` is not installed")

SMALL = {
    "vocab_size": 80,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 64,
}
CONFIGS: dict[str, Any] = {
    "bert": lambda: transformers.BertModel(transformers.BertConfig(**SMALL)),
    "roberta": lambda: transformers.RobertaModel(
        transformers.RobertaConfig(**SMALL | {"pad_token_id": 0, "type_vocab_size": 1})
    ),
    "distilbert": lambda: transformers.DistilBertModel(
        transformers.DistilBertConfig(
            vocab_size=80, dim=16, n_layers=2, n_heads=2, hidden_dim=24, max_position_embeddings=64
        )
    ),
    "deberta": lambda: transformers.DebertaV2Model(
        transformers.DebertaV2Config(**SMALL, relative_attention=True, position_biased_input=False)
    ),
    "llama": lambda: transformers.LlamaForCausalLM(
        transformers.LlamaConfig(**SMALL, num_key_value_heads=1)
    ),
    "gpt2": lambda: transformers.GPT2LMHeadModel(
        transformers.GPT2Config(vocab_size=80, n_embd=16, n_layer=2, n_head=2, n_positions=64)
    ),
}


@dataclass(frozen=True)
class EvenTexts:
    """Texts that are all cut to the same length."""

    def load(self) -> TaskSet:
        chance = random.Random(0)

        def table(count: int) -> pa.Table:
            texts = [" ".join(chance.choices(WORDS, k=30)) for _ in range(count)]
            return pa.table({"text": texts, "label": [text[1:3] > "3" for text in texts]})

        return tables_as_tasks(
            {name: {"train": table(20), "dev": table(8), "test": table(8)} for name in "ab"}
        )


def saved(folder: Path, kind: str) -> str:
    """A small pretrained model, which is random, and a tokenizer of words."""
    torch.manual_seed(0)
    path = folder / kind
    CONFIGS[kind]().save_pretrained(path)
    pieces = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", *WORDS]
    vocabulary = {piece: place for place, piece in enumerate(pieces)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 1), ("[SEP]", 2)],
    )
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", eos_token="[SEP]"
    ).save_pretrained(path)
    return str(path)


def adapted(folder: Path, kind: str = "bert", source: Any = None, **options: Any) -> Run:
    path = saved(folder, kind)
    architecture = Transformer(path=path, max_length=32, tune="adapters", **options)
    return changed(RUN, architecture, source=source or text_source(folder), steps=8, batch_size=8)


TEXTS = (("two", "three"), ("long", "two"), ("pair", "two", "long"), ("pair",))


@pytest.mark.parametrize("weighting", [Equal(), None], ids=["all", "drawn"])
def test_texts_pairs_and_numbers_are_learned_as_alone(tmp_path: Path, weighting: Any) -> None:
    side_by_side(runs_of(adapted(tmp_path), TEXTS, weighting=weighting), tmp_path, tolerance=1e-4)


@pytest.mark.parametrize("kind", sorted(set(CONFIGS) - {"bert"}))
def test_an_architecture_needs_no_code_of_its_own(tmp_path: Path, kind: str) -> None:
    runs = runs_of(adapted(tmp_path, kind), TEXTS[:3], weighting=None)
    side_by_side(runs, tmp_path, tolerance=1e-4)


def test_rows_of_one_length_are_read_without_a_look_up(tmp_path: Path) -> None:
    base = adapted(tmp_path)
    architecture = replace(
        base.architecture, max_length=16
    )  # of texts up to 20 words: some are cut
    source = EvenTexts()
    runs = runs_of(changed(base, architecture, source=source), [("a", "b"), ("b",)], weighting=None)
    side_by_side(runs, tmp_path, tolerance=1e-4)


@pytest.mark.parametrize("weighting", [Equal(), None], ids=["all", "drawn"])
def test_words_are_tagged_as_alone(tmp_path: Path, weighting: Any) -> None:
    base = adapted(tmp_path, source=tag_source(tmp_path))
    subsets = (("entities", "parts"), ("parts",), ("parts", "entities"))
    side_by_side(runs_of(base, subsets, weighting=weighting), tmp_path, tolerance=1e-4)


def test_members_of_different_ranks_train_together(tmp_path: Path) -> None:
    base = adapted(tmp_path)
    architecture: Any = base.architecture
    runs = [
        replace(run, architecture=replace(architecture, adapters=Adapters(rank=rank)))
        for run, rank in zip(runs_of(base, TEXTS[:3], weighting=None), (2, 8, 3), strict=True)
    ]
    side_by_side(runs, tmp_path, tolerance=1e-4)


@pytest.mark.parametrize(
    "changes",
    [{"weighting": GroupDRO()}, {"weighting": None, "reward": HardProgress(per_cost=True)}],
    ids=["weighed", "rewarded"],
)
def test_what_is_learned_from_losses_is_learned_as_alone(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    side_by_side(runs_of(adapted(tmp_path), TEXTS, **changes), tmp_path, tolerance=1e-4)


def prompts(folder: Path) -> FolderSource:
    """Two tasks of prompts with answers of one to four words, and one of plain text."""
    chance = random.Random(0)

    def words(most: int) -> str:
        return " ".join(chance.choices(WORDS, k=chance.randint(1, most)))

    for name in ("first", "second"):
        for split, count in (("train", 24), ("dev", 6), ("test", 6)):
            rows = [{"prompt": words(9), "answer": words(4)} for _ in range(count)]
            path = folder / "prompts" / name / f"{split}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return FolderSource(path=str(folder / "prompts"))


@pytest.mark.parametrize("weighting", [Equal(), None], ids=["all", "drawn"])
def test_answers_are_learned_and_scored_as_alone(
    tmp_path: Path, weighting: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "taskmix.engine._fleet._adapters.SCORES_AT_ONCE", 80 * 5
    )  # some places at a time
    base = adapted(tmp_path, "llama", source=prompts(tmp_path))
    subsets = (("first", "second"), ("second",), ("second", "first"))
    side_by_side(runs_of(base, subsets, weighting=weighting), tmp_path, tolerance=1e-4)


def test_what_no_fleet_takes_is_said_with_the_reason(tmp_path: Path) -> None:
    run = adapted(tmp_path)
    architecture: Any = run.architecture
    whole = replace(architecture, tune="all")
    dropping = replace(architecture, adapters=Adapters(dropout=0.1))
    fleet = Fleet(workers=1)
    assert fleet.companions([run, replace(run, seed=1)]) == [2, 2]
    for alone, words in ((whole, "every weight"), (dropping, "dropout")):
        some = [replace(run, architecture=alone, seed=seed) for seed in range(2)]
        with pytest.warns(TaskmixWarning, match=f"one by one, because .*{words}"):
            assert {r.outcome for r in fleet.run(some, Study(tmp_path / words))} == {"finished"}


def test_a_base_that_cannot_be_compiled_is_trained_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: FrozenBase) -> Any:
        raise RuntimeError("no compiler here")

    monkeypatch.setenv("TASKMIX_COMPILE", "always")
    monkeypatch.setattr(FrozenBase, "compiled", fail)
    with pytest.warns(TaskmixWarning, match="not compiled, and slower: no compiler here"):
        side_by_side(
            runs_of(adapted(tmp_path), TEXTS[:2], weighting=None), tmp_path, tolerance=1e-4
        )


def test_what_a_fleet_of_adapters_began_goes_on_alone_to_the_same_end(tmp_path: Path) -> None:
    base = replace(adapted(tmp_path), checkpoint_every=4, evaluate_every=4)
    runs = runs_of(base, TEXTS[:2], weighting=None)
    whole, parted = Study(tmp_path / "whole"), Study(tmp_path / "parted")
    Here(workers=1).run(runs, whole)
    stopped = Fleet(workers=1).run(runs, parted, stop=after(2))
    assert [each.outcome for each in stopped] == ["stopped", "stopped"]
    assert all(each.is_done for each in Here(workers=1).run(runs, parted))
    for run in runs:
        specification = run.specification()
        must_be_alike(whole.run(specification), parted.run(specification), tolerance=1e-4)
