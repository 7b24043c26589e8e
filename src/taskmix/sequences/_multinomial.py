r"""One probability for each whole sequence: with sequences of one symbol, LDA itself.

    Blei, Ng and Jordan, "Latent Dirichlet Allocation", JMLR 2003; Crawford and Pineau (draft),
    Eq. 13.

A sequence that was seen is an outcome with a probability of its own; all others together are one
more, shared out in proportion to a plain distribution B: even symbols, and a length that is geometric
with the mean of those seen. The M-step is the mode under `smoothing` pseudo-sequences spread as B is,
$P(x) \propto n(x) + \eta B(x)$. Where all sequences are of one symbol B is even over the alphabet, and
this is LDA's smoothed multinomial with $\eta/V$ for each of V words.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taskmix.sequences._corpus import distinct_sequences
from taskmix.sequences._generator import (
    SHARED,
    ExpectedStatistics,
    Floats,
    Next,
    Statistics,
    check_amount,
    check_complete,
    check_fixed,
    check_observes,
    keep_fixed,
    normalised,
    prefix_rows,
    safe_log,
    weighted_log,
)
from taskmix.sequences._sequences import Observed, Sequences


@dataclass(frozen=True, eq=False)
class PreparedMultinomial:
    """Sequences, and which outcome each is, once that has been looked up."""

    sequences: Sequences
    known: list[tuple[Outcomes, NDArray[np.int64]]] = field(default_factory=list)

    def rows(self, outcomes: Outcomes) -> NDArray[np.int64]:
        if not self.known or self.known[0][0] is not outcomes:
            self.known[:] = [(outcomes, outcomes.rows(self.sequences))]
        return self.known[0][1]


@dataclass(frozen=True, eq=False)
class MultinomialParameters:
    """The last of the probabilities is that of all sequences that are no outcome, together."""

    probabilities: Floats  # [generator, outcome + 1]
    outcomes: Outcomes = field(metadata=SHARED)


@dataclass(frozen=True, eq=False)
class MultinomialStatistics(Statistics):
    counts: Floats  # [generator, outcome + 1]


@dataclass(frozen=True, kw_only=True)
class Multinomial:
    """A probability for each whole sequence.

    >>> topic = Multinomial(smoothing=0.0)
    >>> prepared = topic.prepare(flatten_sequences([[0], [0], [0], [1]]))
    >>> learned = topic.start(prepared, np.ones((4, 1)), np.random.default_rng(0))
    >>> np.exp(topic.log_likelihood(learned, prepared)).ravel().round(6)
    array([0.75, 0.75, 0.75, 0.25])
    """

    smoothing: float = 1.0  # pseudo-sequences in all
    fixed: tuple[str, ...] = ()  # of `probabilities`

    def __post_init__(self) -> None:
        check_amount(smoothing=self.smoothing)
        check_fixed(self.fixed, ("probabilities",))

    @property
    def observes(self) -> Observed:
        return "symbols"

    @property
    def halting(self) -> bool:
        return True

    @property
    def additive(self) -> bool:
        return True

    def prepare(self, sequences: Sequences) -> PreparedMultinomial:
        check_observes(self, "symbols", sequences)
        check_complete(self, sequences)
        return PreparedMultinomial(sequences)

    def start(
        self, prepared: PreparedMultinomial, weights: Floats, generator: np.random.Generator
    ) -> MultinomialParameters:
        outcomes = _outcomes_of(prepared.sequences)
        plain = self._pseudo(outcomes)
        empty = MultinomialParameters(np.repeat(plain[None], weights.shape[1], axis=0), outcomes)
        return self._most_likely(empty, self.expect(empty, prepared, weights).statistics)

    def log_likelihood(
        self, parameters: MultinomialParameters, prepared: PreparedMultinomial
    ) -> Floats:
        outcomes, rows = parameters.outcomes, prepared.rows(parameters.outcomes)
        logs = np.ascontiguousarray(safe_log(parameters.probabilities).T)[rows]
        others = rows < 0
        if others.any():
            rest = outcomes.plain_rest
            lengths = prepared.sequences.lengths[others]
            shares = (
                outcomes.plain(lengths) - np.log(rest) if rest else np.full(len(lengths), -np.inf)
            )
            logs[others] += shares[:, None]
        return logs

    def expect(
        self, parameters: MultinomialParameters, prepared: PreparedMultinomial, weights: Floats
    ) -> ExpectedStatistics:
        counts = np.zeros((len(parameters.outcomes) + 1, weights.shape[1]))
        np.add.at(counts, prepared.rows(parameters.outcomes), weights)
        return ExpectedStatistics(MultinomialStatistics(np.ascontiguousarray(counts.T)))

    def maximise(
        self, parameters: MultinomialParameters, statistics: MultinomialStatistics
    ) -> MultinomialParameters:
        return keep_fixed(parameters, self._most_likely(parameters, statistics), self.fixed)

    def log_prior(self, parameters: MultinomialParameters) -> Floats:
        pseudo = self.smoothing * self._pseudo(parameters.outcomes)
        return np.asarray(weighted_log(pseudo, parameters.probabilities).sum(axis=1))

    def follow(self, parameters: MultinomialParameters, prepared: PreparedMultinomial) -> Next:
        outcomes, sequences = parameters.outcomes, prepared.sequences
        nodes = outcomes.nodes
        joint, following = self._tree(parameters)
        starts, rows = prefix_rows(sequences)
        depth = np.zeros(starts[-1], np.int64)
        depth[rows] = rows - np.repeat(starts[:-1], sequences.lengths)
        walks = [nodes.walk(sequences[row]) for row in range(len(sequences))]
        node = np.array([each for walk in walks for each in walk], dtype=np.int64)
        lost = node < 0
        log_prefix, found = safe_log(joint[node]), following[node]
        if lost.any():
            away = np.append(np.full(sequences.symbols, outcomes.going_on / sequences.symbols), 1.0)
            away[-1] -= outcomes.going_on
            found[lost] = safe_log(away)
            rest = outcomes.plain_rest
            plain = outcomes.plain_prefix(depth[lost]) - (np.log(rest) if rest else np.inf)
            log_prefix[lost] = plain[:, None] + safe_log(parameters.probabilities[:, -1])
        return Next(log_prefix, found)

    def sample(
        self,
        parameters: MultinomialParameters,
        which: int,
        prefix: NDArray[Any],
        length: int | None,
        generator: np.random.Generator,
    ) -> NDArray[Any]:
        outcomes = parameters.outcomes
        one = MultinomialParameters(parameters.probabilities[which : which + 1], outcomes)
        joint, following = self._tree(one)
        del joint
        symbols, end = list(prefix), outcomes.sequences.symbols
        node = outcomes.nodes.walk(prefix)[-1]
        while length is None or len(symbols) < length:
            if node >= 0:
                shares = np.exp(following[node, 0])
            else:
                shares = np.full(end + 1, outcomes.going_on / end)
                shares[-1] = 1 - outcomes.going_on
            symbol = int(generator.choice(end + 1, p=shares / shares.sum()))
            if symbol == end:
                break
            symbols.append(symbol)
            node = int(outcomes.nodes.children[node, symbol]) if node >= 0 else -1
        return np.array(symbols, dtype=np.int32)

    def _pseudo(self, outcomes: Outcomes) -> Floats:
        return np.append(np.exp(outcomes.plain(outcomes.sequences.lengths)), outcomes.plain_rest)

    def _most_likely(
        self, parameters: MultinomialParameters, statistics: MultinomialStatistics
    ) -> MultinomialParameters:
        pseudo = self._pseudo(parameters.outcomes)
        # Eq. 13, with pseudo-counts.
        shares = normalised(statistics.counts + self.smoothing * pseudo, pseudo)
        return MultinomialParameters(shares, parameters.outcomes)

    def _tree(self, parameters: MultinomialParameters) -> tuple[Floats, Floats]:
        """The probability to begin as each node [node, generator], and what follows it."""
        outcomes = parameters.outcomes
        nodes, lengths = outcomes.nodes, outcomes.sequences.lengths
        count, rest = len(nodes.children), outcomes.plain_rest
        own = parameters.probabilities[:, :-1].T  # [outcome, generator]
        others = parameters.probabilities[:, -1] / (rest or 1.0)
        joint = np.zeros((count, own.shape[1]))
        plain = np.zeros(count)
        outcome, node = nodes.passed.T
        np.add.at(joint, node, own[outcome])
        np.add.at(plain, node, np.exp(outcomes.plain(lengths))[outcome])
        left = np.maximum(np.exp(outcomes.plain_prefix(nodes.depths)) - plain, 0.0)
        joint += left[:, None] * others
        ending = np.zeros_like(joint)
        ending[nodes.ends] = own
        stops = np.exp(outcomes.plain(np.maximum(nodes.depths, 1)))
        stops[0] = 0.0
        stops[nodes.ends] = 0.0
        ending += stops[:, None] * others
        onward = np.exp(outcomes.plain_prefix(nodes.depths + 1))[:, None, None] * others
        onward = np.repeat(onward, nodes.children.shape[1], axis=1)
        onward = np.where((nodes.children >= 0)[..., None], joint[nodes.children], onward)
        following = np.concatenate([onward, ending[:, None]], axis=1)
        return joint, safe_log(normalised(following.transpose(0, 2, 1), np.array(0.0)))


def _outcomes_of(sequences: Sequences) -> Outcomes:
    first, _ = distinct_sequences(sequences)
    mean = float(sequences.lengths.mean())
    if mean == 1:  # words: all of the alphabet, seen or not
        every = np.arange(sequences.symbols, dtype=np.int32)
        return Outcomes(
            Sequences(every, np.arange(len(every) + 1), sequences.symbols), going_on=0.0
        )
    return Outcomes(sequences.select(first), going_on=1 - 1 / mean)


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Distinct sequences, and B: even symbols and a length that is geometric."""

    sequences: Sequences
    going_on: float  # the probability of B that a sequence goes on after a symbol

    def __len__(self) -> int:
        return len(self.sequences)

    @cached_property
    def place(self) -> dict[bytes, int]:
        return {self.sequences[row].tobytes(): row for row in range(len(self))}

    def rows(self, sequences: Sequences) -> NDArray[np.int64]:
        """Which outcome each sequence is; -1 where it is none."""
        keys = (sequences[row].tobytes() for row in range(len(sequences)))
        return np.fromiter((self.place.get(key, -1) for key in keys), np.int64, len(sequences))

    def plain(self, lengths: NDArray[np.int64]) -> Floats:
        """Logarithm of B for sequences of these lengths."""
        going_on, halting = self._logs
        steps = np.where(lengths > 1, (lengths - 1) * going_on if self.going_on else -np.inf, 0.0)
        return np.asarray(steps + halting - lengths * np.log(self.sequences.symbols))

    def plain_prefix(self, lengths: NDArray[np.int64]) -> Floats:
        """Logarithm of the probability under B to begin with a prefix of this length."""
        return np.where(lengths > 0, self.plain(lengths) - self._logs[1], 0.0)

    @property
    def plain_rest(self) -> float:
        """What B gives to all that is no outcome."""
        rest = 1 - float(np.exp(self.plain(self.sequences.lengths)).sum())
        return rest if rest > 1e-12 else 0.0

    @property
    def _logs(self) -> tuple[float, float]:
        return float(safe_log(np.array(self.going_on))), float(np.log1p(-self.going_on))

    @cached_property
    def nodes(self) -> Nodes:
        """Every prefix of every outcome."""
        symbols = self.sequences.symbols
        children: list[NDArray[Any]] = [np.full(symbols, -1)]
        ends, depths, passed = np.empty(len(self), np.int64), [0], []
        for row in range(len(self)):
            node = 0
            passed.append((row, node))
            for symbol in self.sequences[row]:
                if children[node][symbol] < 0:
                    children[node][symbol] = len(children)
                    children.append(np.full(symbols, -1))
                    depths.append(depths[node] + 1)
                node = int(children[node][symbol])
                passed.append((row, node))
            ends[row] = node
        return Nodes(np.array(children), np.array(depths), ends, np.array(passed))


@dataclass(frozen=True, eq=False)
class Nodes:
    """Prefixes as a tree. Node 0 is the empty one."""

    children: NDArray[np.int64]  # [node, symbol], -1 where no outcome goes on so
    depths: NDArray[np.int64]  # [node]
    ends: NDArray[np.int64]  # [outcome], the node of the whole
    passed: NDArray[np.int64]  # [..., 2], an outcome and a node on its way

    def walk(self, sequence: NDArray[Any]) -> list[int]:
        """The nodes of all prefixes; -1 once there is none."""
        node, found = 0, [0]
        for symbol in sequence:
            node = int(self.children[node, symbol]) if node >= 0 else -1
            found.append(node)
        return found
