r"""The linear setting of the transfer paper: related and unrelated sources, told by a threshold.

    Li, Nguyen and Zhang, "Identification of Negative Transfers in Multitask Learning Using
    Surrogate Models", TMLR 2023, "Analysis of task modeling", Theorems 1 and 2.

Task i is $y = x^\top \theta^{(i)} + \epsilon$. A source is related if $\theta^{(i)} = \theta^{(t)}
+ z$ with z of variance a² in every coordinate (`near`), unrelated if the variance is b² (`far`). A
multitask model of S is least squares on the rows of the target and of S together; f(t; S) is its
mean squared error on validation rows of the target. The paper gives no sizes: ours are options, of
which the target has few rows, so that related sources are of use to it.

**Theorem 2.** A pilot of `pilot` subsets gives the noise σ about the linear surrogate. To tell the
two kinds apart, `margins` standard errors should fit on either side of the middle between their
mean coefficients, which differ by $p (b^2 - a^2) w^2$ with w the share of one source in the rows, p
the dimension. `subsets_for_error` then gives the n; the pilot's subsets are not used again.
`separated` is the share of seeds in which some γ tells all sources apart. F1 is that of the related
sources among the selected: by the γ midway between two groups of coefficients, by the paper's least
predicted loss (γ = 0 relative to the target alone), and by the best γ there is. `plain_formula` has
the n of the formula for many subsets, which leaves out the k that the coefficients take. `loss` is
the validation loss of the target trained with none, all, the related and the selected sources;
`prefixes` is the best of eight measured prefixes, on the same validation rows.

**Theorem 1.** The distance of the coefficients of n subsets from those of very many, θ*, against n:
the slope of its logarithm should be −1/2. `promised` is that distance over what the precision
formula says, $\sigma \sqrt{(k-1)/a_n}$ with $a_n = (n-k) q (1-q) k/(k-1)$.

Least squares on the rows of several tasks together needs only the sums of their XᵀX and Xᵀy, so a
subset costs one small system, and thousands are solved at once (`LinearTasks`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from papers.rows import PaperRow, row
from papers.runner import Desk, Flag
from papers.transfer_studies import f1
from taskmix.errors import OptionError
from taskmix.transfer import (
    LinearSurrogate,
    balanced_subsets,
    best_prefixes,
    choose_prefix,
    contrast_error,
    fit_linear_surrogate,
    fixed_size_subsets,
    gather_outcomes,
    select_below,
    select_two_groups,
    subsets_for_error,
)

CHUNK = 2048  # subsets solved at once


@dataclass(frozen=True, kw_only=True)
class LinearTasks:
    """All tasks of one seed, as the sums that least squares needs; the target is the last."""

    grams: NDArray[np.float64]  # [task, dimension, dimension], XᵀX
    moments: NDArray[np.float64]  # [task, dimension], Xᵀy
    gram: NDArray[np.float64]  # [dimension, dimension], of a validation row, on average
    moment: NDArray[np.float64]  # [dimension]
    square: float  # the mean of y² over validation rows

    def losses(self, subsets: NDArray[np.bool_]) -> NDArray[np.float64]:
        """f(t; S) for every row of `subsets` [subset, source], which may be empty."""
        return np.concatenate(
            [
                self._losses(subsets[begin : begin + CHUNK])
                for begin in range(0, len(subsets), CHUNK)
            ]
        )

    def _losses(self, subsets: NDArray[np.bool_]) -> NDArray[np.float64]:
        members = np.column_stack([subsets, np.ones(len(subsets))])
        grams = np.tensordot(members, self.grams, axes=1)
        solved = np.linalg.solve(grams, (members @ self.moments)[..., None])[..., 0]
        fitted = ((solved @ self.gram) * solved).sum(axis=1)
        return np.asarray(fitted - 2 * solved @ self.moment + self.square)


def sample_tasks(
    spread: NDArray[np.float64],  # [source], the deviation of z in each coordinate
    *,
    dimension: int,
    rows: int,
    target_rows: int,
    validation_rows: int,
    noise: float,
    generator: np.random.Generator,
) -> LinearTasks:
    """Sources θ + z about the θ of a target, and the target's validation rows."""
    p = dimension
    centre = generator.normal(size=p)
    spread = np.append(spread, 0.0)
    vectors = centre + spread[:, None] * generator.normal(size=(len(spread), p))
    grams, moments = np.empty((len(spread), p, p)), np.empty((len(spread), p))
    for task, vector in enumerate(vectors):
        count = rows if task < len(spread) - 1 else target_rows
        inputs = generator.normal(size=(count, p))
        grams[task] = inputs.T @ inputs
        moments[task] = inputs.T @ (inputs @ vector + noise * generator.normal(size=count))
    inputs = generator.normal(size=(validation_rows, p))
    outputs = inputs @ centre + noise * generator.normal(size=len(inputs))
    return LinearTasks(
        grams=grams,
        moments=moments,
        gram=inputs.T @ inputs / len(inputs),
        moment=inputs.T @ outputs / len(inputs),
        square=float(outputs @ outputs) / len(inputs),
    )


