"""The best models of some runs, which answer, or lie in a folder that `taskmix predict` takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from taskmix.engine._run import Executed, Run, model_of_run
from taskmix.engine._saved import save_models
from taskmix.models import FittedPeer
from taskmix.records import Study
from taskmix.tasks import HeldEncoding, Question, learned_by
from taskmix.training import (
    Blend,
    HeldPart,
    PeerPart,
    Score,
    TrainedModel,
    TrainedPart,
    mean_score,
)


def trained_model(
    trained: Sequence[tuple[Run, Sequence[str]]],
    study: Study,
    *,
    peers: Sequence[tuple[FittedPeer, Sequence[str]]] = (),  # and what each is for
    blends: Mapping[str, Blend] | None = None,  # by task; members are runs, then peers, by place
) -> TrainedModel:
    """The best parameters of runs that are done, and fitted peers, each with the tasks it is for.

    >>> from taskmix.models import Perceptron
    >>> from taskmix.records import Study
    >>> run = Run(label="demo", source=DigitsSource(), architecture=Perceptron(), steps=2, seed=0)
    >>> study = Study("study")
    >>> _ = Here(workers=1).run([run], study)
    >>> trained_model([(run, ["parity", "half"])], study).tasks
    ('parity', 'half')
    """
    parts: list[TrainedPart | PeerPart] = []
    for run, answers in trained:
        model, encoded = model_of_run(run, study)
        tasks, encoding = run.load(), run.architecture.encoding
        held = isinstance(encoding, HeldEncoding)
        parts.append(
            (HeldPart if held else TrainedPart)(
                model=model.eval(),
                architecture=run.architecture,
                learned={} if held else learned_by(encoding, tasks, encoded),
                questions=tuple(Question.of(task) for task in tasks),
                answers=tuple(answers),
            )
        )
    parts += [PeerPart(fitted=fitted, answers=tuple(answers)) for fitted, answers in peers]
    return TrainedModel(parts, blends)


def keep_best(
    runs: Sequence[Run],
    results: Sequence[Executed],
    study: Study,
    folder: Path,
    *,
    merged: bool = False,  # also with the adapters added into the weights
) -> Path | None:
    """Keeps for each set of tasks the run of the best mean dev score; None where none is done.

    >>> from pathlib import Path
    >>> from taskmix.records import Study
    >>> print(keep_best([], [], Study("study"), Path("model")))
    None
    """
    best: dict[tuple[str, ...], tuple[float, Run]] = {}
    for run, result in zip(runs, results, strict=True):
        if result.summary is None or result.summary.status != "finished":
            continue
        scores = [Score(*each) for each in result.summary.scores if each.split == "dev"]
        score, names = mean_score(scores, {}), run.load().names
        if names not in best or score > best[names][0]:
            best[names] = (score, run)
    seen: set[str] = set()
    kept = []
    for names, (_, run) in best.items():
        answers = [name for name in names if name not in seen]
        seen.update(answers)
        if answers:
            kept.append((run, answers))
    return save_models(folder, kept, study, merged=merged) if kept else None
