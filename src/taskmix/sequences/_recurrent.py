r"""Recurrent networks that say what comes next, learned by weighted gradient steps.

    Crawford and Pineau (draft): "For other models, the objective can be maximized by stochastic
    gradient descent"; their section on recurrent networks is a heading without text.

The M-step takes a few steps of Adam (Kingma and Ba, 2015) up the weighted log-likelihood of each
generator, with a normal prior on the weights (`decay`). The moments of Adam are kept between M-steps.
A generator that ends lower than it began goes back to where it was and halves its step size, so the
bound never falls. A missing observation is read as such and is not judged.

The networks of all generators run side by side, their weights in one row each (`NetworkLayout`, `run`):

    Cho et al., "Learning Phrase Representations using RNN Encoder–Decoder", EMNLP 2014, Eqs. 5 to 8, in
    the variant of PyTorch's `nn.GRU`, where the reset gate acts after the matrix.

A network reads the last observation and says what comes next: logits of symbols and of the end, or a
mean and the logarithm of a variance for each number. Sequences are padded to the longest of a batch; at
time t a network has read t observations, so there is one time more: after the last it says whether the
sequence ends. torch is imported where it is used.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import OptionError
from taskmix.sequences._generator import (
    SHARED,
    ExpectedStatistics,
    Floats,
    Next,
    check_amount,
    check_fixed,
    check_observes,
    check_whole,
    prefix_rows,
    running_totals,
    take_generators,
)
from taskmix.sequences._normal import LOG_TWO_PI, Background, background
from taskmix.sequences._sequences import Observed, Sequences

if TYPE_CHECKING:
    from torch import Tensor


Passed = tuple["Tensor", "Tensor", "Tensor"]
_CELLS = 1 << 22  # numbers that a pass keeps at once, for each generator
_LARGEST = 14.0  # of a log-variance, in units of the data's own; beyond it gradients explode


@dataclass(frozen=True, eq=False)
class PreparedRecurrent:
    sequences: Sequences
    batches: list[NDArray[np.int64]]  # sequences of like length that are passed over together


@dataclass(frozen=True, eq=False)
class RecurrentParameters:
    weights: Floats  # [generator, weight]
    momentum: Floats  # [generator, weight], Adam's
    square: Floats  # [generator, weight], Adam's
    taken: Floats  # [generator], steps of Adam
    rate: Floats  # [generator], its step size
    behind: Background = field(metadata=SHARED)  # numbers are read and said relative to this


@dataclass(frozen=True, eq=False)
class WeightedSequences:
    """The data themselves: a gradient has no statistics."""

    parts: tuple[tuple[PreparedRecurrent, Floats], ...]

    def __add__(self, other: WeightedSequences) -> WeightedSequences:
        return WeightedSequences(self.parts + other.parts)

    def __mul__(self, factor: float) -> WeightedSequences:
        return WeightedSequences(tuple((data, factor * share) for data, share in self.parts))


@dataclass(frozen=True)
class NetworkLayout:
    """How the row of weights is cut. `inputs` are the rows of a table for symbols (`embedded`)."""

    inputs: int  # symbols, a beginning and a missing one; or two for each number
    embedded: int  # 0 where inputs are numbers
    hidden: int
    outputs: int

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        width = self.embedded or self.inputs
        table: dict[str, tuple[int, ...]] = {}
        if self.embedded:
            table["table"] = (self.inputs, self.embedded)
        return table | {
            "read": (width, 3 * self.hidden),
            "recur": (self.hidden, 3 * self.hidden),
            "read_bias": (1, 3 * self.hidden),
            "recur_bias": (1, 3 * self.hidden),
            "say": (self.hidden, self.outputs),
            "say_bias": (1, self.outputs),
        }

    @property
    def size(self) -> int:
        return sum(int(np.prod(shape)) for shape in self.shapes.values())

    def cut(self, weights: Tensor) -> dict[str, Tensor]:
        """[generator, ...] of each name."""
        parts, place = {}, 0
        for name, shape in self.shapes.items():
            size = int(np.prod(shape))
            parts[name] = weights[:, place : place + size].reshape(len(weights), *shape)
            place += size
        return parts

    def draw(self, count: int, generator: np.random.Generator) -> Floats:
        """Even within one over the root of the hidden size, as PyTorch begins; tables are normal."""
        bound = 1 / np.sqrt(self.hidden)
        weights = generator.uniform(-bound, bound, (count, self.size))
        table = self.inputs * self.embedded
        weights[:, :table] = 0.3 * generator.normal(size=(count, table))
        return weights


@dataclass(frozen=True, kw_only=True)
class Recurrent:
    """Gated recurrent networks over symbols or vectors.

    >>> network = Recurrent(hidden=4)
    >>> prepared = network.prepare(flatten_sequences([[0, 1]]))
    >>> start = network.start(prepared, np.ones((1, 1)), np.random.default_rng(0))
    >>> ahead = network.follow(start, prepared).log_probabilities  # [prefix, generator, symbol + 1]
    >>> np.exp(ahead).sum(axis=2).round(6).ravel()
    array([1., 1., 1.])
    """

    observes: Observed = "symbols"
    hidden: int = 32
    embedded: int = 16  # numbers that stand for a symbol
    steps: int = 10  # of Adam, in one M-step
    learning_rate: float = 0.01
    decay: float = 0.01  # weight of half the squared weights
    halting: bool = True  # of symbols
    device: str = "cpu"
    fixed: tuple[str, ...] = ()  # of `weights`

    def __post_init__(self) -> None:
        check_whole(hidden=self.hidden, embedded=self.embedded, steps=self.steps)
        check_amount(decay=self.decay, learning_rate=self.learning_rate)
        check_fixed(self.fixed, ("weights",))
        if self.observes not in ("symbols", "vectors"):
            raise OptionError(f"`observes` should be symbols or vectors. Found {self.observes!r}.")
        if self.observes == "vectors" and self.halting:
            object.__setattr__(self, "halting", False)  # vectors have no symbol for the end

    @property
    def additive(self) -> bool:
        return False

    def prepare(self, sequences: Sequences) -> PreparedRecurrent:
        check_observes(self, self.observes, sequences)
        order, batches, first = np.argsort(-sequences.lengths, kind="stable"), [], 0
        width = max(3 * self.hidden, sequences.symbols, 2 * sequences.dimension)
        while first < len(order):
            longest = int(sequences.lengths[order[first]]) + 1
            size = max(1, _CELLS // (longest * width))
            batches.append(order[first : first + size])
            first += size
        return PreparedRecurrent(sequences, batches)

    def start(
        self, prepared: PreparedRecurrent, weights: Floats, generator: np.random.Generator
    ) -> RecurrentParameters:
        sequences, count = prepared.sequences, weights.shape[1]
        behind = Background(np.zeros(0), np.zeros(0))
        if self.observes == "vectors":
            behind = background(sequences.values)
        drawn = self._layout(sequences).draw(count, generator)
        nothing = np.zeros_like(drawn)
        rate = np.full(count, self.learning_rate)
        first = RecurrentParameters(drawn, nothing, nothing, np.zeros(count), rate, behind)
        data = WeightedSequences(((prepared, weights),))
        for _ in range(3):  # without a first step or two all say the same
            first = self.maximise(first, data)
        return first

    def log_likelihood(
        self, parameters: RecurrentParameters, prepared: PreparedRecurrent
    ) -> Floats:
        import torch

        with torch.no_grad():
            return self._likelihood(parameters, prepared, self._tensor(parameters.weights))[0]

    def expect(
        self, parameters: RecurrentParameters, prepared: PreparedRecurrent, weights: Floats
    ) -> ExpectedStatistics:
        return ExpectedStatistics(WeightedSequences(((prepared, weights),)))

    def maximise(
        self, parameters: RecurrentParameters, statistics: WeightedSequences
    ) -> RecurrentParameters:
        if self.fixed:
            return parameters
        import torch

        mass = np.sum([shares.sum(axis=0) for _, shares in statistics.parts], axis=0)
        weights = self._tensor(parameters.weights).requires_grad_(True)
        momentum, square = parameters.momentum.copy(), parameters.square.copy()
        taken, start = parameters.taken.copy(), None
        for _ in range(self.steps):
            level = self._climb(parameters, statistics, weights)
            start = level if start is None else start
            assert weights.grad is not None
            slope = weights.grad.cpu().numpy() / np.maximum(mass, 1.0)[:, None]
            weights.grad = None
            taken += 1
            momentum = 0.9 * momentum + 0.1 * slope
            square = 0.99 * square + 0.01 * slope**2
            first = momentum / (1 - 0.9 ** taken[:, None])
            second = square / (1 - 0.99 ** taken[:, None])
            step = parameters.rate[:, None] * first / (np.sqrt(second) + 1e-8)
            with torch.no_grad():
                weights += self._tensor(step)
        with torch.no_grad():
            end = self._climb(parameters, statistics, weights)
        found = weights.detach().cpu().numpy()
        better = np.isfinite(end) & (end >= (start if start is not None else end))
        kept = better[:, None]
        return replace(
            parameters,
            weights=np.where(kept, found, parameters.weights),
            momentum=np.where(kept, momentum, 0.0),
            square=np.where(kept, square, 0.0),
            taken=np.where(better, taken, 0.0),
            rate=np.minimum(np.where(better, 1.05, 0.5) * parameters.rate, self.learning_rate),
        )

    def log_prior(self, parameters: RecurrentParameters) -> Floats:
        return np.asarray(-0.5 * self.decay * (parameters.weights**2).sum(axis=1))

    def follow(self, parameters: RecurrentParameters, prepared: PreparedRecurrent) -> Next:
        import torch

        with torch.no_grad():
            weights = self._tensor(parameters.weights)
            _, logs, said = self._likelihood(parameters, prepared, weights, keep=True)
        sequences = prepared.sequences
        log_prefix = running_totals(logs, sequences)
        if self.observes == "symbols":
            return Next(log_prefix, said)
        deviation = np.sqrt(parameters.behind.variance)
        mean, size = np.split(said, 2, axis=2)
        variance = np.exp(size) * parameters.behind.variance
        return Next(
            log_prefix,
            mean=parameters.behind.mean + deviation * mean,
            covariance=variance[..., None] * np.eye(sequences.dimension),
        )

    def sample(
        self,
        parameters: RecurrentParameters,
        which: int,
        prefix: NDArray[Any],
        length: int | None,
        generator: np.random.Generator,
    ) -> NDArray[Any]:
        one = take_generators(parameters, np.array([which]))
        symbols = self._symbols_of(parameters)
        made = list(prefix)
        while length is None or len(made) < length:
            values = np.array(made, np.int32 if symbols else np.float64)
            if not symbols:
                values = values.reshape(-1, len(parameters.behind.mean))
            given = Sequences(values, np.array([0, len(made)]), symbols)
            ahead = self.follow(one, self.prepare(given))
            if ahead.log_probabilities is None:
                assert ahead.mean is not None
                assert ahead.covariance is not None
                mean, covariance = ahead.mean[-1, 0], ahead.covariance[-1, 0]
                made.append(generator.multivariate_normal(mean, covariance))
                if length is None:
                    break
                continue
            shares = np.exp(ahead.log_probabilities[-1, 0])
            symbol = int(generator.choice(symbols + 1, p=shares / shares.sum()))
            if symbol == symbols:
                break
            made.append(symbol)
        if symbols:
            return np.array(made, np.int32)
        return np.array(made).reshape(-1, len(parameters.behind.mean))

    def _tensor(self, values: NDArray[Any]) -> Tensor:
        import torch

        return torch.tensor(values, device=self.device)

    def _layout(self, sequences: Sequences) -> NetworkLayout:
        if self.observes == "symbols":
            return NetworkLayout(
                sequences.symbols + 2, self.embedded, self.hidden, sequences.symbols + 1
            )
        return NetworkLayout(2 * sequences.dimension, 0, self.hidden, 2 * sequences.dimension)

    def _symbols_of(self, parameters: RecurrentParameters) -> int:
        """The alphabet, from the number of weights: it grows by one table row and one output."""
        if self.observes == "vectors":
            return 0
        least = NetworkLayout(2, self.embedded, self.hidden, 1).size
        each = self.embedded + self.hidden + 1
        return int(parameters.weights.shape[1] - least) // each

    def _climb(
        self, parameters: RecurrentParameters, data: WeightedSequences, weights: Tensor
    ) -> Floats:
        """The objective of each generator. Where weights want it, their gradient is added up batch by
        batch, so that only one batch is held at a time."""

        def add(level: Tensor) -> Floats:
            if level.requires_grad:
                level.sum().backward()  # type: ignore[no-untyped-call]
            return level.detach().cpu().numpy()

        total = add(-0.5 * self.decay * (weights**2).sum(dim=1)).copy()
        for prepared, shares in data.parts:
            for rows in prepared.batches:
                logs = self._batch(parameters, prepared.sequences, rows, weights)[0]
                total += add((logs * self._tensor(shares[rows].T)).sum(dim=1))
        return np.asarray(total)

    def _likelihood(
        self,
        parameters: RecurrentParameters,
        prepared: PreparedRecurrent,
        weights: Tensor,
        *,
        keep: bool = False,
    ) -> tuple[Floats, Floats, Floats]:
        """[sequence, generator]; by observation; and what is said after each prefix, if asked."""
        sequences, count = prepared.sequences, len(weights)
        starts, _ = prefix_rows(sequences)
        layout = self._layout(sequences)
        found = np.empty((len(sequences), count))
        logs = np.zeros((len(sequences.values), count))
        said = np.empty((starts[-1], count, layout.outputs) if keep else (0, count, 0))
        for rows in prepared.batches:
            totals, steps, outputs = self._batch(parameters, sequences, rows, weights)
            found[rows] = totals.cpu().numpy().T
            lengths = sequences.lengths[rows]
            inside = np.arange(steps.shape[2]) < lengths[:, None] + 1
            place = (starts[rows][:, None] + np.arange(steps.shape[2]))[inside]
            if keep:
                said[place] = outputs.cpu().numpy().transpose(1, 2, 0, 3)[inside]
            seen = np.arange(steps.shape[2]) < lengths[:, None]
            at = (sequences.starts[rows][:, None] + np.arange(steps.shape[2]))[seen]
            logs[at] = steps.cpu().numpy().transpose(1, 2, 0)[seen]
        return found, logs, said

    def _batch(
        self,
        parameters: RecurrentParameters,
        sequences: Sequences,
        rows: NDArray[np.int64],
        weights: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        layout = self._layout(sequences)
        if self.observes == "vectors":
            return pass_vectors(layout, weights, sequences, rows, parameters.behind)
        return pass_symbols(layout, weights, sequences, rows, halting=self.halting)


def pass_symbols(
    layout: NetworkLayout,
    weights: Tensor,
    sequences: Sequences,
    rows: NDArray[np.int64],
    *,
    halting: bool,
) -> Passed:
    """What is said are log-probabilities of symbols and the end. Nothing ends before it began."""
    import torch

    lengths, inside, place = _padded(sequences, rows)
    times, symbols = inside.shape[1], sequences.symbols
    padded = np.append(sequences.values, -1)[np.where(inside, place, -1)]
    before = np.full(padded.shape, symbols)  # the beginning
    before[:, 1:] = np.where(padded < 0, symbols + 1, padded)[:, :-1]
    said = run(layout, weights, _like(weights, before.astype(np.int64)))
    barred = np.zeros((times, symbols + 1))
    barred[: 1 if halting else times, -1] = -np.inf
    said = torch.log_softmax(said + _like(weights, barred), dim=-1)
    target, judged = padded.astype(np.int64), padded >= 0
    if halting:
        ends = (np.arange(times) == lengths[:, None]) & (lengths > 0)[:, None]
        target, judged = np.where(ends, symbols, target), judged | ends
    index = _like(weights, np.where(judged, target, 0))[None, ..., None]
    steps = said.gather(-1, index.expand(len(weights), -1, -1, 1))[..., 0]
    steps = steps.masked_fill(~_like(weights, judged), 0.0)
    return steps.sum(dim=-1), steps, said


def pass_vectors(
    layout: NetworkLayout,
    weights: Tensor,
    sequences: Sequences,
    rows: NDArray[np.int64],
    behind: Background,
) -> Passed:
    """What is said are means and log-variances, in units of the background."""
    import torch

    _, inside, place = _padded(sequences, rows)
    deviation = np.sqrt(behind.variance)
    values = (sequences.values - behind.mean) / deviation
    values = np.concatenate([values, np.full((1, values.shape[1]), np.nan)])
    values = values[np.where(inside, place, -1)]
    seen = ~np.isnan(values)
    values = np.where(seen, values, 0.0)
    before = np.zeros((*values.shape[:2], 2 * values.shape[2]))
    before[:, 1:] = np.concatenate([values, seen], axis=2)[:, :-1]
    mean, size = run(layout, weights, _like(weights, before)).chunk(2, dim=-1)
    size = size.clamp(-_LARGEST, _LARGEST)
    distance = (_like(weights, values) - mean) ** 2 * torch.exp(-size)
    each = -0.5 * (distance + size + LOG_TWO_PI) - _like(weights, np.log(deviation))
    steps = (each * _like(weights, seen.astype(np.float64))).sum(dim=-1)
    return steps.sum(dim=-1), steps, torch.cat([mean, size], dim=-1)


def _padded(
    sequences: Sequences, rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64]]:
    """Lengths, and for each sequence and time whether something is observed then, and where it is."""
    lengths = sequences.lengths[rows]
    times = np.arange(int(lengths.max(initial=0)) + 1)
    inside = times < lengths[:, None]
    return lengths, inside, np.where(inside, sequences.starts[rows][:, None] + times, 0)


def _like(weights: Tensor, values: NDArray[Any]) -> Tensor:
    import torch

    return torch.tensor(values, device=weights.device)


def run(layout: NetworkLayout, weights: Tensor, inputs: Tensor) -> Tensor:
    """What each network says after each of its inputs: [generator, sequence, time, output].

    `inputs` are codes [sequence, time] or numbers [sequence, time, input], the same for all.
    """
    import torch

    parts = layout.cut(weights)
    if layout.embedded:
        read = parts["table"] @ parts["read"] + parts["read_bias"]  # [generator, code, 3 hidden]
        moved = read[:, inputs]  # [generator, sequence, time, 3 hidden]
    else:
        moved = torch.einsum("sti,kih->ksth", inputs, parts["read"])
        moved = moved + parts["read_bias"][:, :, None]
    state = weights.new_zeros(len(weights), inputs.shape[0], layout.hidden)
    said = []
    for t in range(inputs.shape[1]):
        recurring = torch.baddbmm(parts["recur_bias"], state, parts["recur"])
        read_reset, read_keep, read_new = moved[:, :, t].chunk(3, dim=-1)
        reset, keep, new = recurring.chunk(3, dim=-1)
        candidate = torch.tanh(read_new + torch.sigmoid(read_reset + reset) * new)
        share = torch.sigmoid(read_keep + keep)
        state = candidate + share * (state - candidate)
        said.append(state)
    states = torch.stack(said, dim=2).flatten(1, 2)
    found = torch.baddbmm(parts["say_bias"], states, parts["say"])
    return found.reshape(len(weights), *inputs.shape[:2], layout.outputs)
