"""Fits that are runs of a study: stopped or killed at any moment, they go on with the same bits.

    fits = RecordedFits(study=Study("study"), data=tasks.content)
    fits("shared generators", model, sequences, names, lambda: model.score(others, their_names))

What a fit yields after an iteration (`fit_states`) is a checkpoint of its run every few seconds. What it
has learned, and what was asked of it then, is kept when it is done: asking twice costs once.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sized
from dataclasses import dataclass
from typing import Any

from taskmix.errors import OptionError, RunError
from taskmix.numerics import state_to_tree
from taskmix.records import RecordWriter, RunFolder, Study
from taskmix.sequences._comparison import SeparateModels, SeparateState, SequenceModel
from taskmix.sequences._corpus import number_tasks
from taskmix.sequences._em import SHORT
from taskmix.sequences._estimator import SequenceMixture
from taskmix.sequences._fitted import Tasks
from taskmix.sequences._restarts import FitState
from taskmix.sequences._stochastic import BatchState
from taskmix.sequences._storage import from_tree, other_form

FORMAT = 2  # of the specification; a change in what a fit does with it gets a new number
_SAVE_EVERY = 10.0  # seconds, of which a kill may cost as many
_NO_OPTIONS = ("n_jobs", "on_state")  # they change neither the model nor what it means


class FitStoppedError(RunError):
    """A fit that was asked to stop has stopped.

    >>> from taskmix.records import Study
    >>> fits = RecordedFits(study=Study("fits"), data="abc", should_stop=lambda: True)
    >>> fits("it", SequenceMixture(Markov(), 1, random_state=0), ["ab"], ["x"], lambda: None)
    Traceback (most recent call last):
    taskmix.sequences...FitStoppedError: The fit in ... was stopped. Fit again to go on.
    """


@dataclass(frozen=True, kw_only=True)
class RecordedFits:
    """Fits models into a study, each named by its data, its options and what it is for.

    >>> from taskmix.records import Study
    >>> model = SequenceMixture(Markov(), 1, random_state=0)
    >>> fits = RecordedFits(study=Study("fits"), data="abc")
    >>> fits("it", model, ["ab", "ab"], ["x", "x"], lambda: model.complete("a", "x")[0])
    'ab'
    >>> [run.status for run in Study("fits").summaries()]
    ['finished']
    """

    study: Study
    data: str  # names the sequences: a hash of them
    fresh: bool = False  # start over whatever there is
    should_stop: Callable[[], bool] | None = None  # asked after every iteration
    save_every: float = _SAVE_EVERY
    on_note: Callable[[str], object] = warnings.warn  # of damage and what became of it
    types: tuple[type, ...] = ()  # the dataclasses of generators of your own

    def __call__(
        self,
        name: str,
        model: SequenceModel,
        sequences: Sized,
        tasks: Tasks,
        result: Callable[[], Any],
    ) -> Any:
        """Fits the model, or gives it what it had learned, and what `result` says of it then."""
        specification, seed = self.specification(name, model), _seed_of(model)
        folder = self.study.run(specification)
        with folder.claim(fresh=self.fresh) as claim:
            if claim.outcome == "finished":
                return self._restored(folder, model)
            writer = claim.writer
            if writer is None:
                raise RunError(
                    f"The fit in `{folder.path}` should have one writer. Found it busy: another "
                    "process is at it. Wait until it is done."
                )
            try:
                writer.start(
                    specification=specification,
                    seed=seed,
                    label=name,
                    tasks=_described(tasks),
                    steps=_planned(_fitted_mixture(model), len(sequences)),
                )
                for note in writer.notes:
                    self.on_note(note)
                return self._fit(folder, writer, model, sequences, tasks, result)
            except Exception as error:
                writer.fail(f"{type(error).__name__}: {error}")
                raise

    def specification(self, name: str, model: SequenceModel) -> dict[str, object]:
        """Everything that determines the fit."""
        options = _fitted_mixture(model).get_params(deep=False)
        return {
            "format": FORMAT,
            "kind": "sequences",
            "data": self.data,
            "fit": name,
            "model": type(model).__name__,
            "options": {key: options[key] for key in options if key not in _NO_OPTIONS},
        }

    def _fit(
        self,
        folder: RunFolder,
        writer: RecordWriter,
        model: SequenceModel,
        sequences: Any,
        tasks: Any,
        result: Callable[[], Any],
    ) -> Any:
        state: Any = None
        if writer.resumed is not None:
            state = from_tree(writer.resumed.state, folder.path, self.types)
            if not isinstance(state, FitState | BatchState | SeparateState):
                raise other_form(folder.path)
        saved = time.monotonic()
        states = model.fit_states(sequences, tasks, resume=state)
        for state in states:
            if state.bound is not None:
                writer.add_scores(state.done, [_score(state.bound)])
            stop = self.should_stop is not None and self.should_stop()
            if stop or time.monotonic() - saved >= self.save_every:
                writer.commit(
                    state.done, state_to_tree(state, named=True), best=None, best_step=None
                )
                saved = time.monotonic()
            if stop:
                writer.stop()
                raise FitStoppedError(
                    f"The fit in `{folder.path}` was stopped. Fit again to go on."
                )
        found = result()
        writer.finish(
            scores=[] if state.bound is None else [_score(state.bound)],
            best_step=None,
            step=state.done,
            best={
                "learned": state_to_tree(model.learned(), named=True),
                "result": state_to_tree(found, named=True),
            },
        )
        return found

    def _restored(self, folder: RunFolder, model: SequenceModel) -> Any:
        tree: Any = folder.best()
        try:
            model.restore(from_tree(tree["learned"], folder.path, self.types))
            return from_tree(tree["result"], folder.path, self.types)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise other_form(folder.path) from error


def _fitted_mixture(model: SequenceModel) -> SequenceMixture:
    """The mixture whose options are those of the fit."""
    return model.model if isinstance(model, SeparateModels) else model


def _seed_of(model: SequenceModel) -> int:
    seed = _fitted_mixture(model).random_state
    if type(seed) is not int:
        raise OptionError(
            "`random_state` should be a whole number where a fit is recorded, or it could not be "
            f"gone on with. Found {seed!r}."
        )
    return seed


def _described(tasks: Tasks) -> list[dict[str, object]]:
    """For the record, whose tasks are named by strings."""
    names, codes = number_tasks(tasks)
    sizes = [0] * len(names)
    for code in codes.tolist():
        sizes[code] += 1
    return [
        {"name": name if isinstance(name, str) else repr(name), "sizes": {"train": size}}
        for name, size in zip(names, sizes, strict=True)
    ]


def _planned(mixture: SequenceMixture, count: int) -> int:
    """Iterations of all starts, or batches, if nothing converges before."""
    if mixture.batch_size is not None:
        return mixture.max_iter * -(-count // mixture.batch_size)
    starts, whole = mixture.n_init, mixture.max_iter
    compared = starts * min(SHORT, whole) if starts > 1 else 0
    return starts * mixture.annealing + compared + whole


def _score(bound: float) -> tuple[str, str, str, float]:
    return "all", "train", "bound", bound
