"""Text that is written: scored piece by piece without all scores at once, and decoded greedily."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
import torch

from taskmix.models import HardSharing, Transformer
from taskmix.tasks import (
    MISSING,
    EncodedTasks,
    TaskSet,
    evaluate_written,
    load_tasks,
    tables_as_tasks,
)
from taskmix.training import evaluate, task_loss
from taskmix.training._written import foresee_split, write_answers

PROMPTS = ["big?", "is it a rather long question?", "no", "a b", "why so?"]
ANSWERS = ["yes", "no", "certainly", "x", ""]
END = 0
SaveModel = Callable[..., str]


def asked(metric: str = "exact_match", answers: list[str] = ANSWERS) -> TaskSet:
    table = pa.table({"prompt": PROMPTS, "answer": answers})
    (task,) = tables_as_tasks({"ask": {"train": table, "dev": table}})
    return TaskSet((replace(task, metric=metric),))


def told(folder: Any, texts: list[str]) -> TaskSet:
    for split in ("train", "dev"):
        (folder / f"{split}.txt").write_text("\n".join(texts) + "\n")
    return load_tasks(folder, kind="language")


def built(path: str, tasks: TaskSet, **options: Any) -> tuple[HardSharing, EncodedTasks]:
    architecture = Transformer(path=path, max_length=40, **options)
    encoded = architecture.encoding.encode(tasks)
    torch.manual_seed(1)
    model = architecture.build(encoded)
    for name, parameter in model.named_parameters():
        if "lora_B" in name:  # adapters that do something
            torch.nn.init.normal_(parameter, std=0.5)
    return model.eval(), encoded


def scores_of(model: HardSharing, encoded: EncodedTasks) -> dict[str, float]:
    losses = [task_loss(task) for task in encoded]
    return {each.metric: each.value for each in evaluate(model, encoded, "dev", losses=losses)}


def generated(path: str, tokenizer: Any, prompts: list[str], most: int) -> list[list[int]]:
    """What transformers itself writes, one prompt at a time."""
    import transformers

    network = transformers.AutoModelForCausalLM.from_pretrained(path)
    rows = []
    for prompt in prompts:
        ids = torch.tensor([tokenizer(prompt + "\n")["input_ids"]])
        found = network.generate(ids, do_sample=False, max_new_tokens=most, pad_token_id=END)
        new = found[0, ids.shape[1] :].tolist()
        rows.append(new[: new.index(END)] if END in new else new)
    return rows


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_answers_are_those_that_transformers_writes(
    save_language_model: SaveModel, kind: str
) -> None:
    import transformers

    path = save_language_model(kind)
    model, encoded = built(path, asked())
    found = write_answers(model, 0, encoded["ask"].splits["dev"], most=9, end=END)
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    true = generated(path, tokenizer, PROMPTS, 9)
    assert [list(each.pieces) for each in found] == true
    assert len({each.pieces for each in found}) > 1, "the model answers different things"


@pytest.mark.parametrize("tune", ["all", "adapters"])
def test_a_row_is_an_exact_match_just_where_the_model_writes_that_answer(
    save_language_model: SaveModel, tune: Any
) -> None:
    import transformers

    path = save_language_model(seed=7)
    model, encoded = built(path, asked(), tune=tune)
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    written = write_answers(model, 0, encoded["ask"].splits["dev"], most=30, end=END)
    spelled = tokenizer.batch_decode([list(each.pieces) for each in written])
    ends = [len(each.pieces) < 30 for each in written]
    answers = [text if place % 2 else "other" for place, text in enumerate(spelled)]
    right = sum(end for place, end in enumerate(ends) if place % 2)
    assert right, "some answers are written to their end"
    model, encoded = built(path, asked(answers=answers), tune=tune)
    assert scores_of(model, encoded)["exact_match"] == right / len(PROMPTS)
    # The log-probability of what was written is that of the answer, given as the true one.
    data = encoded["ask"].splits["dev"]
    rows = foresee_split(model, 0, data, 64)
    assert ends[3]
    mean = -float(rows.loss[3] / rows.pieces[3])
    assert mean == pytest.approx(written[3].log_probability, abs=1e-4)


@pytest.mark.parametrize("begins", [False, True])
def test_the_loss_is_the_one_that_transformers_finds_for_the_answer(
    save_language_model: SaveModel, begins: bool
) -> None:
    import transformers

    path = save_language_model(begins=begins)
    model, encoded = built(path, asked())
    network = transformers.AutoModelForCausalLM.from_pretrained(path)
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    total, count = 0.0, 0
    for prompt, answer in zip(PROMPTS, ANSWERS, strict=True):
        read = tokenizer(prompt + "\n")["input_ids"]
        said = [*tokenizer(answer, add_special_tokens=False)["input_ids"], END]
        labels = torch.tensor([[MISSING] * len(read) + said])
        loss = network(input_ids=torch.tensor([read + said]), labels=labels).loss
        total, count = total + loss.item() * len(said), count + len(said)
    assert scores_of(model, encoded)["loss"] == pytest.approx(total / count, rel=1e-5)


def test_the_scores_of_a_split_are_never_all_in_memory(
    save_language_model: SaveModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, encoded = built(save_language_model(), asked())
    before = scores_of(model, encoded)
    sizes: list[int] = []
    model.heads[0].register_forward_hook(lambda head, codes, out: sizes.append(out.numel()))
    monkeypatch.setattr("taskmix.training._written.SCORES_AT_ONCE", 3 * encoded["ask"].outputs)
    assert scores_of(model, encoded) == pytest.approx(before)
    assert max(sizes) <= 3 * encoded["ask"].outputs
    assert sum(sizes) == int((encoded["ask"].splits["dev"].targets != MISSING).sum()) * (
        encoded["ask"].outputs
    )


def test_bits_per_byte_are_those_of_the_text_and_not_of_its_pieces(
    save_language_model: SaveModel, tmp_path: Any
) -> None:
    path = save_language_model()
    (tmp_path / "told").mkdir()
    texts = ["once upon a time", "é was a letter", "the end"]
    model, encoded = built(path, told(tmp_path / "told", texts))
    found = scores_of(model, encoded)
    pieces = sum(map(len, texts))  # a letter each; their ends are only read
    size = sum(len(text.encode()) for text in texts)
    assert found["bits_per_byte"] == pytest.approx(found["loss"] * pieces / math.log(2) / size)


def test_words_are_scored_on_answers_that_the_model_writes(
    save_language_model: SaveModel,
) -> None:
    path = save_language_model(seed=3)
    model, encoded = built(path, asked("word_f1"))
    written = write_answers(model, 0, encoded["ask"].splits["dev"], most=10, end=END)
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    ours = tokenizer.batch_decode([list(each.pieces) for each in written])
    from taskmix.tasks import WrittenText

    text = WrittenText(answers=tuple(zip(ours, ANSWERS, strict=True)))
    assert encoded.extra["longest_answer"] == {"ask": 10}
    assert scores_of(model, encoded)["word_f1"] == evaluate_written("word_f1", text)


def test_an_answer_ends_where_the_context_does(save_language_model: SaveModel) -> None:
    model, encoded = built(save_language_model("gpt2"), asked("rouge_l"))
    data = encoded["ask"].splits["dev"]
    longest = int(data.inputs.word_starts[:, 0].max()) + 1
    for row in write_answers(model, 0, data, most=90, end=END, context=48):
        assert len(row.pieces) <= 48 + 1 - longest  # GPT-2 knows no place beyond its 48
