r"""Vectors drawn one by one from a normal distribution, or from a mixture of several.

    Crawford and Pineau (draft): "topic distributions could be Gaussians, and each document/task would
    consequently be modelled as a Gaussian mixture model" whose components are shared.

With one component a generator is a Gaussian; with more it is a mixture of its own, learned by EM
within the M-step of the whole. The vectors of a sequence are independent given its generator. The end
of a sequence is not modelled.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taskmix.numerics import log_sum_exp
from taskmix.sequences._generator import (
    SHARED,
    ExpectedStatistics,
    Floats,
    Next,
    check_amount,
    check_fixed,
    check_observes,
    check_whole,
    normalised,
    running_totals,
    safe_log,
    sums_by_sequence,
    weighted_log,
)
from taskmix.sequences._normal import (
    Background,
    Covariance,
    Gaps,
    Moments,
    background,
    check_covariance,
    draw_normals,
    expected_moments,
    find_gaps,
    learn_normals,
    log_densities,
    log_prior_of_normals,
    mixture_moments,
    stack_moments,
)
from taskmix.sequences._sequences import Observed, Sequences


@dataclass(frozen=True, eq=False)
class PreparedVectors:
    """Sequences, and their vectors grouped by what is missing."""

    sequences: Sequences
    gaps: Gaps

    @property
    def owner(self) -> NDArray[np.int64]:
        """[observation], its sequence."""
        return np.repeat(np.arange(len(self.sequences)), self.sequences.lengths)


@dataclass(frozen=True, eq=False)
class GaussianParameters:
    share: Floats  # [generator, component]
    mean: Floats  # [generator, component, dimension]
    covariance: Floats  # [generator, component, dimension, dimension]
    behind: Background = field(metadata=SHARED)


@dataclass(frozen=True, kw_only=True)
class Gaussian:
    """Independent vectors, from one normal distribution or a mixture.

    >>> normal = Gaussian()
    >>> prepared = normal.prepare(flatten_sequences([[0.0], [2.0]], observes="vectors"))
    >>> normal.start(prepared, np.ones((2, 1)), np.random.default_rng(0)).mean
    array([[[1.]]])
    """

    components: int = 1
    covariance: Covariance = "full"
    smoothing: float = 1.0  # pseudo-observations of each component, spread as all data
    fixed: tuple[str, ...] = ()  # of `share`, `mean` and `covariance`

    def __post_init__(self) -> None:
        check_whole(components=self.components)
        check_amount(smoothing=self.smoothing)
        check_covariance(self.covariance)
        check_fixed(self.fixed, ("share", "mean", "covariance"))

    @property
    def observes(self) -> Observed:
        return "vectors"

    @property
    def halting(self) -> bool:
        return False

    @property
    def additive(self) -> bool:
        return True

    def prepare(self, sequences: Sequences) -> PreparedVectors:
        check_observes(self, "vectors", sequences)
        return PreparedVectors(sequences, find_gaps(sequences.values))

    def start(
        self, prepared: PreparedVectors, weights: Floats, generator: np.random.Generator
    ) -> GaussianParameters:
        behind = background(prepared.sequences.values)
        mean, covariance = draw_normals(
            prepared.gaps, weights[prepared.owner], self.components, behind, generator
        )
        share = np.full(mean.shape[:2], 1 / self.components)
        first = GaussianParameters(share, mean, covariance, behind)
        free = replace(self, fixed=())
        return free.maximise(first, self.expect(first, prepared, weights).statistics)

    def log_likelihood(self, parameters: GaussianParameters, prepared: PreparedVectors) -> Floats:
        return sums_by_sequence(log_sum_exp(self._joint(parameters, prepared)), prepared.sequences)

    def expect(
        self, parameters: GaussianParameters, prepared: PreparedVectors, weights: Floats
    ) -> ExpectedStatistics:
        joint = self._joint(parameters, prepared)
        totals = log_sum_exp(joint)
        visits = np.exp(joint - totals[..., None]) * weights[prepared.owner][..., None]
        parts = [
            expected_moments(prepared.gaps, visits[:, which], mean, covariance, parameters.behind)
            for which, (mean, covariance) in enumerate(
                zip(parameters.mean, parameters.covariance, strict=True)
            )
        ]
        return ExpectedStatistics(
            stack_moments(parts), sums_by_sequence(totals, prepared.sequences)
        )

    def maximise(self, parameters: GaussianParameters, statistics: Moments) -> GaussianParameters:
        share = parameters.share
        if "share" not in self.fixed:
            share = normalised(statistics.mass + self.smoothing, share)
        mean, covariance = learn_normals(self, parameters, statistics)
        return replace(parameters, share=share, mean=mean, covariance=covariance)

    def log_prior(self, parameters: GaussianParameters) -> Floats:
        normals = log_prior_of_normals(self, parameters)
        return np.asarray((normals + weighted_log(self.smoothing, parameters.share)).sum(axis=1))

    def follow(self, parameters: GaussianParameters, prepared: PreparedVectors) -> Next:
        totals = log_sum_exp(self._joint(parameters, prepared))
        log_prefix = running_totals(totals, prepared.sequences)
        mean, covariance = mixture_moments(parameters.share, parameters.mean, parameters.covariance)
        rows = len(log_prefix)
        return Next(
            log_prefix,
            mean=np.broadcast_to(mean, (rows, *mean.shape)),
            covariance=np.broadcast_to(covariance, (rows, *covariance.shape)),
        )

    def sample(
        self,
        parameters: GaussianParameters,
        which: int,
        prefix: NDArray[Any],
        length: int | None,
        generator: np.random.Generator,
    ) -> NDArray[Any]:
        count = (length or len(prefix) + 1) - len(prefix)
        kinds = generator.choice(self.components, max(count, 0), p=parameters.share[which])
        made = [
            generator.multivariate_normal(
                parameters.mean[which, kind], parameters.covariance[which, kind]
            )
            for kind in kinds
        ]
        return np.concatenate([prefix, np.array(made).reshape(-1, parameters.mean.shape[2])])

    def _joint(self, parameters: GaussianParameters, prepared: PreparedVectors) -> Floats:
        """[observation, generator, component], logarithms."""
        dimension = prepared.sequences.dimension
        flat = log_densities(
            prepared.gaps,
            parameters.mean.reshape(-1, dimension),
            parameters.covariance.reshape(-1, dimension, dimension),
        )
        return flat.reshape(len(flat), *parameters.share.shape) + safe_log(parameters.share)
