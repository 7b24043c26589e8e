"""A mixture of sequences that are streamed: fitted, kept and judged in the folder of a command."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from copy import copy
from dataclasses import dataclass

from taskmix.sequences._comparing import (
    SHARED_NAME,
    HeldOutFigures,
    MixtureChoice,
    SequenceModel,
    calibrate_scores,
    choose_mixture,
    compare_with_baselines,
    generator_words,
    held_out_figures,
)
from taskmix.sequences._estimator import SequenceMixture
from taskmix.sequences._from_tasks._recipe import MixtureRecipe
from taskmix.sequences._from_tasks._stream import SequenceStream
from taskmix.sequences._from_tasks._work import PageWriter, Tell, unwatched
from taskmix.sequences._keeping import MixtureDocument, MixtureFolder, RecordedFits, save_mixture

_LOOKED_AT = 3_000  # sequences that kind and number of generators are chosen on


@dataclass(frozen=True, kw_only=True)
class StreamWork:
    """A mixture of what a stream reads, kept in `folder`; its memory does not grow with the files.

    >>> from pathlib import Path
    >>> _ = Path("x.txt").write_text(chr(10).join(["a b", "b b"] * 20))
    >>> work = StreamWork(
    ...     recipe=MixtureRecipe(generator=Markov(), generators=1, iterations=2, batch_size=10),
    ...     stream=SequenceStream(path=Path("x.txt")), folder=MixtureFolder(Path("out")))
    >>> work.describe().rows[0].model
    'shared generators'
    """

    recipe: MixtureRecipe
    stream: SequenceStream
    folder: MixtureFolder
    fresh: bool = False
    workers: int = 1
    should_stop: Callable[[], bool] | None = None
    on_fit: Callable[[str], None] | None = None  # what a fit that begins is for
    on_choice: Callable[[MixtureChoice], None] | None = None
    on_note: Callable[[str], object] = warnings.warn
    watch: Callable[[int], AbstractContextManager[Tell]] = unwatched

    @property
    def name(self) -> str:
        return self.recipe.name(self.stream.content)

    def check(self) -> None:
        """Raises where a file of somebody else is in the way; looks only, and writes nothing."""
        self.folder.check(self.name)

    def describe(
        self, *, command: str = "", write_page: PageWriter | None = None
    ) -> MixtureDocument:
        """Fits, and gives the figures on the held-out sequences."""
        with self.folder.claimed() as study:
            fits = RecordedFits(
                study=study,
                data=self.stream.content,
                fresh=self.fresh,
                should_stop=self.should_stop,
                on_note=self.on_note,
            )
            model = self.recipe.model([], workers=self.workers)
            model.set_params(symbols=self.stream.symbols)
            choice = self._chosen(model, fits) if self.recipe.chooses else None
            with self.watch(model.max_iter) as tell:
                model.set_params(on_state=lambda state: tell(state.iteration, state.bound))
                fits(SHARED_NAME, model, self.stream, self.stream.tasks, lambda: None)
            model.set_params(on_state=None)
            held = self.stream.held_out.of_tasks(set(model.tasks_))
            if held.sequences:
                calibrate_scores(model, held.sequences, held.tasks, folds=0)
            path = self.folder.model(self.name)
            if self.fresh or not path.exists():
                save_mixture(model, path)
            figures = self._figures(model)
            words = () if choice is None else choice.words()
            page = (
                None if write_page is None else write_page(model, figures, words, self.folder.page)
            )
            document = MixtureDocument(
                generators=model.bank_.count,
                kind=" and ".join(generator_words(block) for block in model.bank_.blocks),
                own=model.own_ is not None,
                tried=() if choice is None else tuple(each.to_json() for each in choice.tried),
                bound=float(model.bounds_[-1]),
                iterations=int(model.n_iter_),
                alpha=tuple(model.alpha_.tolist()),
                theta={
                    str(task): tuple(row)
                    for task, row in zip(model.tasks_, model.theta_.tolist(), strict=True)
                },
                rows=figures,
                name=self.name,
                command=command,
                model=str(path),
                page=None if page is None else str(page),
            )
            self.folder.write_document(document)
            return document

    def _chosen(self, model: SequenceMixture, fits: RecordedFits) -> MixtureChoice:
        """What is left open, chosen on the first sequences of a pass, which come from all places."""
        sequences, tasks = next(self.stream.batches(_LOOKED_AT))
        names = self.stream.symbols
        choice = choose_mixture(
            model,
            [[names[code] for code in sequences[row]] for row in range(len(sequences))],
            tasks,
            generator=self.recipe.generator,
            generators=self.recipe.generators,
            budget=self.recipe.budget,
            on_progress=self.on_fit,
            fitting=fits,
        )
        if self.on_choice is not None:
            self.on_choice(choice)
        model.set_params(generator=choice.best.generator, n_generators=choice.best.generators)
        return choice

    def _figures(self, model: SequenceMixture) -> tuple[HeldOutFigures, ...]:
        """On held-out sequences, with what tasks have of their own and without."""
        held = self.stream.held_out.of_tasks(set(model.tasks_))
        if not held.sequences:
            return ()
        models: dict[str, SequenceModel] = {SHARED_NAME: model}
        if model.own_ is not None:
            plain = copy(model)
            plain.own_ = None
            models["the same, without own parts"] = plain
        return held_out_figures(
            compare_with_baselines(model, [], [], held.sequences, held.tasks, models=models)
        )
