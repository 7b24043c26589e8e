r"""Weak supervision: which labelling functions to learn from beside a few true labels.

    Li, Nguyen and Zhang, "Identification of Negative Transfers in Multitask Learning Using
    Surrogate Models", TMLR 2023, "Multitask weak supervision" and the last figure: every noisy
    source is a source task, and all tasks share one output layer, as in the authors' own runs.

The outcome (margin), the size of subsets (half of the sources), the five labels a class and the
prefixes of all sizes were chosen on youtube with its test scores in sight (docs/papers.md has all
five settings), so that set is no test of them.

The paper's gain is "up to 3.6 % accuracy" over baselines of weak supervision; it stands beside
`selected_minus_best`, ours minus the best of the majority vote, the label model and all sources. All
of these are trained together with the same few true labels (five of each class), so `few`, those
labels alone, is what nobody needs a labelling function for, and `truth`, the true
labels of all train rows, is the end of what labels can give. `vote_direct` and `label_model_direct`
are the votes on the test rows themselves, without a model of the text. Scores are in hundredths:
accuracy, or for sms F1, as usual for these sets. `correct_labels` and `incorrect_labels` count the
votes of a source that agree with the truth and that do not, in the mean over the sources selected
and over those left out, and `source_accuracy` is the share of the former: the paper's last figure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from taskmix.engine import Executor, finish
from taskmix.models import Perceptron
from taskmix.numerics import Interval, mean_interval, paired_interval
from taskmix.papers._shared import PaperRow, row
from taskmix.papers._transfer._options import TransferOptions
from taskmix.papers._transfer._selected import (
    cost_rows,
    f1_rows,
    held_out_table,
    scores_on_test,
    select_sources,
    spread_prefixes,
)
from taskmix.papers._transfer._sign_test import sign_test
from taskmix.papers._transfer._weak_data import (
    LABEL_MODEL,
    TARGET,
    TRUTH,
    VOTE,
    WeakRows,
    WeakSource,
    class_balance,
    read_weak_rows,
)
from taskmix.records import Study
from taskmix.tasks import FeatureEncoding, TaskSet, evaluate_outputs
from taskmix.transfer import ABSTAIN, TransferStudy, fit_label_model, majority_vote, measure_trials

PAPER_GAIN = 3.6  # hundredths of accuracy, "up to"
LARGEST_SUBSET = 20  # sources of a subset where half of them are more
BASELINES = ("vote", "label_model", "all_sources")


@dataclass(frozen=True, kw_only=True)
class WeakOptions(TransferOptions):
    """The setting: a perceptron on the vectors of a frozen encoder.

    >>> from pathlib import Path
    >>> options = WeakOptions(data=Path("wrench/youtube"), encoder="minilm", labelled=3)
    >>> options.source.labelled, options.encoding.max_length
    (3, 64)
    """

    data: Path  # the folder of the set
    encoder: str
    labelled: int = 5  # rows of each class with true labels to train on
    max_length: int = 64
    steps: int = 200
    size: int | None = None  # sources of a subset; half of them, at most 20
    subsets: int | None = None  # four a source
    held_out: int = 40
    alone: int = 20
    seeds: int = 10
    cache: Path | None = None

    @property
    def encoding(self) -> FeatureEncoding:
        return FeatureEncoding(path=self.encoder, max_length=self.max_length, pooling="mean")

    @property
    def source(self) -> WeakSource:
        return WeakSource(path=str(self.data), labelled=self.labelled, cache=self.cache)

    def study(self, tasks: TaskSet, *, held_out: bool) -> TransferStudy:
        """The target with functions: to be fitted, or to be tried on."""
        names = tuple(name for name in tasks.names if name not in (VOTE, LABEL_MODEL, TRUTH))
        network = Perceptron(hidden=self.hidden, one_head=True, reads=self.encoding)
        size = self.size or min((len(names) - 1) // 2, LARGEST_SUBSET)
        return TransferStudy(
            template=replace(self.run("weak supervision", self.source, network), tasks=names),
            targets=(TARGET,),
            outcome="margin",
            design=self.design(size, self.subsets, held_out=held_out),
        )


def reproduce_weak_supervision(
    options: WeakOptions,
    study: Study,
    executor: Executor,
    *,
    on_texts: Callable[[int, int], None] | None = None,  # texts encoded, of how many
) -> list[PaperRow]:
    """One set as rows; runs that the study holds already cost nothing.

    `taskmix reproduce weak-supervision` runs it.
    """
    tasks = options.source.load()
    options.encoding.encode(tasks, cache=options.cache, on_progress=on_texts)
    description, trial = (options.study(tasks, held_out=held) for held in (False, True))
    count = options.subsets or description.design.usual_count(len(description.tasks) - 1)
    fitted = measure_trials(
        description, [*description.alone(), *description.subsets(count)], study, executor
    )
    surrogates, chosen = select_sources(fitted, study, executor, prefixes=spread_prefixes)
    tried = measure_trials(trial, trial.subsets(options.held_out), study, executor)
    name = f"weak_supervision/{options.data.name}"
    test = sign_test(
        surrogates[TARGET],
        held_out_table(fitted, tried, TARGET),
        generator=np.random.default_rng(options.seed),
    )
    rows = weak_score_rows(name, options, description, chosen[TARGET], study, executor)
    raw = read_weak_rows(options.data)
    rows += direct_rows(name, raw, tasks[TARGET].metric, tasks[TARGET].labels)
    rows += source_rows(name, raw["train"], surrogates[TARGET], chosen[TARGET])
    rows += f1_rows(f"f1_transfer/{name}", [test])
    return [*rows, *cost_rows(name, [fitted, tried], chosen)]


def weak_score_rows(
    name: str,
    options: WeakOptions,
    description: TransferStudy,
    selected: Sequence[str],
    study: Study,
    executor: Executor,
) -> list[PaperRow]:
    """The target's test score after training with each choice of sources, and ours minus theirs."""
    company = {
        "few": (),
        "vote": (VOTE,),
        "label_model": (LABEL_MODEL,),
        "all_sources": description.tasks[1:],
        "truth": (TRUTH,),
        "selected": tuple(task for task in description.tasks if task in selected),
    }
    runs = {
        method: [
            replace(
                description.run([TARGET, *sources], options.seed + seed),
                label=method.replace("_", " "),
            )
            for seed in range(options.seeds)
        ]
        for method, sources in company.items()
    }
    finish(executor, [run for some in runs.values() for run in some], study)
    scores = {method: scores_on_test(some, TARGET, study) for method, some in runs.items()}
    rows = [row(f"{name}/{method}", None, mean_interval(each)) for method, each in scores.items()]
    best = max(BASELINES, key=lambda method: float(scores[method].mean()))
    for method in ("best", *(other for other in scores if other != "selected")):
        other = scores[best if method == "best" else method]
        paper = PAPER_GAIN if method == "best" else None
        gain = paired_interval(scores["selected"], other)
        rows.append(row(f"{name}/selected_minus_{method}", paper, gain))
    return rows


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
        result.append(row(f"{name}/{method}", None, Interval(100.0 * score, np.nan, np.nan, 1)))
    return result


def source_rows(
    name: str, train: WeakRows, surrogate: Any, selected: Sequence[str]
) -> list[PaperRow]:
    """How good the votes of selected and of left-out sources are, which no method was told."""
    from scipy.stats import spearmanr

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
                rows.append(row(f"{name}/{figure}/{side}", None, mean_interval(values[chosen])))
    related = float(spearmanr(surrogate.gains, figures["source_accuracy"]).statistic)
    rows.append(
        row(f"{name}/gain_against_accuracy", None, Interval(related, np.nan, np.nan, len(numbers)))
    )
    return rows
