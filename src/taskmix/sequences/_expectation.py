r"""The E-step of the mixture: which generator each sequence is from, and each task's shares.

    Crawford and Pineau (draft), Eqs. 10 to 12 and E-STEP; the bound is the $\mathcal{L}$ of its Eq. 5,
    written out as in Blei, Ng and Jordan, "Latent Dirichlet Allocation", JMLR 2003, Eq. 15.

$\phi_{ijk}$ is the probability that sequence j of task i is from generator k, $\gamma_i$ the
Dirichlet parameters of the task's shares θ; the paper's $\beta_{k,w_{ij}}$ is the likelihood of the
sequence under the generator. Two things are added. γ starts from $\alpha + N/K$ in every E-step, as
the paper has it, which escapes the poor optima of a warm start; but for each task the optimum reached
from the last γ is kept where its bound is higher, so that the bound never falls. And what is below
`cut` in φ is set to zero before γ and the bound are taken, so that the M-step may leave it out and
the bound stays a bound.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, psi

from taskmix.errors import InputError
from taskmix.numerics import log_sum_exp, softmax
from taskmix.sequences._corpus import Corpus
from taskmix.sequences._generator import Floats, compiled


@dataclass(frozen=True)
class Settling:
    """When γ and φ of a task count as settled."""

    iterations: int = 100
    tolerance: float = 1e-3  # the share of a task's sequences that may still move
    cut: float = 1e-10
    temper: float = 1.0  # below one, φ is flatter (annealing)


@dataclass(frozen=True, eq=False)
class Division:
    """Sequences divided among generators."""

    gamma: Floats  # [task, generator]
    responsibility: Floats  # [distinct sequence, generator], Σ of weight · φ over its entries
    bounds: Floats  # [task]

    @property
    def bound(self) -> float:
        return float(self.bounds.sum())


def divide_sequences(
    corpus: Corpus,
    log_likelihood: Floats,  # [distinct sequence, generator]
    alpha: Floats,  # [generator], or of each task [task, generator]
    gamma: Floats | None = None,  # of the last E-step; None in the first
    settling: Settling | None = None,
    *,
    workers: int = 1,
) -> Division:
    """γ and φ for fixed generators and α.

    One sequence that two generators explain alike: φ is even, and γ is α plus a half.

    >>> corpus = gather_corpus(flatten_sequences([[0]]), ["a"])
    >>> divide_sequences(corpus, np.array([[-1.0, -1.0]]), np.ones(2)).gamma
    array([[1.5, 1.5]])
    """
    how = settling or Settling()
    peak = log_likelihood.max(axis=1)
    _check_possible(peak)
    kernels = compiled("mixture")
    if kernels is None:
        return _divide_logs(corpus, log_likelihood, alpha, gamma, how)
    mixture = np.exp(how.temper * (log_likelihood - peak[:, None]))
    priors = np.atleast_2d(alpha)
    settled = np.empty((len(corpus.tasks), priors.shape[1])) if gamma is None else gamma.copy()
    bounds = np.empty(len(corpus.tasks))

    def part(tasks: slice) -> Floats:
        responsibility: Floats = np.zeros(mixture.shape)
        kernels.settle_tasks(
            corpus.item, corpus.weight, corpus.starts[tasks.start : tasks.stop + 1], mixture, peak,
            priors[tasks] if len(priors) > 1 else priors, settled[tasks], gamma is not None,
            how.temper, how.iterations, how.tolerance, how.cut, responsibility, bounds[tasks],
        )  # fmt: skip
        return responsibility

    responsibility = _over_tasks(corpus, part, workers)
    failed = np.flatnonzero(np.isnan(bounds))
    if len(failed):
        some = _some_tasks(corpus, failed)
        old = None if gamma is None else gamma[failed]
        own = priors[failed] if len(priors) > 1 else priors
        rest = _divide_logs(some, log_likelihood, own, old, how)
        responsibility += rest.responsibility
        settled[failed], bounds[failed] = rest.gamma, rest.bounds
    return Division(settled, responsibility, bounds)


def divide_by(
    corpus: Corpus,
    log_likelihood: Floats,  # [distinct sequence, generator]
    alpha: Floats,  # [generator]
    counts: Floats,  # [task, generator], of all its sequences, those outside the corpus too
) -> Division:
    """φ for shares that are known, γ = α + counts; each task's γ comes back with φ's counts added, and
    the bound is the share of the task's bound that these of its sequences have in it."""
    _check_possible(log_likelihood.max(axis=1))
    gamma = alpha + counts
    total = gamma.sum(axis=1, keepdims=True)
    logs = psi(gamma) - psi(total)  # E[log θ], Eq. 11
    joint = log_likelihood[corpus.item] + logs[corpus.task_of]
    peaks = log_sum_exp(joint)
    shares = corpus.weight[:, None] * np.exp(joint - peaks[:, None])
    responsibility = np.zeros_like(log_likelihood)
    np.add.at(responsibility, corpus.item, shares)
    apart = gammaln(total[:, 0]) - gammaln(gamma).sum(axis=1) + (counts * logs).sum(axis=1)
    apart -= gammaln(alpha.sum()) - gammaln(alpha).sum()  # KL of the shares from their prior
    part = np.minimum(corpus.weight_of_tasks() / np.maximum(counts.sum(axis=1), 1e-300), 1.0)
    bounds = np.add.reduceat(corpus.weight * peaks, corpus.starts[:-1]) - part * apart
    found = np.add.reduceat(shares, corpus.starts[:-1], axis=0)
    return Division(gamma + found, responsibility, bounds)


