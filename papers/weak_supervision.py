r"""Weak supervision: which labelling functions to learn from, without a true label to train on.

    Li, Nguyen and Zhang, "Identification of Negative Transfers in Multitask Learning Using
    Surrogate Models", TMLR 2023, "Multitask weak supervision" and the last figure.

As the authors' public code runs it: functions alone are sources, all of them answer by one output layer,
an encoder is fine-tuned on their votes, the best of five evaluations on dev is kept, subsets have three
functions, and there are 200 of them with several runs each. What differs: the encoder is tuned by
adapters, runs have a number of batches and not of passes, rows of several functions meet in a batch
(in proportion to their votes, where a batch of theirs is one function's), and the seeds are kept.

The paper's γ is chosen by the task's own metric on dev, among prefixes of many lengths up to all
sources. The order of the sources is that of a linear surrogate of the dev metric (`selected`) and of the
dev loss (`selected_by_loss`), from the same runs. Its anchor, f(∅), is what the shares of classes among
dev rows would give as an answer to everything: without sources nothing is trained.

The paper's gain is "up to 3.6 % accuracy" over baselines of weak supervision; it stands beside
`selected_minus_best`, ours minus the best of the majority vote, the label model and all sources, each
trained with the same model and as long. `truth`, the true labels of all train rows, is the end of
what labels can give. `vote_direct` and `label_model_direct` are the votes on the test rows themselves.
Scores are in hundredths: accuracy, or for sms F1. `correct_labels` and `incorrect_labels` count the
votes of a source that agree with the truth and that do not, in the mean over the sources selected and
over those left out, and `source_accuracy` is the share of the former: the paper's last figure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from papers.label_model import ABSTAIN, fit_label_model, majority_vote
from papers.rows import PaperRow, row, single
from papers.runner import Desk, Device, Flag
from papers.transfer_studies import best_of, scores, spread_prefixes
from papers.weak_data import (
    LABEL_MODEL,
    TRUTH,
    VOTE,
    Abstains,
    WeakRows,
    WeakSource,
    class_balance,
    name_of,
    read_weak_rows,
    voting,
)
from taskmix.engine import Executor, Optimization, Run, finish
from taskmix.errors import OptionError
from taskmix.models import Transformer
from taskmix.numerics import paired_interval
from taskmix.records import Study
from taskmix.tasks import Task, evaluate_outputs
from taskmix.transfer import (
    LinearSurrogate,
    fit_linear_surrogate,
    fixed_size_subsets,
    gather_outcomes,
)

PAPER_GAIN = 3.6  # hundredths of accuracy, "up to"
BASELINES = ("vote", "label_model", "all_sources")
EVALUATIONS = 5  # of a run, of which the best on dev is kept: as many as the authors have passes
OUTCOMES = {"selected": "metric", "selected_by_loss": "loss"}  # what each choice's surrogate is of
TARGET = "target"


@dataclass(frozen=True, kw_only=True)
class WeakOptions:
    """The setting: adapters of a pretrained encoder."""

    QUICK: ClassVar[dict[str, Any]] = {"steps": 30, "subset_steps": 10, "runs": 1, "seeds": 2}
    data: Annotated[Path, Flag("The folder of WRENCH: youtube/, sms/, ...", is_argument=True)]
    encoder: Annotated[str, Flag("A Hugging Face encoder's path or name.")]
    set: Annotated[str, Flag("One of its sets.")] = "youtube"
    abstains: Annotated[Abstains, Flag("Rows without a vote of a one-class function.")] = "left out"
    size: Annotated[int, Flag("Functions in a subset.")] = 3
    subsets: Annotated[int, Flag("To learn from.")] = 200
    runs: Annotated[int, Flag("Of each subset.", "repeats")] = 3
    subset_steps: Annotated[int, Flag("Batches in a run of a subset.")] = 100
    steps: Annotated[int, Flag("Batches in a run of a method, and of a prefix.")] = 300
    batch_size: Annotated[int, Flag()] = 32
    learning_rate: Annotated[float, Flag()] = 5e-4
    max_length: Annotated[int, Flag("Pieces of a text.")] = 48
    seeds: Annotated[int, Flag("Of the methods and of the prefixes.")] = 5
    seed: Annotated[int, Flag("Random seed.")] = 0
    device: Device = "cpu"

    def __post_init__(self) -> None:
        if min(self.size, self.subsets, self.runs) < 1 or self.seeds < 2:
            raise OptionError(
                "`size`, `subsets` and `runs` should be 1 or more, and `seeds` 2 or more. Found "
                f"{self.size}, {self.subsets}, {self.runs} and {self.seeds}."
            )

    @property
    def folder(self) -> Path:
        """Of the set."""
        return self.data / self.set

    def trained(self, task: str, source: WeakSource, *, seed: int, steps: int) -> Run:
        """A run on one task of a source."""
        network = Transformer(path=self.encoder, max_length=self.max_length, tune="adapters")
        return Run(
            label=task if task in (VOTE, LABEL_MODEL, TRUTH) else "functions",
            source=source,
            architecture=network,
            tasks=(task,),
            optimization=Optimization(learning_rate=self.learning_rate),
            steps=steps,
            batch_size=self.batch_size,
            evaluate_every=max(steps // EVALUATIONS, 1),
            precision="bfloat16" if self.device.startswith("cuda") else "float32",
            device=self.device,
            seed=seed,
        )

    def source(self, choices: Sequence[tuple[int, ...]]) -> WeakSource:
        return WeakSource(
            path=str(self.folder), choices=tuple(choices), abstains=self.abstains, seed=self.seed
        )


def run(options: WeakOptions, desk: Desk) -> list[PaperRow]:
    """Which labelling functions to learn from, without true labels.

    Stop it and run it again: finished runs are not repeated.

    Example: python -m papers weak-supervision wrench/ --set youtube --encoder minilm/
    """
    with desk.working(lean=True) as (study, executor):
        return reproduce_weak_supervision(options, study, executor)


def reproduce_weak_supervision(
    options: WeakOptions, study: Study, executor: Executor
) -> list[PaperRow]:
    """One set as rows; runs that the study holds already cost nothing."""
    raw = read_weak_rows(options.folder)
    surrogates = fit_surrogates(options, raw, study, executor)
    name = f"weak_supervision/{options.set}"
    if options.abstains != "left out":
        name += "/other_class"
    target = options.source(()).load()[TRUTH]
    rows, chosen = weak_score_rows(name, options, surrogates, study, executor)
    rows += direct_rows(name, raw, target.metric, target.labels)
    rows += source_rows(name, raw["train"], surrogates["selected"], chosen["selected"])
    for method, sources in chosen.items():
        rows.append(row(f"{name}/sources_{method}", None, [len(sources)]))
    return rows


def fit_surrogates(
    options: WeakOptions, raw: dict[str, WeakRows], study: Study, executor: Executor
) -> dict[str, LinearSurrogate]:
    """By method, from the same runs on subsets of functions."""
    functions = voting(raw)
    drawn = covering_subsets(
        len(functions),
        min(options.size, len(functions) - 1),
        options.subsets,
        generator=np.random.default_rng(options.seed),
    )
    subsets = [tuple(functions[place] for place in np.flatnonzero(line)) for line in drawn]
    source = options.source(subsets)
    runs = [
        options.trained(
            name_of(subset),
            source,
            seed=options.seed + number * options.runs + again,
            steps=options.subset_steps,
        )
        for number, subset in enumerate(subsets)
        for again in range(options.runs)
    ]
    finish(executor, runs, study)
    task = source.load()[TRUTH]
    nothing = np.zeros((1, len(functions)), dtype=np.bool_)
    trained = np.concatenate([np.repeat(drawn, options.runs, axis=0), nothing])
    found = {}
    for method, outcome in OUTCOMES.items():
        anchor = constant_answer(task, class_balance(raw, len(task.labels)), outcome)
        table = gather_outcomes(
            trained,
            [*scores(runs, study, "dev", outcome), anchor],
            target=TARGET,
            sources=[f"function {number}" for number in functions],
            higher_is_better=outcome == "metric",
        )
        found[method] = fit_linear_surrogate(table)
    return found


def covering_subsets(
    sources: int, size: int, count: int, *, generator: np.random.Generator
) -> NDArray[np.bool_]:
    """[subset, source], `count` of them and a few more for the sources that are in none."""
    drawn = fixed_size_subsets(sources, size, count, generator=generator)
    left = generator.permutation(np.flatnonzero(~drawn.any(axis=0)))
    more = []
    for first in range(0, len(left), size):
        line = np.zeros(sources, dtype=np.bool_)
        line[left[first : first + size]] = True
        others = generator.permutation(np.flatnonzero(~line))
        line[others[: size - int(line.sum())]] = True
        more.append(line)
    return np.concatenate([drawn, np.array(more)]) if more else drawn


def constant_answer(task: Task, balance: NDArray[np.float64], outcome: str) -> float:
    """The dev outcome of the classes' shares, given as the answer to every row."""
    dev = task.splits["dev"]
    if outcome == "loss":
        return float(-np.log(balance)[dev.targets].mean())
    outputs = np.tile(np.log(balance), (len(dev.targets), 1))
    return evaluate_outputs(task.metric, outputs=outputs, targets=dev.targets, labels=task.labels)


