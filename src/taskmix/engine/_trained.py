"""The trained model of some runs, which answers for new rows."""

from __future__ import annotations

from collections.abc import Sequence

from taskmix.engine._run import Run, model_of_run, models_serving
from taskmix.records import Study
from taskmix.tasks import HeldEncoding, Question, learned_by
from taskmix.training import HeldPart, TrainedModel, TrainedPart


def trained_model(trained: Sequence[tuple[Run, Sequence[str]]], study: Study) -> TrainedModel:
    """The best parameters of runs that are done, each with the tasks that it is for.

    >>> from taskmix.models import Perceptron
    >>> from taskmix.records import Study
    >>> run = Run(label="demo", source=DigitsSource(), architecture=Perceptron(), steps=2, seed=0)
    >>> study = Study("study")
    >>> _ = Here(workers=1).run([run], study)
    >>> trained_model([(run, ["parity", "half"])], study).tasks
    ('parity', 'half')
    """
    parts = []
    served = [(run, one) for run, names in trained for one in models_serving(run, names, study)]
    for run, answers in served:
        model, encoded = model_of_run(run, study, task=answers[0] if answers else None)
        tasks, encoding = run.load(), run.architecture.encoding
        held = isinstance(encoding, HeldEncoding)
        parts.append(
            (HeldPart if held else TrainedPart)(
                model=model.eval(),
                architecture=run.architecture,
                learned={} if held else learned_by(encoding, tasks, encoded),
                questions=tuple(Question.of(task) for task in tasks),
                answers=answers,
            )
        )
    return TrainedModel(parts)
