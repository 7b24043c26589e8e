from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from taskmix.errors import InputError, OptionError
from taskmix.models import (
    Adapters,
    Perceptron,
    TextConvolution,
    Transformer,
    choose_architecture,
    pretrained,
    tuned,
    tuning_of,
)
from taskmix.tasks import FeatureEncoding, InputKind, Split, Task, TaskKind, TaskSet

pytest.importorskip("transformers", reason="the extra `text` is not installed")


def tasks(*inputs: InputKind) -> TaskSet:
    def made(kind: InputKind) -> Task:
        columns = {"text": ["a"], "pair": ["a"], "prompt": ["a"]}
        rows: dict[str, Any] = {"prompt" if kind == "prompt" else "text": columns[kind]}
        if kind == "pair":
            rows["text2"] = ["b"]
        if kind == "prompt":
            rows["answer"] = ["b"]
        of: TaskKind = "generation" if kind == "prompt" else "classification"
        targets = np.zeros(0 if kind == "prompt" else 1, dtype=np.int64)
        return Task(
            name=kind,
            kind=of,
            inputs=kind,
            labels=() if kind == "prompt" else ("no", "yes"),
            metric="exact_match" if kind == "prompt" else "accuracy",
            source=kind,
            splits={"train": Split(pa.table(rows), targets)},
        )

    return TaskSet(tuple(map(made, inputs)))


@pytest.mark.parametrize(("before", "after"), [*product(("heads", "adapters", "all"), repeat=2)])
def test_each_way_of_tuning_becomes_each_other_over_the_same_model(before: Any, after: Any) -> None:
    made = tuned(pretrained("minilm", before, max_length=64), after)
    assert tuning_of(made) == after
    named = made.reads if isinstance(made, Perceptron) else made
    assert isinstance(named, FeatureEncoding | Transformer)
    assert (named.path, named.max_length) == ("minilm", 64)


def test_pooling_and_adapters_outlive_a_change_of_tuning() -> None:
    model = Transformer(path="minilm", pooling="first", adapters=Adapters(rank=2))
    heads = tuned(model, "heads")
    assert isinstance(heads, Perceptron)
    assert isinstance(heads.reads, FeatureEncoding)
    assert heads.reads.pooling == "first"
    again = tuned(heads, "all")
    assert isinstance(again, Transformer)
    assert again.pooling == "first"
    adapted = tuned(model, "adapters")
    assert isinstance(adapted, Transformer)
    assert adapted.adapters.rank == 2


def test_what_is_not_pretrained_cannot_be_tuned() -> None:
    with pytest.raises(InputError, match="should be a pretrained model"):
        tuned(TextConvolution(), "heads")
    with pytest.raises(OptionError, match="one of heads, adapters, all"):
        tuned(Transformer(path="minilm"), "some")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("device", "options", "expected"),
    [
        ("cpu", {}, "heads"),
        ("cuda", {}, "adapters"),
        ("cuda:1", {"tune": "heads"}, "heads"),
        ("cpu", {"tune": "all"}, "all"),
        ("cpu", {"rank": 4}, "adapters"),
    ],
)
def test_heads_are_tuned_on_a_cpu_and_adapters_on_a_gpu_unless_asked_otherwise(
    device: str, options: dict[str, Any], expected: str
) -> None:
    made, tuning = choose_architecture("minilm", tasks("text"), device=device, **options)
    assert tuning == tuning_of(made) == expected


def test_text_is_generated_by_adapters_also_on_a_cpu() -> None:
    assert choose_architecture("smol", tasks("prompt"))[1] == "adapters"
    with pytest.raises(OptionError, match="Found tasks of text to be generated"):
        choose_architecture("smol", tasks("prompt"), tune="heads")


@pytest.mark.parametrize("options", [{"tune": "all"}, {"rank": 4}])
def test_tuning_is_refused_without_a_pretrained_model(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match="should go with a pretrained model"):
        choose_architecture("auto", tasks("text"), **options)
    with pytest.raises(OptionError, match="`rank` should go with adapters"):
        choose_architecture("minilm", tasks("text"), rank=4, tune="all")