def weak_score_rows(
    name: str,
    options: WeakOptions,
    surrogates: dict[str, LinearSurrogate],
    study: Study,
    executor: Executor,
) -> tuple[list[PaperRow], dict[str, tuple[str, ...]]]:
    """The test score after training with each choice of sources, ours minus theirs, and our choices."""
    tried: dict[str, list[tuple[int, ...]]] = {}
    for method, surrogate in surrogates.items():
        numbers = np.array([int(source.split()[-1]) for source in surrogate.sources])
        prefixes = spread_prefixes(surrogate)
        tried[method] = [tuple(map(int, numbers[line])) for line in prefixes if line.any()]
    every = tuple(int(source.split()[-1]) for source in surrogates["selected"].sources)
    source = options.source(
        list(dict.fromkeys([every, *(choice for some in tried.values() for choice in some)]))
    )

    def runs(task: str) -> list[Run]:
        return [
            options.trained(task, source, seed=options.seed + seed, steps=options.steps)
            for seed in range(options.seeds)
        ]

    named = {
        "vote": VOTE,
        "label_model": LABEL_MODEL,
        "truth": TRUTH,
        "all_sources": name_of(every),
    }
    finish(
        executor,
        [run for task in (*named.values(), *map(name_of, source.choices)) for run in runs(task)],
        study,
    )
    chosen: dict[str, tuple[str, ...]] = {}
    for method, choices in tried.items():
        measured = [scores(runs(name_of(each)), study, "dev", "metric") for each in choices]
        best = choices[best_of(np.array(measured), sizes=[len(each) for each in choices])]
        named[method] = name_of(best)
        chosen[method] = tuple(f"function {number}" for number in best)
    table = {
        method: 100.0 * scores(runs(task), study, "test", "metric")
        for method, task in named.items()
    }
    rows = [row(f"{name}/{method}", None, each) for method, each in table.items()]
    best_name = max(BASELINES, key=lambda method: float(table[method].mean()))
    for ours in OUTCOMES:
        for method in ("best", *BASELINES):
            other = table[best_name if method == "best" else method]
            paper = PAPER_GAIN if (ours, method) == ("selected", "best") else None
            gain = paired_interval(table[ours], other)
            rows.append(row(f"{name}/{ours}_minus_{method}", paper, gain))
    return rows, chosen


