"""A perceptron whose tasks answer by one output layer, alone and in a fleet."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest
import torch

from taskmix.errors import InputError, OptionError
from taskmix.models import Perceptron
from taskmix.tasks import Split, TableEncoding, Task, TaskSet


def rows(generator: np.random.Generator, count: int) -> Split:
    inputs = generator.normal(size=(count, 3))
    labels = (inputs.sum(axis=1) > 0).astype(np.int64)
    return Split(pa.table({f"x{place}": inputs[:, place] for place in range(3)}), labels)


@dataclass(frozen=True)
class Source:
    names: tuple[str, ...] = ("a", "b", "c")

    def load(self) -> TaskSet:
        generator = np.random.default_rng(0)
        return TaskSet(
            tuple(
                Task(
                    name=name,
                    kind="classification",
                    inputs="table",
                    labels=("0", "1"),
                    metric="accuracy",
                    source=name,
                    splits={split: rows(generator, 20) for split in ("train", "dev", "test")},
                )
                for name in self.names
            )
        )


def test_all_tasks_get_the_same_answer_for_the_same_row() -> None:
    options = Perceptron(hidden=(5,), one_head=True)
    tasks = options.encoding.encode(Source().load())
    model = options.build(tasks)
    batch = torch.randn(4, 3)
    torch.testing.assert_close(model(batch, 0), model(batch, 2))
    assert model(batch, 0).shape == (4, 2)
    # 3 · 5 + 5 and 5 · 2 + 2, however many tasks there are.
    assert sum(parameter.numel() for parameter in model.parameters()) == 32


def test_tasks_with_other_classes_are_refused() -> None:
    first, *_ = Source().load()
    other = Task(
        name="other",
        kind="classification",
        inputs="table",
        labels=("x", "y", "z"),
        metric="accuracy",
        source="other",
        splits=first.splits,
    )
    options = Perceptron(one_head=True)
    with pytest.raises(InputError, match=r"the same classes\. Found x, y, z in `other`"):
        options.build(TableEncoding().encode(TaskSet((first, other))))
    with pytest.raises(OptionError, match="Use `dropout`"):
        Perceptron(one_head=True, head_dropout=0.5)


def test_a_perceptron_reads_what_its_encoding_gives() -> None:
    plain = Perceptron(reads=TableEncoding(standardize=False))
    tasks = Source().load()
    found = plain.encoding.encode(tasks)["a"].splits["train"].inputs.batch(torch.arange(1))
    expected = [
        float(tasks["a"].splits["train"].inputs[f"x{place}"][0].as_py()) for place in range(3)
    ]
    assert found[0].tolist() == pytest.approx(expected)
