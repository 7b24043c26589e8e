"""Which mixture: kind, order, number of generators, smoothing and own part, by sequences held out.

Every mixture that is tried is fitted a few times, each time without some of the sequences
(`assign_folds`), and every sequence is judged once while it was left out. One thing is changed at a
time: first the kind with one generator (longer contexts, more states) for as long as it pays, then the
number of generators, doubled for as long as it pays, then how strongly generators are held to their
prior. What was tried is kept with its interval. The best mean is chosen, but several generators only
where they are better than one by more than a standard error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from taskmix.errors import InputError, OptionError
from taskmix.numerics import paired_interval
from taskmix.sequences._corpus import number_tasks
from taskmix.sequences._crossing import ForeseenRest, assign_folds, folds_for, learn_own
from taskmix.sequences._estimator import SequenceMixture
from taskmix.sequences._fitted import Tasks
from taskmix.sequences._gaussian import Gaussian
from taskmix.sequences._gaussian_hidden_markov import GaussianHiddenMarkov
from taskmix.sequences._generator import Generator, check_whole
from taskmix.sequences._hidden_markov import HiddenMarkov
from taskmix.sequences._linear_dynamics import LinearDynamics
from taskmix.sequences._markov import Markov
from taskmix.sequences._own_chains import OwnStrengths
from taskmix.sequences._sequences import learn_alphabet
from taskmix.sequences._tried import MixtureChoice, TriedMixture, generator_words


class Fitting(Protocol):
    """Fits a model and gives what `result` then says of it.

    The name says what the fit is for. Who has done it before may give the model what it had learned.
    """

    def __call__(
        self,
        name: str,
        model: Any,
        sequences: Sequence[Any],
        tasks: Tasks,
        result: Callable[[], Any],
    ) -> Any: ...


def fit_now(
    name: str, model: Any, sequences: Sequence[Any], tasks: Tasks, result: Callable[[], Any]
) -> Any:
    """Fits whatever the name is."""
    model.fit(sequences, tasks)
    return result()


BUDGET = 20  # mixtures that are tried
_PATIENCE = 2  # numbers of generators in a row that did not pay
_ITERATIONS = 40  # of each fit: enough to compare
_LONGEST = 5  # the longest contexts and
_STATES = (4, 8, 16)  # the numbers of states that are tried
_HELD = (10.0, 100.0, 1000.0)  # pseudo-counts of a context; of other kinds: `narrow_smoothing`
_DEVIATES = 1.96  # standard errors in half of a 95 % interval
_MOST = 4000  # sequences that are used for choosing


def choose_mixture(
    model: SequenceMixture,
    sequences: Sequence[Any],
    tasks: Tasks,
    *,
    generator: Generator | None = None,  # None: the kind is chosen, too
    generators: int | None = None,  # None: their number is chosen
    vectors: bool = False,  # what the sequences are, where the kind is chosen
    budget: int = BUDGET,
    on_progress: Callable[[str], None] | None = None,
    fitting: Fitting = fit_now,
) -> MixtureChoice:
    """The mixture that foresees sequences best which were left out; `model` has the other options.

    `fitting` is how each fit is done: `RecordedFits` keeps what is done.

    >>> model = SequenceMixture(alpha=0.1, random_state=0)
    >>> tasks = ["x"] * 4 + ["y"] * 4
    >>> words = ["aaaa"] * 4 + ["bbbb"] * 4
    >>> choose_mixture(model, words, tasks, generator=Markov(), budget=2).tried[1].generators
    2
    """
    check_whole(budget=budget)
    trial = _Trial(model, sequences, tasks, budget, on_progress, fitting)
    first = [generator] if generator is not None else _first_kinds(vectors)
    count = generators or 1
    for kind in first:
        trial.run(kind, count)
    if generator is None:
        for family in _families(trial, vectors):
            trial.climb(((kind, count) for kind in family), patience=1)
    if generators is None:
        trial.climb(((trial.best.generator, 2**power) for power in range(1, 12)), _PATIENCE)
        kind = trial.best.generator
        if generator is None and isinstance(kind, Markov) and kind.order > 1:
            # Short contexts can be divided among more generators.
            trial.climb(((Markov(order=1), 4 * 2**power) for power in range(10)), _PATIENCE)
    if generator is None:
        if isinstance(trial.leading.generator, Markov):
            trial.climb(((kind, trial.leading.generators) for kind in _held(trial)), patience=2)
        else:
            trial.narrow_smoothing()
        if generators is None and trial.best.generators > 1:
            grown = trial.best.generators
            trial.climb(((trial.best.generator, grown * 2**power) for power in (1, 2)), 1)
    return trial.choice()


def find_symbols(sequences: Sequence[Any], model: SequenceMixture) -> Any:
    """All symbols that occur, so that a part of the sequences is not taken for the whole alphabet."""
    if model.symbols is not None or model.observes == "vectors":
        return model.symbols
    alphabet = learn_alphabet(sequences)
    if alphabet is not None:
        return alphabet.symbols
    return max((int(np.nanmax(np.asarray(each, np.float64))) for each in sequences), default=0) + 1


def _first_kinds(vectors: bool) -> list[Generator]:
    if vectors:
        return [Gaussian(), GaussianHiddenMarkov(states=3), LinearDynamics(states=2)]
    return [Markov(order=1)]


def _families(trial: _Trial, vectors: bool) -> Iterable[Iterable[Generator]]:
    """Kinds one after the other, each as long as it pays."""
    if not vectors:
        yield (Markov(order=order) for order in range(2, _LONGEST + 1))
        yield (HiddenMarkov(states=states) for states in _STATES)
        return
    best = trial.best.generator
    if isinstance(best, Gaussian):
        yield (replace(best, components=count) for count in (2, 4, 8))
    elif isinstance(best, GaussianHiddenMarkov):
        yield (replace(best, states=count) for count in (5, 8, 12))
    else:
        yield (LinearDynamics(states=count) for count in (4, 6))
    best = trial.best.generator
    if isinstance(best, Gaussian | GaussianHiddenMarkov):
        yield (replace(best, covariance="diagonal"),)


def _held(trial: _Trial) -> Iterable[Generator]:
    """The leading chain, held less and more strongly to its prior."""
    kind: Any = trial.leading.generator
    yield from (replace(kind, smoothing=each) for each in _HELD)


@dataclass
class _Trial:
    """Runs what is tried, and remembers it."""

    model: SequenceMixture
    sequences: Sequence[Any]
    tasks: Tasks
    budget: int
    on_progress: Callable[[str], None] | None
    fitting: Fitting
    tried: list[TriedMixture] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        names, codes = number_tasks(self.tasks)
        if len(codes) < 4:
            raise InputError(
                "There should be at least 4 sequences to hold some out. Found "
                f"{len(codes)}. Say the kind and number of generators."
            )
        generator = np.random.default_rng(0)
        rows = np.arange(len(codes))
        if len(rows) > _MOST:
            rows = np.sort(generator.permutation(len(codes))[:_MOST])
        self.names = [names[code] for code in codes[rows]]
        self.rows = [self.sequences[row] for row in rows.tolist()]
        self.tasks_seen, self.codes = number_tasks(self.names)
        self.fold = assign_folds(self.codes, folds_for(len(rows)), generator)

    @property
    def best(self) -> TriedMixture:
        return max(self.tried, key=lambda each: each.log_likelihood)

    @property
    def leading(self) -> TriedMixture:
        """The best of those with several generators, if there are any: those can over-fit."""
        several = [each for each in self.tried if each.generators > 1]
        return max(several or self.tried, key=lambda each: each.log_likelihood)

    @property
    def spent(self) -> bool:
        return len(self.tried) >= self.budget

    def climb(self, ways: Iterable[tuple[Generator, int]], patience: int) -> None:
        """Tries one after the other until so many in a row are no better than the best before."""
        idle = 0
        for generator, generators in ways:
            if self.spent or generators > max(1, len(self.rows) // 2):
                return
            before = self.best.log_likelihood
            found = self.run(generator, generators)
            idle = 0 if found is not None and found.log_likelihood > before else idle + 1
            if idle >= patience:
                return

    def narrow_smoothing(self) -> None:
        """Tries pseudo-counts around those of the leading kind."""
        start = self.leading

        def score(generator: Generator) -> float:
            found = None if self.spent else self.run(generator, start.generators)
            return -np.inf if found is None else found.log_likelihood

        narrow_smoothing(start.generator, score, known=start.log_likelihood)

    def run(self, generator: Generator, generators: int) -> TriedMixture | None:
        """Fits it without each part in turn; None where it cannot be fitted to these sequences."""
        if self.spent and self.tried:
            return None
        words = f"{generator_words(generator)}, {generators} generators"
        if self.on_progress is not None:
            self.on_progress(words)
        model = SequenceMixture(**self.model.get_params(deep=False))
        model.set_params(
            generator=generator, n_generators=generators, own=False, n_init=1, on_state=None,
            max_iter=min(self.model.max_iter, _ITERATIONS), start=None,
        )  # fmt: skip
        model.set_params(symbols=find_symbols(self.rows, model))
        try:
            parts = [self._part(model, words, number) for number in range(self.fold.max() + 1)]
        except (InputError, OptionError) as error:
            if not self.tried and generator is not None and self.model.generator is not None:
                raise
            self.refused.append(f"{words}: {error}")
            return None
        whole = model._begin(self.rows, None)[1]
        weight, halting = np.ones(len(whole)), model.halting
        mixed = np.empty(len(whole))
        for number, part in enumerate(parts):
            mixed[self.fold == number] = part.mixed
        given = self.model.own
        order = given.order if isinstance(given, OwnStrengths) else OwnStrengths().order
        held, scores = learn_own(
            whole, self.tasks_seen, self.codes, weight, self.fold, parts, order, halting=halting
        )
        if given is False or held is None or mixed.sum() > scores.sum():
            held, scores = False, mixed  # type: ignore[assignment]
        size = int(whole.lengths.sum() + halting * len(whole))
        found = TriedMixture(generator, generators, held or False, scores, size)
        self.tried.append(found)
        return found

    def _part(self, model: SequenceMixture, words: str, number: int) -> ForeseenRest:
        inside, outside = np.flatnonzero(self.fold != number), np.flatnonzero(self.fold == number)
        fitted = SequenceMixture(**model.get_params(deep=False))
        rows, names = [self.rows[row] for row in inside], [self.names[row] for row in inside]
        others = [self.rows[row] for row in outside]
        theirs = [self.names[row] for row in outside]
        folds = int(self.fold.max()) + 1
        found: ForeseenRest = self.fitting(
            f"{words}, fold {number + 1} of {folds}",
            fitted,
            rows,
            names,
            partial(_foreseen, fitted, rows, names, others, theirs),
        )
        return found

    def choice(self) -> MixtureChoice:
        if not self.tried:
            raise InputError(f"Some generator should fit the sequences. Found {self.refused[0]}")
        best = self.best
        one = [each for each in self.tried if each.generators == 1]
        if one and best.generators > 1:
            # Several generators have to pay by more than a standard error, or one is as good.
            simple = max(one, key=lambda each: each.log_likelihood)
            gain = paired_interval(best.scores, simple.scores)
            if gain.mean < (gain.high - gain.low) / (2 * _DEVIATES):
                best = simple
        tried = [
            replace(
                each, behind=None if each is best else paired_interval(best.scores, each.scores)
            )
            for each in self.tried
        ]
        return MixtureChoice(tuple(tried), best, tuple(self.refused), self.spent)


def _foreseen(
    fitted: SequenceMixture, rows: list[Any], names: list[Any], others: list[Any], theirs: list[Any]
) -> ForeseenRest:
    own = fitted.adapted(fitted._gather(rows), names, np.ones(len(rows)))
    return fitted.left_out(fitted._gather(others), theirs, own)


_FACTOR, _FINEST = 10.0, 1.5  # the first step up or down, and the last


def narrow_smoothing(
    generator: Generator, score: Callable[[Generator], float], *, known: float | None = None
) -> Generator:
    """The generator with the pseudo-counts of the highest score, up or down by a factor of ten for as
    long as it pays and then by its root. Each is asked for once; `known` is the score of the generator
    as it is. One without pseudo-counts comes back as it came.

    >>> from taskmix.sequences import Gaussian
    >>> narrow_smoothing(Gaussian(smoothing=1.0), lambda each: -abs(each.smoothing - 30)).smoothing
    31.6
    """
    kind: Any = generator
    start = getattr(kind, "smoothing", None)
    if not start:
        return generator
    scores = {} if known is None else {0.0: known}  # by the logarithm of the factor

    def changed(place: float) -> Any:
        return replace(kind, smoothing=float(f"{start * np.exp(place):.3g}")) if place else kind

    def level(place: float) -> float:
        if place not in scores:
            scores[place] = score(changed(place))
        return scores[place]

    best: Generator = changed(
        _highest(level, first=float(np.log(_FACTOR)), finest=float(np.log(_FINEST)))
    )
    return best


def _highest(level: Callable[[float], float], *, first: float, finest: float) -> float:
    """Where a function with one peak is highest, from 0 on: steps are halved where none of the two
    leads up."""
    at, step = 0.0, first
    while step >= finest:
        beside = max((at - step, at + step), key=level)
        if level(beside) > level(at):
            at = beside
        else:
            step /= 2
    return at