def direct_rows(
    name: str, rows: dict[str, WeakRows], metric: str, labels: tuple[str, ...]
) -> list[PaperRow]:
    """The scores of votes and of the label model on the test rows themselves."""
    classes, test = len(labels), rows["test"]
    model = fit_label_model(rows["train"].votes, classes, balance=class_balance(rows, classes))
    found = {
        "vote_direct": majority_vote(test.votes, classes),
        "label_model_direct": model.predict(test.votes),
    }
    result = []
    for method, shares in found.items():
        # Ties, and rows on which nobody votes, go to the most usual of the classes in question.
        outputs = np.log(shares + 1e-6 * class_balance(rows, classes))
        score = evaluate_outputs(metric, outputs=outputs, targets=test.labels, labels=labels)
        result.append(row(f"{name}/{method}", None, single(100.0 * score)))
    return result


def source_rows(
    name: str, train: WeakRows, surrogate: Any, selected: Sequence[str]
) -> list[PaperRow]:
    """How good the votes of selected and of left-out sources are, which no method was told."""
    numbers = [int(source.split()[-1]) for source in surrogate.sources]
    votes = train.votes[:, numbers]
    right = (votes == train.labels[:, None]).sum(axis=0)
    wrong = (votes != ABSTAIN).sum(axis=0) - right
    kept = np.array([source in selected for source in surrogate.sources])
    figures = {
        "source_accuracy": right / (right + wrong),
        "correct_labels": right.astype(np.float64),
        "incorrect_labels": wrong.astype(np.float64),
    }
    rows = []
    for figure, values in figures.items():
        for side, chosen in (("selected", kept), ("left_out", ~kept)):
            if chosen.any():
                rows.append(row(f"{name}/{figure}/{side}", None, values[chosen]))
    related = float(spearmanr(surrogate.gains, figures["source_accuracy"]).statistic)
    rows.append(row(f"{name}/gain_against_accuracy", None, single(related, len(numbers))))
    return rows