@dataclass(frozen=True, kw_only=True)
class TransferTheoryOptions:
    """The setting; the kinds, the numbers of sources and the seeds are those of our goal."""

    QUICK: ClassVar[dict[str, Any]] = {
        "seeds": 2,
        "error_seeds": 2,
        "counts": (160, 640),
        "reference": 4000,
    }
    related: int = 20
    unrelated: int = 20
    dimension: int = 50  # p
    near: float = 0.1  # a
    far: float = 0.5  # b
    noise: float = 1.0  # the standard deviation of ε
    rows: int = 500  # of a source
    target_rows: int = 100
    validation_rows: int = 2000
    size: int = 4  # of the subsets
    pilot: int = 120  # subsets
    margins: float = 3.0  # standard errors on either side of the middle
    seeds: Annotated[int, Flag()] = 20
    error_seeds: int = 10  # of Theorem 1, at most
    counts: tuple[int, ...] = (160, 320, 640, 1280, 2560, 5120)  # n of Theorem 1
    reference: int = 40_000  # subsets of θ*
    seed: Annotated[int, Flag()] = 0

    def __post_init__(self) -> None:
        least = min(self.related, self.unrelated, self.seeds, self.error_seeds, self.size)
        if least < 1 or not 0 < self.near < self.far or self.margins <= 0 or self.noise <= 0:
            raise OptionError(
                "The setting should have sources of both kinds, 0 < `near` < `far`, and positive "
                f"`noise`, `margins`, `size` and seeds. Found {self}."
            )
        if self.target_rows < self.dimension + 2 or self.rows < 1 or self.validation_rows < 1:
            raise OptionError(
                f"`target_rows` should be at least {self.dimension + 2}, two above the dimension, so "
                f"that the target alone can be fitted. Found {self.target_rows}."
            )
        if len(self.counts) < 2 or min(*self.counts, self.pilot) < self.sources + 2:
            raise OptionError(
                f"`counts` should be two numbers or more, and these and `pilot` at least "
                f"{self.sources + 2}, two above the sources. Found {self.counts} and {self.pilot}."
            )

    @property
    def sources(self) -> int:
        """The paper's k."""
        return self.related + self.unrelated

    def sample(self, generator: np.random.Generator) -> LinearTasks:
        """The tasks of one seed, related sources first."""
        return sample_tasks(
            np.repeat([self.near, self.far], [self.related, self.unrelated]),
            dimension=self.dimension,
            rows=self.rows,
            target_rows=self.target_rows,
            validation_rows=self.validation_rows,
            noise=self.noise,
            generator=generator,
        )

    @property
    def gap(self) -> float:
        """Between the mean coefficients of the two kinds, with many rows."""
        share = self.rows / (self.target_rows + self.size * self.rows)
        return self.dimension * (self.far**2 - self.near**2) * share**2


def run(options: TransferTheoryOptions, desk: Desk) -> list[PaperRow]:
    """Related and unrelated linear sources: can a surrogate of subsets tell them apart?

    Example: python -m papers transfer-theory --json
    """
    return reproduce_transfer_theory(options, desk.tell)


