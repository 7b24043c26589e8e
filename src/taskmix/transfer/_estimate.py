"""A study of transfer without training its subsets: outcomes estimated from a model's gradients.

One model (or a few, under several seeds) is trained on all tasks for a part of the steps, and every
subset is estimated from its gradients (`_estimating`). What comes out has the form of trained
outcomes and is learned from in the same way. Intervals then tell of the fit and of the seeds of
those models; how far an estimate is from what training would have given they do not know, and
`compare_estimates` measures.

Models that differ in their seed alone should say the same. Where the gains of a target's sources
from two of them are ordered differently, the gradients cannot tell, and the target's verdicts say so.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from taskmix.engine import Auto, Executor, Run, model_of_run
from taskmix.errors import RunError
from taskmix.records import Study
from taskmix.transfer._estimating import GradientOptions, LinearTask, linearise, solve_move
from taskmix.transfer._measuring import TransferStudy, Trial, TrialOutcomes, in_stages
from taskmix.transfer._surrogates import SubsetOutcomes, fit_linear_surrogate

Models = Sequence[Sequence[LinearTask]]


@dataclass(frozen=True, kw_only=True)
class EstimatedTarget:
    """How well the estimates of one target agree with training.

    >>> row = EstimatedTarget(
    ...     target="a", subsets=120, spearman=0.58, pearson=0.58, spearman_of_surrogate=0.88,
    ...     spearman_of_gains=0.71, same_sign=0.64)
    >>> f"{row.same_sign:.0%} of the gains have the right sign"
    '64% of the gains have the right sign'
    """

    target: str
    subsets: int  # runs that were both estimated and trained
    spearman: float  # of both outcomes; NaN where they are too few
    pearson: float
    spearman_of_surrogate: float  # of trained subsets with what a surrogate of the others predicts
    spearman_of_gains: float
    same_sign: float  # share of the gains


@dataclass(frozen=True, kw_only=True)
class EstimateComparison:
    """Estimates against training: agreement by target, and what both cost.

    >>> comparison = EstimateComparison(
    ...     targets=(), seconds_estimated=9.0, seconds_trained=126.0, ratio=14.0)
    >>> comparison.seconds_trained / comparison.seconds_estimated == comparison.ratio
    True
    """

    targets: tuple[EstimatedTarget, ...]
    seconds_estimated: float
    seconds_trained: float
    ratio: float


def estimate_by_gradients(
    description: TransferStudy,
    study: Study,
    *,
    executor: Executor | None = None,
    options: GradientOptions | None = None,
) -> TrialOutcomes:
    """Outcomes of the study's trials, estimated; only models on all tasks are trained.

    >>> from taskmix.engine import DigitsSource, Fleet, Run
    >>> from taskmix.models import Perceptron
    >>> from taskmix.records import Study
    >>> model = Perceptron(hidden=(4,))
    >>> run = Run(label="demo", source=DigitsSource(), architecture=model, steps=1, seed=0)
    >>> design = SubsetDesign(count=1, alone=1, held_out=3)
    >>> study = TransferStudy(template=run, targets=("half",), design=design)
    >>> how = {"executor": Fleet(workers=1), "options": GradientOptions(rows=10, models=1)}
    >>> found = estimate_by_gradients(study, Study("study"), **how)
    >>> len(found.trials), len(Study("study").summaries())  # five outcomes, one run
    (5, 1)
    """
    options = options or GradientOptions()
    steps = max(round(options.share * description.template.steps), 1)
    shorter = replace(description, template=replace(description.template, steps=steps))
    first = description.template.seed
    runs = [shorter.run(description.tasks, seed) for seed in range(first, first + options.models)]
    results = (executor or Auto()).run(runs, study)
    for run, result in zip(runs, results, strict=True):
        if not result.is_done:
            raise RunError(
                f"The model on all tasks with seed {run.seed} should have been trained. Found it "
                f"{result.outcome}. {result.error or 'Run the same command again to continue.'}"
            )
    begin = time.perf_counter()
    models = [linearise(*model_of_run(run, study), options, seed=run.seed) for run in runs]
    measured = in_stages(description, partial(_estimated, description, models, options))
    agreement = _agreement(measured, models, options) if len(models) > 1 else None
    seconds = _step_seconds(runs, study) + time.perf_counter() - begin
    return replace(measured, estimate="gradients", estimate_seconds=seconds, agreement=agreement)


def _agreement(
    measured: TrialOutcomes, models: Models, options: GradientOptions
) -> dict[str, float]:
    """Of every target: the mean rank correlation of its gains over the pairs of models."""
    from scipy.stats import spearmanr

    apart = [_estimated(measured.description, [one], options, measured.trials) for one in models]
    found = {}
    for target in measured.description.targets:
        gains = [fit_linear_surrogate(each.table(target)).gains for each in apart]
        alike = [one.std() == 0 for one in gains]
        pairs = [] if any(alike) else list(combinations(gains, 2))
        ranks = [float(spearmanr(*pair).statistic) for pair in pairs]
        found[target] = float(np.mean(ranks)) if ranks else 0.0  # all sources alike: no order
    return found


def _estimated(
    description: TransferStudy, models: Models, options: GradientOptions, trials: Sequence[Trial]
) -> TrialOutcomes:
    known: dict[tuple[int, tuple[str, ...]], NDArray[np.float64]] = {}
    rows = []
    for trial in trials:
        # Seeds follow each other, so every model estimates as many subsets as any other.
        number = trial.run.seed % len(models)
        key = (number, trial.tasks)
        if key not in known:
            known[key] = _outcomes(description, models[number], trial.tasks, options.ridge)
        rows.append(known[key])
    return TrialOutcomes(
        description=description,
        trials=tuple(trials),
        outcomes=np.array(rows),
        errors=(None,) * len(trials),
    )


def _outcomes(
    description: TransferStudy, model: Sequence[LinearTask], members: Sequence[str], ridge: float
) -> NDArray[np.float64]:
    names = description.tasks
    places = [names.index(name) for name in members]
    move = solve_move(model, places, ridge)
    outcomes = np.full(len(names), np.nan)
    for place in places:
        outcomes[place] = model[place].outcome(move, description.outcome)
    return outcomes


def _step_seconds(runs: Sequence[Run], study: Study) -> float:
    """What steps took; models that were trained together have a share each."""
    total = 0.0
    for run in runs:
        total += pc.sum(study.run(run.specification()).steps(["seconds"])["seconds"]).as_py() or 0.0
    return total


def _left_out(table: SubsetOutcomes) -> float:
    """How well a linear surrogate of trained subsets predicts each of them from the others.

    What seeds do to single runs is in the outcomes themselves, so no estimate can be asked for
    much more.
    """
    from scipy.stats import spearmanr

    root = np.sqrt(table.weights)[:, None]
    design, wanted = root * table.subsets, root[:, 0] * (table.losses - table.anchor)
    inverse = np.linalg.pinv(design)
    leverage = np.einsum("nk,kn->n", design, inverse)
    free = leverage < 1 - 1e-8
    if free.sum() < 3:
        return math.nan
    away = (wanted - design @ (inverse @ wanted))[free] / (1 - leverage[free])
    predicted = (wanted[free] - away) / root[free, 0]
    return float(spearmanr(table.losses[free], predicted).statistic)


def compare_estimates(
    estimated: TrialOutcomes, trained: TrialOutcomes, study: Study
) -> EstimateComparison:
    """How well estimated outcomes agree with trained ones, and what both cost in seconds."""
    from scipy.stats import pearsonr, spearmanr

    description = trained.description
    values = {
        (trial.tasks, trial.run.seed): row
        for trial, row in zip(estimated.trials, estimated.outcomes, strict=True)
    }
    targets = []
    for target in description.targets:
        column = description.tasks.index(target)
        pairs = [
            (values[key][column], row[column])
            for trial, row, wanted in zip(
                trained.trials,
                trained.outcomes,
                trained.rows(target, ("design", "held out")),
                strict=True,
            )
            if wanted and (key := (trial.tasks, trial.run.seed)) in values
        ]
        both = np.array([pair for pair in pairs if np.isfinite(pair).all()]).reshape(-1, 2)
        one, other = (
            fit_linear_surrogate(measured.table(target)).gains for measured in (estimated, trained)
        )
        enough = len(both) > 2 and bool((both.std(axis=0) > 0).all())
        targets.append(
            EstimatedTarget(
                target=target,
                subsets=len(both),
                spearman=float(spearmanr(*both.T).statistic) if enough else math.nan,
                pearson=float(pearsonr(*both.T).statistic) if enough else math.nan,
                spearman_of_surrogate=_left_out(trained.table(target)),
                spearman_of_gains=float(spearmanr(one, other).statistic),
                same_sign=float((np.sign(one) == np.sign(other)).mean()),
            )
        )
    runs = {(trial.tasks, trial.run.seed): trial.run for trial in trained.trials}
    seconds = _step_seconds(list(runs.values()), study)
    return EstimateComparison(
        targets=tuple(targets),
        seconds_estimated=estimated.estimate_seconds,
        seconds_trained=seconds,
        ratio=seconds / max(estimated.estimate_seconds, 1e-9),
    )
