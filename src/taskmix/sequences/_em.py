r"""Variational EM of mixtures of shared generators.

    Crawford and Pineau (draft), "Learning Algorithm", Eqs. 1 to 15.

The E-step divides sequences among generators (`_expectation.py`); the M-step learns each generator
from the sequences it has a share in, and α from the tasks' γ. What is monitored is the evidence lower
bound plus the log-priors of the generators: it never falls, but for after every tenth iteration, where
generators may learn anew how strongly they are held to their priors. `variational_em` yields a state
after every E-step, in which parameters, γ and bound belong together; stop whenever you like. A state is
whole: given as `resume` it is gone on from with the same bits. Its division of the sequences, which may
be large, is no part of it but found again, by the same E-step from the same γ.

A generator that has lost all sequences is seeded anew from sequences that are explained badly, and
keeps that start where the bound gains by it.

α of the Dirichlet prior by Newton's method in linear time.

    Blei, Ng and Jordan, "Latent Dirichlet Allocation", JMLR 2003, appendix A.2 and A.4.2: the "fast
    Newton-Raphson method" of Crawford and Pineau's M-step.

The part of the bound that has α in it is, for M tasks and $s_k = \sum_i E[\log\theta_{ik}]$,
$L(\alpha) = M(\log\Gamma(\sum\alpha) - \sum\log\Gamma(\alpha_k)) + \sum(\alpha_k - 1) s_k$. It is
concave, and its Hessian is diag(h) + 1z1ᵀ, whose inverse times a vector takes linear time. Steps are
halved until α is positive and L does not fall.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import gammaln, polygamma, psi

from taskmix.sequences._bank import Bank, Chunk
from taskmix.sequences._corpus import Corpus
from taskmix.sequences._expectation import Division, Settling, divide_sequences
from taskmix.sequences._generator import Floats, check_amount, check_whole, put_generators

# Iterations before α is learned: it follows the generators, and while these are all alike it would
# grow and keep them so.
_FIRST_ALPHA = 5
# Iterations after which starts are compared, and strengths learned again from what the generators have
# by then: sooner, and generators that are still alike would be held alike. Part of what a seed gives.
SHORT = 10
_FLATTEST = 0.2  # the power of φ that annealing begins with: nearer to 0, all generators become one


@dataclass(frozen=True, kw_only=True)
class EMOptions:
    """How long, and what is learned besides the generators."""

    iterations: int = 100
    tolerance: float = 1e-4  # gain of the bound, for each sequence, that ends it
    learn_alpha: bool = True
    symmetric: bool = False  # one α for all generators
    annealing: int = 0  # iterations before EM in which φ sharpens to its true shape (`anneal`)
    reseeds: int = 3  # how often empty generators are seeded anew
    settling: Settling = field(default_factory=Settling)
    workers: int = 1

    def __post_init__(self) -> None:
        check_whole(1, iterations=self.iterations, workers=self.workers)
        check_whole(0, annealing=self.annealing, reseeds=self.reseeds)
        check_amount(tolerance=self.tolerance)


@dataclass(frozen=True, eq=False)
class MixtureState:
    """After an E-step."""

    parameters: tuple[Any, ...]  # one item a block
    alpha: Floats  # [generator]
    gamma: Floats  # [task, generator]
    bound: float
    mass: Floats  # [generator], sequences
    iteration: int
    converged: bool = False
    entered: Floats | None = None  # [task, generator], the γ that its E-step began with
    reseeds: int = 0  # how often empty generators may still be seeded anew

    @property
    def theta(self) -> Floats:
        """[task, generator], expected shares."""
        return np.asarray(self.gamma / self.gamma.sum(axis=1, keepdims=True))


def variational_em(
    bank: Bank,
    corpus: Corpus,
    parameters: tuple[Any, ...],
    alpha: Floats,
    options: EMOptions,
    generator: np.random.Generator,
    *,
    gamma: Floats | None = None,
    iteration: int = 0,
    resume: MixtureState | None = None,
) -> Iterator[MixtureState]:
    """States after each E-step; `gamma` and `iteration` begin with those of an earlier fit.

    With `resume`, a state of the same fit, come the states after it, and `parameters`, `alpha`, `gamma`
    and `iteration` are its own; the generator has to be as it was then.

    >>> bank, generator = make_bank(Markov(), 1), np.random.default_rng(0)
    >>> corpus = gather_corpus(flatten_sequences([[0, 1], [0, 1, 1]]), ["a", "a"])
    >>> start = bank.start(corpus.sequences, np.ones((2, 1)), generator)
    >>> states = variational_em(bank, corpus, start, np.ones(1), EMOptions(), generator)
    >>> [round(state.bound, 3) for state in states]  # one generator: all is learned at once
    [-5.589, -5.589]
    """
    reseeds, last = options.reseeds, -np.inf
    if resume is not None:
        if resume.converged or resume.iteration >= options.iterations:
            return
        parameters, alpha, gamma = resume.parameters, resume.alpha, resume.entered
        iteration, reseeds = resume.iteration - 1, resume.reseeds
    chunks = bank.prepare(corpus.sequences, options.workers)
    division, statistics = _expect(bank, corpus, chunks, parameters, alpha, gamma, options)
    while True:
        bound = division.bound + bank.log_prior(
            parameters
        )  # L of Eq. 5, and the priors of the M-step
        iteration += 1
        mass = division.responsibility.sum(axis=0)
        if resume is None or iteration > resume.iteration:
            converged = bool(bound - last < options.tolerance * corpus.total)
            converged = converged and (iteration > SHORT or not bank.learns_strengths)
            yield MixtureState(
                parameters, alpha, division.gamma, bound, mass, iteration, converged, gamma, reseeds
            )
            if converged or iteration >= options.iterations:
                return
        last = bound
        if statistics is None:
            statistics, _ = bank.expect(parameters, chunks, division.responsibility)  # Σ φ, Eq. 14
        if bank.learns_strengths and iteration % SHORT == 0:
            parameters = bank.hold(parameters, statistics)
            last = -np.inf  # by another prior: the next bound is of another kind
        parameters = bank.maximise(parameters, statistics)  # Eq. 15
        if options.learn_alpha and bank.count > 1 and iteration >= _FIRST_ALPHA:
            alpha = learn_alpha(alpha, division.gamma, symmetric=options.symmetric)
        empty = np.flatnonzero(mass < 0.5 * min(1.0, corpus.total / bank.count))
        gamma = division.gamma
        division, statistics = _expect(bank, corpus, chunks, parameters, alpha, gamma, options)
        if len(empty) and reseeds:
            reseeds -= 1
            tried = _reseed(bank, corpus, chunks, parameters, division, empty, generator)
            other, sums = _expect(bank, corpus, chunks, tried, alpha, division.gamma, options)
            before = division.bound + bank.log_prior(parameters)
            if other.bound + bank.log_prior(tried) > before:
                gamma = division.gamma
                parameters, division, statistics = tried, other, sums


def anneal(
    bank: Bank,
    corpus: Corpus,
    parameters: tuple[Any, ...],
    alpha: Floats,
    options: EMOptions,
    done: int = 0,
) -> Iterator[tuple[Any, ...]]:
    """Parameters after each iteration of annealing, from the one after `done` on."""
    if done >= options.annealing:
        return
    chunks = bank.prepare(corpus.sequences, options.workers)
    for step in range(done, options.annealing):
        temper = _FLATTEST + (1 - _FLATTEST) * step / options.annealing
        settling = replace(options.settling, temper=temper)
        likelihood = bank.log_likelihood(parameters, chunks)
        division = divide_sequences(
            corpus, likelihood, alpha, None, settling, workers=options.workers
        )
        statistics, _ = bank.expect(parameters, chunks, division.responsibility)
        parameters = bank.maximise(parameters, statistics)
        yield parameters


def _expect(
    bank: Bank,
    corpus: Corpus,
    chunks: Sequence[Chunk],
    parameters: tuple[Any, ...],
    alpha: Floats,
    gamma: Floats | None,
    options: EMOptions,
) -> tuple[Division, tuple[Any, ...] | None]:
    """The E-step; with one generator nothing is to be divided, and its statistics come with it."""
    statistics = None
    if bank.count == 1:
        totals = np.bincount(corpus.item, corpus.weight, minlength=len(corpus.sequences))
        whole = totals.astype(np.float64)[:, None]
        statistics, found = bank.expect(parameters, chunks, whole)
        if found is not None:
            found = np.where(whole > 0, found, 0.0)
    else:
        found = None
    likelihood = bank.log_likelihood(parameters, chunks) if found is None else found
    division = divide_sequences(
        corpus, likelihood, alpha, gamma, options.settling, workers=options.workers
    )
    return division, statistics


def _reseed(
    bank: Bank,
    corpus: Corpus,
    chunks: Sequence[Chunk],
    parameters: tuple[Any, ...],
    division: Division,
    empty: np.ndarray[Any, np.dtype[np.int64]],
    generator: np.random.Generator,
) -> tuple[Any, ...]:
    """Empty generators start from sequences that the best generator explains badly."""
    likelihood = bank.log_likelihood(parameters, chunks).max(axis=1)
    each = -likelihood / np.maximum(corpus.sequences.lengths, 1)
    counts = division.responsibility.sum(axis=1)
    badness = np.where(counts > 0, np.exp(each - each.max()), 0.0)
    weights = np.zeros((len(each), len(empty)))
    for number in range(len(empty)):
        size = max(1, len(each) // (2 * bank.count))
        drawn = generator.choice(len(each), size, p=badness / badness.sum())
        np.add.at(weights[:, number], drawn, 1.0)
    changed = list(parameters)
    for block, place in enumerate(bank.places):
        chosen = (empty >= place.start) & (empty < place.stop)
        if chosen.any():
            kind = bank.blocks[block]
            fresh = kind.start(kind.prepare(corpus.sequences), weights[:, chosen], generator)
            changed[block] = put_generators(parameters[block], empty[chosen] - place.start, fresh)
    return tuple(changed)


# One task alone, or tasks all alike, have no best α. Without these it runs away, until the gamma
# functions of the bound are no numbers any more.
LEAST, MOST = 1e-4, 1e4


def learn_alpha(
    alpha: Floats, gamma: Floats, *, symmetric: bool = False, iterations: int = 50
) -> Floats:
    """α that explains the tasks' γ [task, generator] at least as well as `alpha`.

    Tasks that are all alike are explained best by an α like their γ.

    >>> learn_alpha(np.ones(2), np.array([[5.0, 5.0], [5.0, 5.0]])).round(6)
    array([5., 5.])
    """
    if len(alpha) == 1:
        return alpha  # one generator has all sequences, whatever α is
    tasks = len(gamma)
    logs = (psi(gamma) - psi(gamma.sum(axis=1, keepdims=True))).sum(axis=0)
    if symmetric:
        logs = np.full_like(logs, logs.mean())  # equal parts then take equal steps
    value = _level(alpha, tasks, logs)
    for _ in range(iterations):
        gradient = tasks * (psi(alpha.sum()) - psi(alpha)) + logs  # A.4.2, ∂L/∂α
        diagonal = -tasks * polygamma(1, alpha)  # A.4.2: the Hessian is diag(h) + 1z1ᵀ, this is h
        corner = tasks * polygamma(1, alpha.sum())  # and this is z
        shift = (gradient / diagonal).sum() / (1 / corner + (1 / diagonal).sum())  # A.2, its c
        step = -(gradient - shift) / diagonal  # A.2: −H⁻¹g without H
        for halvings in range(30):
            trial = np.clip(alpha + step / 2**halvings, LEAST, MOST)
            level = _level(trial, tasks, logs)
            if level >= value:
                break
        else:
            return alpha
        rested = bool(np.abs(trial - alpha).max() < 1e-8 * alpha.max())
        alpha, value = trial, level
        if rested:
            break
    return alpha


def _level(alpha: Floats, tasks: int, logs: Floats) -> float:
    normaliser = gammaln(alpha.sum()) - gammaln(alpha).sum()
    return float(tasks * normaliser + ((alpha - 1) * logs).sum())