def reproduce_transfer_theory(
    setting: TransferTheoryOptions, tell: Callable[[str], None] = lambda name: None
) -> list[PaperRow]:
    """Both theorems as rows; intervals are over seeds."""
    selections, errors = [], []
    for seed in range(setting.seeds):
        tell(f"seed {seed + 1}")
        generator = np.random.default_rng([setting.seed, seed])
        tasks = setting.sample(generator)
        selections.append(_selected(setting, tasks, generator))
        if seed < setting.error_seeds:
            errors.append(_errors(setting, tasks, generator))
    rows = [
        row(f"theorem_2/{name}", None, [one[name] for one in selections]) for name in selections[0]
    ]
    distances = np.array([distance for distance, _ in errors])
    ratios = np.array([ratio for _, ratio in errors])
    slopes = np.polyfit(np.log(setting.counts), np.log(distances).T, 1)[0]
    rows.append(row("theorem_1/slope", -0.5, slopes))
    for place, count in enumerate(setting.counts):
        rows.append(row(f"theorem_1/error/{count}", None, distances[:, place]))
        rows.append(row(f"theorem_1/promised/{count}", None, ratios[:, place]))
    return rows


def _selected(
    options: TransferTheoryOptions, tasks: LinearTasks, generator: np.random.Generator
) -> dict[str, float]:
    """Theorem 2 under one seed."""
    sources, size = options.sources, options.size
    pilot = _fitted(tasks, balanced_subsets(sources, size, options.pilot, generator=generator))
    error = options.gap / (2 * options.margins)
    count = subsets_for_error(pilot.deviation, sources=sources, size=size, error=error)
    found = _fitted(tasks, balanced_subsets(sources, size, count, generator=generator))
    plain = max(count - sources, sources + 2)
    fewer = _fitted(tasks, balanced_subsets(sources, size, plain, generator=generator), ridge=1e-6)
    truth = np.arange(sources) < options.related
    order = np.argsort(found.effects)
    every = [np.isin(np.arange(sources), order[:taken]) for taken in range(1, sources)]
    halves = found.effects[truth], found.effects[~truth]
    # Eight prefixes, since the predicted best may lie off by several sources.
    prefixes = best_prefixes(found, count=8)
    chosen = {
        "two_groups": select_two_groups(found).kept,
        "least_loss": select_below(found).kept,
        "prefixes": choose_prefix(found, prefixes, tasks.losses(prefixes)[:, None]).selection.kept,
    }
    compared = {"none": ~truth & truth, "all": truth | ~truth, "related": truth, **chosen}
    losses = tasks.losses(np.array(list(compared.values())))
    return {
        "subsets": count,
        "noise_over_gap": pilot.deviation / options.gap,
        "gap_found": float(halves[1].mean() - halves[0].mean()) / options.gap,
        "separated": float(halves[0].max() < halves[1].min()),
        **{f"f1/{name}": f1(truth, kept) for name, kept in chosen.items()},
        "f1/best_threshold": max(f1(truth, kept) for kept in every),
        "plain_formula/subsets": plain,
        "plain_formula/f1/two_groups": f1(truth, select_two_groups(fewer).kept),
        **{f"loss/{name}": float(loss) for name, loss in zip(compared, losses, strict=True)},
    }


def _errors(
    options: TransferTheoryOptions, tasks: LinearTasks, generator: np.random.Generator
) -> tuple[list[float], list[float]]:
    """Theorem 1 under one seed: distances from θ*, and these over what the formula says."""
    sources, size = options.sources, options.size
    most = fixed_size_subsets(sources, size, options.reference, generator=generator)
    best = _fitted(tasks, most)
    distances, ratios = [], []
    for count in options.counts:
        subsets = fixed_size_subsets(sources, size, count, generator=generator)
        distance = float(np.linalg.norm(_fitted(tasks, subsets).effects - best.effects))
        promised = contrast_error(best.deviation, sources=sources, size=size, count=count)
        distances.append(distance)
        ratios.append(distance / (promised * np.sqrt(sources - 1)))
    return distances, ratios


def _fitted(
    tasks: LinearTasks, subsets: NDArray[np.bool_], *, ridge: float = 0.0
) -> LinearSurrogate:
    whole = np.concatenate([subsets, np.zeros((1, subsets.shape[1]), dtype=np.bool_)])
    names = [f"source {number}" for number in range(subsets.shape[1])]
    return fit_linear_surrogate(
        gather_outcomes(whole, tasks.losses(whole), target="target", sources=names), ridge=ridge
    )
