"""Cheaper models of the same kind, on which ways of training are tried first.

| rung | instead of | where |
|---|---|---|
| frozen features | adapters, all weights | texts and pairs: vectors are read once, heads train on them |
| adapters | all weights | a GPU, on which many are trained at once |
| short texts | the whole length | words and texts to write, which have no vectors |

What a rung says of a way counts as far as it is seen to agree with the model itself on the ways both
have run (`_estimate.py`); one that does not agree is left out, in words.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from taskmix.adviser._race import Race
from taskmix.engine import Run
from taskmix.models import Transformer
from taskmix.plans import with_tuning
from taskmix.tasks import TaskSet

SHORTER = 4  # times: what attention costs falls at least as much
FEWEST_COMPARED = 4  # ways run on a rung and on the model: fewer cannot say that the rung misleads
SHORTEST = 16  # pieces of a text
# In batches of the model, where nothing is measured: a budget of steps counts a rung's batch as this.
RUNG_PRICES = {"frozen features": 0.02, "adapters": 0.5, "short texts": 0.25}


@dataclass(frozen=True, kw_only=True)
class Rung:
    """A cheaper model."""

    name: str
    template: Run

    @property
    def price(self) -> float:
        return RUNG_PRICES[self.name]


def rungs_below(template: Run, tasks: TaskSet) -> tuple[Rung, ...]:
    """The cheapest first; none for a model from scratch, and none below frozen features."""
    architecture = template.architecture
    if not isinstance(architecture, Transformer):
        return ()
    found = []
    readable = {task.inputs for task in tasks} <= {"text", "pair"}
    if readable and architecture.adapters.start is None:
        found.append(Rung(name="frozen features", template=with_tuning(template, "heads")))
    elif architecture.max_length >= SHORTER * SHORTEST:
        short = replace(architecture, max_length=architecture.max_length // SHORTER)
        found.append(Rung(name="short texts", template=replace(template, architecture=short)))
    if architecture.tune == "all" and template.device.startswith("cuda"):
        found.append(Rung(name="adapters", template=with_tuning(template, "adapters")))
    return tuple(found)


def misleading(race: Race, both: int) -> tuple[str, ...]:
    """Rungs that are seen to rank the ways otherwise, by as many as were run on both."""
    if both < FEWEST_COMPARED:
        return ()
    return tuple(name for name, agreement in race.agreement.items() if agreement.mean <= 0)


def words_of_agreement(race: Race, dropped: tuple[str, ...]) -> list[str]:
    """What the lower rungs were worth."""
    words = []
    for name, found in race.agreement.items():
        how = f"correlation {found.mean:.2f} ({found.low:.2f} to {found.high:.2f} at {found.level:.0%})"
        words.append(f"The {name} rank the ways as the model itself does: {how}.")
    words += [
        f"The {name} are not seen to rank the ways as the model itself does: what they say is left out."
        for name in dropped
    ]
    return words
