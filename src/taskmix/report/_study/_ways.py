"""One sentence for each way of training: every page explains it where it first stands.

The names are those of the adviser's candidates and of `taskmix train --policy`.
"""

from __future__ import annotations

from collections.abc import Iterable

_ONE_MODEL = "One model for all tasks"
_BY_SIZE = f"{_ONE_MODEL}: a task is drawn in proportion to its rows, as if all files were one."
_EVERY_STEP = "Every step takes a batch of each task"
_SENTENCES = {
    "single": "Each task has a model of its own, and the batches are divided evenly among them.",
    "alone": "The task has a model of its own.",
    "uniform": f"{_ONE_MODEL}: each batch comes from one of them, all equally likely.",
    "size": _BY_SIZE,
    "proportional": _BY_SIZE,
    "tempered": f"{_ONE_MODEL}: a task is drawn in proportion to the root of its rows, between equal "
    "shares and shares by size.",
    "capped": f"{_ONE_MODEL}: a task is drawn in proportion to its rows, none counted for more than a "
    "limit, so that the largest do not drown the others.",
    "fixed": f"{_ONE_MODEL}: a task is drawn with a share that was given.",
    "scheduled": f"{_ONE_MODEL}: a task is drawn with a share that changes at given steps.",
    "exp3": f"{_ONE_MODEL}: a bandit draws the task that has earned most, and tries the others now and "
    "then.",
    "exp3s": f"{_ONE_MODEL}: a bandit draws the task that has earned most of late, as the best one may "
    "change while training goes on.",
    "equal": f"{_EVERY_STEP}, and all losses count the same.",
    "equal without": "Every step takes a batch of each task from which something was learned, and all "
    "losses count the same.",
    "without": "One model for the tasks from which something was learned, all equally likely; the "
    "others are left out.",
    "weighted": f"{_EVERY_STEP}, and a method weighs the losses.",
    "bandit": f"{_EVERY_STEP}; BanditMTL gives more weight to tasks whose losses stay high.",
    "fairgrad": f"{_EVERY_STEP}; FairGrad combines the gradients so that the gain is shared fairly.",
    "counterfactual": f"{_ONE_MODEL}: a task is drawn with the share that, by the logs of the uniform "
    "runs, would have earned most.",
    "curves": f"{_ONE_MODEL}: shares at which one more batch gains every task the same, by the learning "
    "curves of the first runs.",
    "own best": "Trained as uniform; each task is served by the parameters of its own best evaluation.",
    "merged": "Each task is trained alone from the same pretrained model; the models are then added "
    "into one, without training.",
}


def explain_way(name: str, words: str = "") -> str:
    """What a way of training does, in a sentence; `words` are what is said of it where it is not known.

    Ways that were made for these tasks (groups, tasks left out) are explained by their own words only.
    """
    # Words of such a way may begin with the name of a task, so they stay as they are.
    return _SENTENCES.get(name.partition(":")[0], f"{words}." if words else "")


def explained_ways(names: Iterable[str]) -> list[tuple[str, str]]:
    """The ways among these names that can be explained, each with its sentence."""
    return [(name, words) for name in names if (words := explain_way(name))]
