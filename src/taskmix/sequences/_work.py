"""Everything that is done for one folder of tasks: choose, fit, keep, compare and write down.

Whatever is in the folder already is not done again; whatever is interrupted is gone on with.

`MixtureRecipe` is what determines a mixture besides its data.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taskmix.records import specification_hash
from taskmix.sequences._choice import BUDGET, choose_mixture, find_symbols
from taskmix.sequences._comparison import (
    SHARED_NAME,
    MixtureComparison,
    compare_with_baselines,
    make_baselines,
)
from taskmix.sequences._estimator import SequenceMixture
from taskmix.sequences._figures import HeldOutFigures, held_out_figures
from taskmix.sequences._folder import MixtureFolder, SequenceReport
from taskmix.sequences._gaussian import Gaussian
from taskmix.sequences._generator import Generator, check_whole
from taskmix.sequences._held_out_scores import calibrate_scores
from taskmix.sequences._markov import Markov
from taskmix.sequences._record import RecordedFits
from taskmix.sequences._splits import SequenceData
from taskmix.sequences._storage import load_mixture, save_mixture
from taskmix.sequences._tried import MixtureChoice, generator_words

CALIBRATION_FOLDS = 3  # of a command: each is a fit
Tell = Callable[[int, float], None]  # an iteration and its bound
PageWriter = Callable[[SequenceMixture, tuple[HeldOutFigures, ...], tuple[str, ...], Path], Path]


def _is_calibrated(path: Path) -> bool:
    return load_mixture(path).reference_ is not None


@contextmanager
def unwatched(iterations: int) -> Iterator[Tell]:
    yield lambda iteration, bound: None


@dataclass(frozen=True, kw_only=True)
class MixtureWork:
    """A mixture of the tasks in `data`, kept in `folder`.

    >>> from pathlib import Path
    >>> part = TaskSequences(["ab", "ba", "bb"], ["x", "y", "x"])
    >>> work = MixtureWork(
    ...     recipe=MixtureRecipe(generator=Markov(), generators=1, iterations=2, restarts=1),
    ...     data=SequenceData(part, part, "symbols", content="abc"), folder=MixtureFolder(Path("out")))
    >>> work.learn().tasks_
    ('x', 'y')
    """

    recipe: MixtureRecipe
    data: SequenceData
    folder: MixtureFolder
    fresh: bool = False  # start over whatever there is
    folds: int = 0  # of the calibration that p-values need; 0: none
    workers: int = 1  # threads
    should_stop: Callable[[], bool] | None = None
    on_fit: Callable[[str], None] | None = None  # what a fit that begins is for
    on_choice: Callable[[MixtureChoice], None] | None = None
    on_note: Callable[[str], object] = warnings.warn
    watch: Callable[[int], AbstractContextManager[Tell]] = (
        unwatched  # the fit of the mixture itself
    )

    @property
    def name(self) -> str:
        return self.recipe.name(self.data.content)

    def check(self) -> None:
        """Raises where a file of somebody else is in the way; looks only, and writes nothing."""
        self.folder.check(self.name)

    def learn(self) -> SequenceMixture:
        """The mixture, read where it was learned before."""
        if not self.fresh and self.folder.model(self.name).exists():
            return load_mixture(self.folder.model(self.name))
        with self._recorded() as fits:
            return self._learned(fits)[0]

    def describe(
        self, *, command: str = "", baselines: bool = True, write_page: PageWriter | None = None
    ) -> SequenceReport:
        """Its figures and, with `baselines`, those of models that do not share.

        `write_page` is given the mixture, the held-out figures, what was tried in words and where the
        page goes.
        """
        with self._recorded() as fits:
            model, choice = self._learned(fits)
            known = None if self.fresh else self.folder.document(self.name)
            if known is not None:
                lacks_rows = baselines and not known.rows
                lacks_page = write_page is not None and known.page is None
                if not lacks_rows and not lacks_page:
                    return known
            figures = held_out_figures(self._compared(model, fits) if baselines else None)
            words = () if choice is None else choice.words()
            page = None
            if write_page is not None:
                page = write_page(model, figures, words, self.folder.page)
            document = self._document(model, choice, figures, command, page)
            self.folder.write_document(document)  # last: it says that all is done
            return document

    @contextmanager
    def _recorded(self) -> Iterator[RecordedFits]:
        with self.folder.claimed() as study:
            yield RecordedFits(
                study=study,
                data=self.data.content,
                fresh=self.fresh,
                should_stop=self.should_stop,
                on_note=self.on_note,
            )

    def _learned(self, fits: RecordedFits) -> tuple[SequenceMixture, MixtureChoice | None]:
        train, vectors = self.data.train, self.data.observes == "vectors"
        model = self.recipe.model(train.sequences, vectors=vectors, workers=self.workers)
        choice = None
        if self.recipe.chooses:
            choice = choose_mixture(
                model,
                train.sequences,
                train.tasks,
                generator=self.recipe.generator,
                generators=self.recipe.generators,
                vectors=vectors,
                budget=self.recipe.budget,
                on_progress=self.on_fit,
                fitting=fits,
            )
            if self.on_choice is not None:
                self.on_choice(choice)
            best = choice.best
            model.set_params(generator=best.generator, n_generators=best.generators, own=best.own)
        with self.watch(model.max_iter) as tell:
            model.set_params(on_state=lambda state: tell(state.iteration, state.bound))
            fits(SHARED_NAME, model, train.sequences, train.tasks, lambda: None)
        model.set_params(on_state=None)
        path = self.folder.model(self.name)
        if self.folds:
            calibrate_scores(
                model,
                train.sequences,
                train.tasks,
                folds=self.folds,
                on_progress=self.on_fit,
                fitting=fits,
            )
        if self.fresh or not path.exists() or (self.folds and not _is_calibrated(path)):
            save_mixture(model, path)
        return model, choice

    def _compared(self, model: SequenceMixture, fits: RecordedFits) -> MixtureComparison:
        train, held_out = self.data.train, self.data.held_out.of_tasks(set(model.tasks_))
        return compare_with_baselines(
            model,
            train.sequences,
            train.tasks,
            held_out.sequences,
            held_out.tasks,
            models=make_baselines(model) | {SHARED_NAME: model},
            on_progress=self.on_fit,
            fitting=fits,
        )

    def _document(
        self,
        model: SequenceMixture,
        choice: MixtureChoice | None,
        figures: tuple[HeldOutFigures, ...],
        command: str,
        page: Path | None,
    ) -> SequenceReport:
        shares = zip(model.tasks_, model.theta_.tolist(), strict=True)
        return SequenceReport(
            generators=model.bank_.count,
            kind=" and ".join(generator_words(block) for block in model.bank_.blocks),
            own=model.own_ is not None,
            tried=() if choice is None else tuple(each.to_json() for each in choice.tried),
            bound=float(model.bounds_[-1]),
            iterations=int(model.n_iter_),
            alpha=tuple(model.alpha_.tolist()),
            theta={str(task): tuple(row) for task, row in shares},
            rows=figures,
            name=self.name,
            command=command,
            model=str(self.folder.model(self.name)),
            page=None if page is None else str(page),
        )


# Of what names a model's file: another number, and every mixture is learned again. 1: version 0.1.
_FORMAT = 4


@dataclass(frozen=True, kw_only=True)
class MixtureRecipe:
    """The kind of generators, how many of them, and how they are learned.

    >>> recipe = MixtureRecipe(generator=Markov(), generators=4)
    >>> recipe.name("a hash of the data") == MixtureRecipe(generator=Markov()).name("a hash of the data")
    False
    """

    generator: Generator | None = None  # None: the kind is chosen by held-out likelihood
    generators: int | None = None  # None: their number is
    own: bool = True  # whether tasks keep something of their own
    budget: int = BUDGET  # mixtures that are tried where something is to be chosen
    iterations: int = 100
    restarts: int = 3
    annealing: int = 0
    batch_size: int | None = None  # with one, stochastic EM
    seed: int = 0

    def __post_init__(self) -> None:
        check_whole(budget=self.budget)
        if self.generators is not None:
            check_whole(generators=self.generators)

    @property
    def chooses(self) -> bool:
        """Whether something is left to held-out likelihood."""
        return self.generator is None or self.generators is None

    def name(self, data: str) -> str:
        """Sixteen hexadecimal digits for what is learned from data of this name."""
        return specification_hash(
            {
                "format": _FORMAT,
                "data": data,
                "generator": "auto" if self.generator is None else self.generator,
                "generators": "auto" if self.generators is None else str(self.generators),
                "own": self.own,
                "budget": self.budget if self.chooses else None,
                "iterations": self.iterations,
                "restarts": self.restarts,
                "annealing": self.annealing,
                "batch_size": self.batch_size,
                "seed": self.seed,
            }
        )

    def model(
        self, sequences: Sequence[Any], *, vectors: bool = False, workers: int = 1
    ) -> SequenceMixture:
        """A mixture that has learned nothing and knows the symbols of all these sequences."""
        usual = Gaussian() if vectors else Markov()
        model = SequenceMixture(
            usual if self.generator is None else self.generator,  # until it is chosen
            self.generators or 1,
            own=self.own,
            max_iter=self.iterations,
            n_init=self.restarts,
            annealing=self.annealing,
            batch_size=self.batch_size,
            n_jobs=workers,
            random_state=self.seed,
        )
        model.set_params(symbols=find_symbols(sequences, model))
        return model
