"""The best model of some runs in a folder that `taskmix predict` takes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from taskmix.engine._run import Executed, Run
from taskmix.engine._saved import save_models
from taskmix.records import Study
from taskmix.training import Score, mean_score


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