def _check_possible(peak: Floats) -> None:
    impossible = np.flatnonzero(~np.isfinite(peak))
    if len(impossible):
        raise InputError(
            "Every sequence should be possible under at least one generator. Found one (number "
            f"{impossible[0]} of the distinct ones) with probability zero under all. Raise the "
            "`smoothing` of the generator above 0."
        )


def _over_tasks(corpus: Corpus, part: Callable[[slice], Floats], workers: int) -> Floats:
    """The parts of the work on about equally many entries each, added up."""
    count = len(corpus.tasks)
    marks = np.searchsorted(corpus.starts, np.linspace(0, corpus.starts[-1], workers + 1))
    marks[0], marks[-1] = 0, count
    slices = [slice(int(a), int(b)) for a, b in pairwise(marks) if a < b]
    if len(slices) == 1:
        return part(slices[0])
    with ThreadPoolExecutor(len(slices)) as pool:
        return np.asarray(np.sum(list(pool.map(part, slices)), axis=0))


def _some_tasks(corpus: Corpus, rows: NDArray[np.int64]) -> Corpus:
    lengths = np.diff(corpus.starts)[rows]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    entries = np.repeat(corpus.starts[rows] - starts[:-1], lengths) + np.arange(starts[-1])
    return Corpus(
        sequences=corpus.sequences,
        tasks=tuple(corpus.tasks[row] for row in rows),
        starts=starts,
        item=corpus.item[entries],
        weight=corpus.weight[entries],
        entry_of=np.arange(len(entries)),
    )


def _divide_logs(
    corpus: Corpus, log_likelihood: Floats, alpha: Floats, gamma: Floats | None, how: Settling
) -> Division:
    """The same in logarithms and plain NumPy, all tasks at once."""
    likelihood = log_likelihood[corpus.item]
    fresh = alpha + corpus.weight_of_tasks()[:, None] / log_likelihood.shape[1]  # E-STEP, line 2
    settled, shares, bounds = _settle(corpus, likelihood, alpha, fresh, how)
    if gamma is not None:
        again, again_shares, again_bounds = _settle(corpus, likelihood, alpha, gamma, how)
        better = again_bounds > bounds
        settled = np.where(better[:, None], again, settled)
        bounds = np.where(better, again_bounds, bounds)
        shares = np.where(better[corpus.task_of][:, None], again_shares, shares)
    responsibility = np.zeros_like(log_likelihood)
    np.add.at(responsibility, corpus.item, corpus.weight[:, None] * shares)
    return Division(settled, responsibility, bounds)


def _settle(
    corpus: Corpus, likelihood: Floats, alpha: Floats, start: Floats, how: Settling
) -> tuple[Floats, Floats, Floats]:
    gamma = start.copy()
    resting, totals = np.zeros(len(gamma), dtype=np.bool_), corpus.weight_of_tasks()
    for _ in range(how.iterations):
        # Eq. 11 for φ; Ψ(Σγ) is the same for every generator and falls out (E-STEP, line 8).
        shares = softmax(how.temper * (likelihood + psi(gamma)[corpus.task_of]))
        new = alpha + _by_task(corpus, shares)  # Eq. 12
        change = np.abs(new - gamma).sum(axis=1)
        gamma = np.where(resting[:, None], gamma, new)
        resting |= change < how.tolerance * totals
        if resting.all():
            break
    joint = how.temper * (likelihood + psi(gamma)[corpus.task_of])
    shares = softmax(joint)
    joint = np.where(shares >= how.cut, joint, -np.inf)
    peaks = log_sum_exp(joint)
    shares = np.exp(joint - peaks[:, None])
    counts = _by_task(corpus, shares)
    # Eq. 5's L for each task. Σ φ (log P + E[log θ] − log φ) has log φ written out by Eq. 11, which
    # leaves Σ log-sum-exp minus Σ φ Ψ(γ); the Γ are the Dirichlet's prior and its entropy.
    fit = corpus.weight * peaks
    final = alpha + counts  # Eq. 12 for the φ that is kept
    bounds = np.add.reduceat(fit, corpus.starts[:-1]) - (counts * psi(gamma)).sum(axis=1)
    bounds += (gammaln(final) - gammaln(alpha)).sum(axis=-1)
    bounds += gammaln(alpha.sum(axis=-1)) - gammaln(final.sum(axis=1))
    return final, shares, bounds


def _by_task(corpus: Corpus, shares: Floats) -> Floats:
    return np.add.reduceat(corpus.weight[:, None] * shares, corpus.starts[:-1], axis=0)
