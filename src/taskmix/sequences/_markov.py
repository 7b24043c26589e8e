r"""Markov chains of any order, with initial, transition and halting probabilities.

    Crawford and Pineau (draft), "Markov Chain Topics": $P(x) = \pi(x_1) \prod_i T(x_{i+1}|x_i)\,
    h(x_n)$ with $\sum_j T(j|i) + h(i) = 1$.

With order n the context is the last n symbols; at the beginning, where there are fewer, what is there
is a context of its own, so π is the distribution after the empty one. A sequence has at least one
symbol, so nothing halts after the empty context. Without `halting` lengths are taken as given, the
paper's h = 0.

A sequence matters only through how often each symbol follows each context. One sparse table of counts
C [sequence, transition] is made once; the log-likelihoods of all generators are C log θ, the weighted
statistics Cᵀφ: the cost of plain LDA. The M-step is the mode under pseudo-counts for every context,
which are spread as shorter contexts of all sequences together say, and the other generators
(`_backoff.py`). How many they are is learned on sequences left out, or given as `smoothing`. With
`spread="even"` every symbol gets the same part.

How strongly several generators are held to one prior: by their marginal likelihood.

    Minka, "Estimating a Dirichlet distribution", 2000, section 3.

The strength that a pool of all sequences asks for says how well shorter contexts predict. How much
generators differ from each other it cannot say: held that strongly, few observations of each pull all
of them towards one another. With the counts n of generator k after context c, prior means m and
strengths $\lambda_c$, the factor f of all strengths maximises

$\sum_{kc} \log\Gamma(f\lambda_c) - \log\Gamma(f\lambda_c + n_{kc}) +
\sum_s \log\Gamma(f\lambda_c m_{cs} + n_{kcs}) - \log\Gamma(f\lambda_c m_{cs})$.

Prior means have in them what these very generators count (`_backoff.py`), so that the maximum lies too
high where generators hardly differ: the strength of the pool is never exceeded.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_array
from scipy.special import gammaln

from taskmix.errors import OptionError
from taskmix.sequences._backoff import Backoff, even_backoff, learn_backoff
from taskmix.sequences._chains import Codes, context_codes, context_of, find_transitions
from taskmix.sequences._generator import (
    SHARED,
    ExpectedStatistics,
    Floats,
    Next,
    check_amount,
    check_complete,
    check_fixed,
    check_observes,
    check_whole,
    keep_fixed,
    normalised,
    prefix_rows,
    running_totals,
    safe_log,
    weighted_log,
)
from taskmix.sequences._sequences import Observed, Sequences

# A table this full is multiplied faster as a plain one.
_DENSE = 0.1


@dataclass(frozen=True, eq=False)
class PreparedMarkov:
    """How often what follows what, in each sequence."""

    sequences: Sequences
    counts: Any  # [sequence, transition seen], sparse or not
    transposed: Any  # the same, for the M-step
    contexts: Codes  # [context seen]
    row: Codes  # [transition seen], its context among those seen
    symbol: Codes  # [transition seen]; the size of the alphabet stands for the end


@dataclass(frozen=True, eq=False)
class MarkovParameters:
    """`probabilities[:, c, s]` is that of symbol s after context c; the last symbol is the end."""

    probabilities: Floats  # [generator, context, symbol + 1]
    contexts: Codes = field(metadata=SHARED)  # [context], in order
    prior: Floats = field(metadata=SHARED)  # [context, symbol + 1], where pseudo-counts go
    strength: Floats = field(metadata=SHARED)  # [context], how many they are
    backoff: Backoff = field(metadata=SHARED)  # for contexts never seen


@dataclass(frozen=True, eq=False)
class MarkovStatistics:
    """How often what followed what. Sums are over the contexts of both."""

    contexts: Codes  # [context], in order
    counts: Floats  # [generator, context, symbol + 1]

    def __add__(self, other: MarkovStatistics) -> MarkovStatistics:
        if np.array_equal(self.contexts, other.contexts):
            return MarkovStatistics(self.contexts, self.counts + other.counts)
        contexts = np.union1d(self.contexts, other.contexts)
        counts = np.zeros((len(self.counts), len(contexts), self.counts.shape[2]))
        for each in (self, other):
            counts[:, np.searchsorted(contexts, each.contexts)] += each.counts
        return MarkovStatistics(contexts, counts)

    def __mul__(self, factor: float) -> MarkovStatistics:
        return MarkovStatistics(self.contexts, self.counts * factor)


@dataclass(frozen=True, kw_only=True)
class Markov:
    """Markov chains of one order over an alphabet.

    >>> chain = Markov(smoothing=0.0)
    >>> prepared = chain.prepare(flatten_sequences([[0, 1], [0]]))
    >>> learned = chain.start(prepared, np.ones((2, 1)), np.random.default_rng(0))
    >>> np.exp(chain.log_likelihood(learned, prepared)).ravel()  # after 0 comes 1, or the end
    array([0.5, 0.5])
    """

    order: int = 1
    smoothing: float | None = None  # pseudo-counts of each context; None: learned
    spread: Literal["pooled", "even"] = "pooled"
    halting: bool = True
    fixed: tuple[str, ...] = ()  # of `probabilities`

    def __post_init__(self) -> None:
        check_whole(0, order=self.order)
        if self.smoothing is not None:
            check_amount(smoothing=self.smoothing)
        check_fixed(self.fixed, ("probabilities",))
        if self.spread not in ("pooled", "even"):
            raise OptionError(f"`spread` should be `pooled` or `even`. Found {self.spread!r}.")

    @property
    def observes(self) -> Observed:
        return "symbols"

    @property
    def additive(self) -> bool:
        return True

    @property
    def learns_strengths(self) -> bool:
        """Whether several generators say how many pseudo-counts they have (`hold`)."""
        return self.smoothing is None and self.spread == "pooled" and not self.fixed

    def prepare(self, sequences: Sequences) -> PreparedMarkov:
        check_observes(self, "symbols", sequences)
        if self.order:
            check_complete(self, sequences)
        found = find_transitions(sequences, self.order, halting=self.halting)
        symbol, owner = found.symbol, found.owner
        seen, row = _distinct(found.contexts, (sequences.symbols + 1) ** max(self.order, 1) + 1)
        width = sequences.symbols + 1
        keys, column = _distinct(row * width + symbol, len(seen) * width)
        shape = (len(sequences), len(keys))
        counts = csr_array((np.ones(len(column)), (owner, column)), shape=shape)
        counts.sum_duplicates()
        dense = counts.nnz > _DENSE * shape[0] * shape[1]
        table = counts.toarray() if dense else counts
        transposed = table.T if dense else counts.T.tocsr()
        return PreparedMarkov(sequences, table, transposed, seen, keys // width, keys % width)

    def start(
        self, prepared: PreparedMarkov, weights: Floats, generator: np.random.Generator
    ) -> MarkovParameters:
        sequences, symbols = prepared.sequences, prepared.sequences.symbols
        backoff = even_backoff(symbols, self.order, halting=self.halting)
        if self.spread == "pooled":
            found = find_transitions(sequences, self.order, halting=self.halting)
            backoff = learn_backoff(
                found, weights.sum(axis=1)[found.owner], symbols=symbols, order=self.order,
                halting=self.halting, generators=weights.shape[1],
            )  # fmt: skip
        prior, strength = self._prior(backoff, prepared.contexts)
        many = np.repeat(prior[None], weights.shape[1], axis=0)
        empty = MarkovParameters(many, prepared.contexts, prior, strength, backoff)
        return self._most_likely(empty, self.expect(empty, prepared, weights).statistics)

    def log_likelihood(self, parameters: MarkovParameters, prepared: PreparedMarkov) -> Floats:
        found = self._after(parameters, prepared.contexts)
        logs = safe_log(found[:, prepared.row, prepared.symbol])
        # Zero times minus infinity is not a number, so what is impossible is counted by itself.
        impossible = np.isneginf(logs)
        if not impossible.any():
            return np.asarray(prepared.counts @ np.ascontiguousarray(logs.T))
        total = prepared.counts @ np.ascontiguousarray(np.where(impossible, 0.0, logs).T)
        broken = prepared.counts @ np.ascontiguousarray(impossible.T.astype(np.float64))
        return np.where(broken > 0, -np.inf, total)

    def expect(
        self, parameters: MarkovParameters, prepared: PreparedMarkov, weights: Floats
    ) -> ExpectedStatistics:
        totals = prepared.transposed @ weights  # [transition, generator]
        shape = (weights.shape[1], len(prepared.contexts), prepared.sequences.symbols + 1)
        counts = np.zeros(shape)
        counts[:, prepared.row, prepared.symbol] = totals.T
        return ExpectedStatistics(MarkovStatistics(prepared.contexts, counts))

    def maximise(
        self, parameters: MarkovParameters, statistics: MarkovStatistics
    ) -> MarkovParameters:
        return keep_fixed(parameters, self._most_likely(parameters, statistics), self.fixed)

    def hold(self, parameters: MarkovParameters, statistics: MarkovStatistics) -> MarkovParameters:
        """Parameters with as many pseudo-counts as the counts of these generators say."""
        factor = learn_factor(statistics.counts, *self._held(parameters, statistics.contexts))
        return replace(parameters, strength=parameters.strength * factor)

    def log_prior(self, parameters: MarkovParameters) -> Floats:
        pseudo = parameters.strength[:, None] * parameters.prior
        return np.asarray(weighted_log(pseudo, parameters.probabilities).sum(axis=(1, 2)))

    def follow(self, parameters: MarkovParameters, prepared: PreparedMarkov) -> Next:
        sequences = prepared.sequences
        starts, rows = prefix_rows(sequences)
        contexts = np.zeros(starts[-1], np.int64)
        contexts[rows] = context_codes(sequences, self.order, after=True)
        found = safe_log(self._after(parameters, contexts)).transpose(1, 0, 2)
        before = found[rows - 1]
        missing = sequences.values < 0
        steps = np.where(
            missing[:, None],
            0.0,
            np.take_along_axis(
                before, np.where(missing, 0, sequences.values)[:, None, None], axis=2
            )[..., 0],
        )
        return Next(running_totals(steps, sequences), np.ascontiguousarray(found))

    def trace(
        self, parameters: MarkovParameters, prepared: PreparedMarkov
    ) -> tuple[Floats, Floats]:
        """`follow` for what was observed alone: log-probabilities of every prefix
        [prefix, generator], and of the end after each sequence [sequence, generator]."""
        sequences = prepared.sequences
        found = find_transitions(sequences, self.order, halting=True)
        count = len(found.symbol) - int((sequences.lengths > 0).sum())  # the ends come last
        contexts, row = _distinct(found.contexts, int(found.contexts.max(initial=0)) + 1)
        logs = safe_log(self._after(parameters, contexts)[:, row, found.symbol]).T
        steps = np.zeros((len(sequences.values), logs.shape[1]))
        steps[sequences.values >= 0] = logs[:count]
        ends = np.full((len(sequences), logs.shape[1]), -np.inf)
        ends[sequences.lengths > 0] = logs[count:]
        return running_totals(steps, sequences), ends

    def sample(
        self,
        parameters: MarkovParameters,
        which: int,
        prefix: NDArray[Any],
        length: int | None,
        generator: np.random.Generator,
    ) -> NDArray[Any]:
        one = replace(parameters, probabilities=parameters.probabilities[which : which + 1])
        symbols = list(prefix)
        end = parameters.probabilities.shape[2] - 1
        while length is None or len(symbols) < length:
            code = context_of(symbols, self.order, end + 1)
            shares = self._after(one, np.array([code]))[0, 0]
            symbol = int(generator.choice(end + 1, p=shares / shares.sum()))
            if symbol == end:
                break
            symbols.append(symbol)
        return np.array(symbols, dtype=np.int32)

    def _most_likely(
        self, parameters: MarkovParameters, statistics: MarkovStatistics
    ) -> MarkovParameters:
        prior, strength = self._held(parameters, statistics.contexts)
        # Eq. 15 in its closed form: counts, with pseudo-counts.
        shares = normalised(statistics.counts + strength[:, None] * prior, prior)
        return MarkovParameters(shares, statistics.contexts, prior, strength, parameters.backoff)

    def _held(self, parameters: MarkovParameters, contexts: Codes) -> tuple[Floats, Floats]:
        """Prior means and pseudo-counts of these contexts."""
        if np.array_equal(contexts, parameters.contexts):
            return parameters.prior, parameters.strength
        prior, strength = self._prior(parameters.backoff, contexts)
        if self.learns_strengths and len(parameters.contexts):
            # What `hold` has learned since, by any of the contexts: it is the same for all.
            before = parameters.backoff.strength(parameters.contexts[:1])
            strength = strength * (parameters.strength[:1] / before)
        return prior, strength

    def _prior(self, backoff: Backoff, contexts: Codes) -> tuple[Floats, Floats]:
        strength = backoff.strength(contexts)
        if self.smoothing is not None:
            strength = np.full(len(contexts), self.smoothing)
        return backoff.after(contexts), strength

    def _after(self, parameters: MarkovParameters, contexts: Codes) -> Floats:
        """[generator, context, symbol + 1]"""
        if contexts is parameters.contexts or np.array_equal(contexts, parameters.contexts):
            return parameters.probabilities
        places = np.minimum(
            np.searchsorted(parameters.contexts, contexts), len(parameters.contexts) - 1
        )
        known = parameters.contexts[places] == contexts
        found = parameters.probabilities[:, places]
        if not known.all():
            found[:, ~known] = parameters.backoff.after(contexts[~known])
        return np.asarray(found)


def _distinct(keys: Codes, bound: int) -> tuple[Codes, Codes]:
    """The distinct keys in order, and the place of each among them; fast where they are small."""
    if bound > max(4 * len(keys), 1 << 20):
        seen, place = np.unique(keys, return_inverse=True)
        return seen, place
    present = np.zeros(bound, np.bool_)
    present[keys] = True
    return np.flatnonzero(present), (np.cumsum(present) - 1)[keys]


_LEAST = 1e-3  # counts below are left out: shares of sequences that are hardly a generator's
_ENOUGH = 50_000  # counts say as much as all of them
_LOWEST = -4.0  # the logarithm of the smallest factor


def learn_factor(
    counts: Floats,  # [generator, context, symbol]
    prior: Floats,  # [context, symbol]
    strength: Floats,  # [context]
) -> float:
    """What all strengths should be multiplied by, at most 1."""
    seen = (counts > _LEAST) & (prior > 0)
    step = -(-int(seen.sum()) // _ENOUGH)
    if step > 1:
        chosen = np.arange(counts.shape[1]) % step == 0
        counts, prior, strength, seen = (
            counts[:, chosen],
            prior[chosen],
            strength[chosen],
            seen[:, chosen],
        )
    _, context, symbol = np.nonzero(seen)
    if not len(context) or not (strength > 0).any():
        return 1.0
    base = strength[context] * prior[context, symbol]
    some, totals = counts[seen], np.where(seen, counts, 0.0).sum(axis=2)
    used = totals > 0
    whole = np.broadcast_to(strength, totals.shape)[used]
    totals = totals[used]

    def loss(place: float) -> float:
        factor = float(np.exp(place))
        rows = gammaln(factor * whole) - gammaln(factor * whole + totals)
        cells = gammaln(factor * base + some) - gammaln(factor * base)
        return -float(rows.sum() + cells.sum())

    found = minimize_scalar(loss, bounds=(_LOWEST, 0.0), method="bounded", options={"xatol": 0.01})
    return float(np.exp(found.x)) if found.fun < loss(0.0) else 1.0
