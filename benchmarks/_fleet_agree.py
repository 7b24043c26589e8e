"""Whether models trained as a fleet score what models trained one by one do, over many seeds.

On the CPU a member draws the dropout of its solo run, so that every pair is to agree to the last bits.
On CUDA a fleet's dropout is drawn otherwise: there it is the mean over seeds that has to agree, to
within its standard error.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from _common import row
from adapters import make_model
from taskmix.engine import DigitsSource, Executor, Fleet, Here, Optimization, Run
from taskmix.models import (
    Architecture,
    CausalTransformer,
    Perceptron,
    TextConvolution,
    Transformer,
    WindowBiLSTM,
)
from taskmix.records import Study
from taskmix.tasks import Split, Task, TaskSet
from taskmix.weighting import Equal

SPLITS = {"train": 600, "dev": 200, "test": 1000}
ALIKE = 1e-4  # losses that differ in the last bits alone; a tie that such a bit breaks shows later
TAGGED_WORDS = 40
WORDS, LENGTH, NOISE = 400, 24, 0.1  # NOISE: the share of labels that nothing in the text tells


@dataclass(frozen=True)
class GeneratedTexts:
    """Texts of random words, some of which are commoner in a class; two tasks on texts of their own."""

    def load(self) -> TaskSet:
        return TaskSet((self._task("topic", 4, 0), self._task("tone", 2, 1)))

    def _task(self, name: str, classes: int, seed: int) -> Task:
        generator = np.random.default_rng(seed)
        usual = generator.dirichlet(np.full(WORDS, 0.3))
        own = generator.dirichlet(np.full(WORDS, 0.3), size=classes)
        splits = {}
        for split, count in SPLITS.items():
            labels = generator.integers(classes, size=count)
            texts = []
            for label in labels:
                size = generator.integers(LENGTH // 2, 3 * LENGTH // 2)
                numbers = generator.choice(WORDS, size=size, p=0.7 * usual + 0.3 * own[label])
                texts.append(" ".join(f"w{number}" for number in numbers))
            wrong = generator.random(count) < NOISE
            labels = np.where(wrong, generator.integers(classes, size=count), labels)
            splits[split] = Split(pa.table({"text": texts}), labels)
        return _labelled(name, "classification", "text", "accuracy", classes, splits)


@dataclass(frozen=True)
class GeneratedTags:
    """Sentences of random words; a tag depends on the word and, for some words, on the one before."""

    def load(self) -> TaskSet:
        return TaskSet((self._task("parts", 5, 0), self._task("marks", 3, 1)))

    def _task(self, name: str, classes: int, seed: int) -> Task:
        generator = np.random.default_rng(seed)
        tag_of = generator.integers(classes, size=TAGGED_WORDS)
        splits = {}
        for split, count in SPLITS.items():
            sentences, tags = [], []
            for _ in range(count // 8):
                words = generator.integers(TAGGED_WORDS, size=generator.integers(4, 12))
                found = np.where(words % 3 == 0, np.roll(tag_of[words], 1), tag_of[words])
                wrong = generator.random(len(words)) < NOISE
                # By letters: digits are all read as 0.
                sentences.append([chr(97 + n // 26) + chr(97 + n % 26) for n in words.tolist()])
                tags.append(np.where(wrong, generator.integers(classes, size=len(words)), found))
            splits[split] = Split(pa.table({"tokens": sentences}), np.concatenate(tags))
        return _labelled(name, "tagging", "tokens", "accuracy", classes, splits)


@dataclass(frozen=True)
class GeneratedPassages:
    """Two tasks of plain text, each of words of its own."""

    def load(self) -> TaskSet:
        return TaskSet((self._task("north", 0), self._task("south", 1)))

    def _task(self, name: str, seed: int) -> Task:
        generator = np.random.default_rng(seed)
        words = ["".join(generator.choice(list("abcdefgh"), size=4)) for _ in range(30)]
        splits = {}
        for split, count in SPLITS.items():
            texts = [" ".join(generator.choice(words, size=12)) for _ in range(count // 4)]
            splits[split] = Split(pa.table({"text": texts}), np.empty(0))
        return Task(
            name=name,
            kind="language",
            inputs="passage",
            labels=(),
            metric="bits_per_byte",
            source=name,
            splits=splits,
        )


def _labelled(
    name: str, kind: Any, inputs: Any, metric: str, classes: int, splits: dict[str, Split]
) -> Task:
    labels = tuple(f"{name} {number}" for number in range(classes))
    return Task(
        name=name,
        kind=kind,
        inputs=inputs,
        labels=labels,
        metric=metric,
        source=name,
        splits=splits,
    )


def _run(source: Any, architecture: Architecture, steps: int, rate: float = 2e-3) -> Run:
    return Run(
        label="agree",
        source=source,
        architecture=architecture,
        weighting=Equal(),
        optimization=Optimization(learning_rate=rate),
        steps=steps,
        evaluate_every=steps // 5,
        batch_size=32,
        seed=0,
    )


def perceptrons() -> Run:
    source = DigitsSource(tasks=("ten_digits", "parity", "half"))
    return _run(source, Perceptron(hidden=(64, 64), dropout=0.2, head_dropout=0.2), 300)


def convolutions() -> Run:
    architecture = TextConvolution(filters=32, dimension=32, min_count=1, head_dropout=0.5)
    return _run(GeneratedTexts(), architecture, 555)


def bilstms() -> Run:
    architecture = WindowBiLSTM(hidden=16, dimension=16, head_dropout=0.3)
    return _run(GeneratedTags(), architecture, 300, rate=2e-2)


def adapted() -> Run:
    """Adapters over a small base with random weights, in bfloat16 on a GPU."""
    from transformers import BertConfig

    config = BertConfig(
        vocab_size=512,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=128,
    )
    path = make_model(Path(tempfile.mkdtemp()), config)
    architecture = Transformer(path=path, max_length=48, tune="adapters", head_dropout=0.1)
    return replace(_run(GeneratedTexts(), architecture, 200), weighting=None)


def causal() -> Run:
    """Causal transformers from scratch, which have no dropout."""
    architecture = CausalTransformer(layers=2, width=32, attention_heads=1, context=32)
    return _run(GeneratedPassages(), architecture, 100)


# Every architecture that the fleet takes, each with dropout where it has any.
CASES: dict[str, Callable[[], Run]] = {
    "perceptrons": perceptrons,
    "text convolutions": convolutions,
    "window BiLSTMs": bilstms,
    "adapters": adapted,
    "causal transformers": causal,
}
HALVES = ("adapters", "causal transformers")  # that compute in bfloat16 on a GPU


def agree(device: str, seeds: int) -> list[dict[str, Any]]:
    """The rows of every architecture."""
    rows = []
    for name, make in CASES.items():
        rows += _compare(name, make(), device, seeds)
        mean = rows[-4]
        print(f"{mean['case']}: {mean['ours']:+.3f} ({mean['peer']:.3f})", file=sys.stderr)
    return rows


def _compare(name: str, run: Run, device: str, seeds: int) -> list[dict[str, Any]]:
    halves: Any = "bfloat16" if device != "cpu" and name in HALVES else "float32"
    runs = [replace(run, device=device, seed=seed, precision=halves) for seed in range(seeds)]
    here = Here(workers=1 if device == "cpu" else None)
    together, alone = _trained(runs, Fleet(workers=1)), _trained(runs, here)
    scores = together.scores.mean(axis=1), alone.scores.mean(axis=1)  # [seed]
    differences = scores[0] - scores[1]
    error = float(differences.std(ddof=1) / np.sqrt(seeds)) if seeds > 1 else 0.0
    what, peer = f"{seeds} {name}, {run.steps} steps", "one by one"
    mean = float(differences.mean())
    apart = np.abs(together.scores - alone.scores).max(axis=1)  # [seed]
    losses = np.abs(together.losses - alone.losses).max(axis=1)
    return [
        row(
            f"{what}: mean test score",
            float(scores[0].mean()),
            float(scores[1].mean()),
            peer,
            "points",
        ),
        row(f"{what}: minus {peer}", mean, error, "its standard error", "points"),
        row(f"{what}: largest of a test score", float(apart.max()), None, peer, "points"),
        row(f"{what}: largest of a step's loss", float(losses.max()), None, peer, "nats"),
        row(
            f"{what}: every loss within {ALIKE}",
            int((losses < ALIKE).sum()),
            seeds,
            "of",
            "members",
        ),
    ]


@dataclass(frozen=True)
class _Trained:
    scores: np.ndarray[Any, np.dtype[np.float64]]  # [seed, task], on the test split, in points
    losses: np.ndarray[Any, np.dtype[np.float64]]  # [seed, step * task]


def _trained(runs: Sequence[Run], executor: Executor) -> _Trained:
    with tempfile.TemporaryDirectory() as folder:
        study = Study(folder)
        scores, losses = [], []
        for run, result in zip(runs, executor.run(runs, study), strict=True):
            assert result.outcome == "finished", result.error
            assert result.summary is not None
            found = [each for each in result.summary.scores if each.split == "test"]
            scores.append([100 * each.value for each in found if each.metric != "loss"])
            losses.append(study.run(run.specification()).steps(["loss"])["loss"].to_numpy())
        return _Trained(np.array(scores), np.array(losses))
