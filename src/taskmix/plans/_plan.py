"""A plan is a tuple of parts, each one model to train, with what to expect of it and why.

Nothing else spells a mixture: the adviser races named plans, lessons return one, `taskmix train --plan`
carries one out, and `plan.json` is one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

from taskmix._html import html_table
from taskmix.engine import Run
from taskmix.errors import InputError
from taskmix.models import USUAL_RATES, Merge, Tuning, tuned, tuning_of
from taskmix.plans._division import Division, Shares, Stages, Weighted, is_number


@dataclass(frozen=True, kw_only=True)
class Part:
    """One model to train.

    >>> Part(tasks=("a", "b"), scored=("a",), share=1.0, division=Shares.equal(2)).helpers
    ('b',)
    """

    tasks: tuple[str, ...]  # that it is trained on
    scored: tuple[str, ...]  # that it is trained for; the others only help
    share: float  # of the plan's batches
    division: Division  # of its batches over its tasks
    tuning: Tuning | None = None  # of a pretrained encoder; None: as the template has it

    def __post_init__(self) -> None:
        _check_names(self.tasks)
        if not is_number(self.share) or not 0 < self.share <= 1:
            raise InputError(
                "The `share` of a plan's part should lie above 0 and be at most 1. Found "
                f"{self.share!r}."
            )
        if not set(self.scored) <= set(self.tasks):
            raise InputError(
                "A plan's part should be trained on the tasks it is trained for. Found "
                f"{list(self.scored)[:10]} and the tasks {list(self.tasks)[:10]}."
            )
        if self.tuning is not None and self.tuning not in get_args(Tuning):
            raise InputError(
                f"The `tuning` of a plan's part should be one of {', '.join(get_args(Tuning))}. Found "
                f"{self.tuning!r}."
            )
        count = {len(self.tasks)}
        if isinstance(self.division, Shares):
            count.add(len(self.division.probabilities))
        elif isinstance(self.division, Stages):
            count |= {len(stage.probabilities) for stage in self.division.stages}
        if len(count) > 1:
            raise InputError(
                "A plan's part should have one probability for each of its tasks. Found "
                f"{max(count - {len(self.tasks)})} for {len(self.tasks)} tasks."
            )

    @property
    def helpers(self) -> tuple[str, ...]:
        """Tasks that it is trained on for the others' sake."""
        return tuple(name for name in self.tasks if name not in self.scored)

    @property
    def probabilities(self) -> dict[str, float]:
        """How often each task is trained on, over the whole run; with a weighting, equally often."""
        match self.division:
            case Shares(probabilities=shares):
                pass
            case Stages(mean=shares):
                pass
            case _:
                shares = (1 / len(self.tasks),) * len(self.tasks)
        return dict(zip(self.tasks, shares, strict=True))

    def run(self, template: Run, *, evaluations: int | None = None) -> Run:
        """The run that trains it, where `template.steps` batches are those of the whole plan.

        A step of a weighting that walks back more than once a batch counts as what it costs
        (`Run.passes_a_step`), so that whatever a part is trained by, it costs the same.
        A run is evaluated and keeps checkpoints as often as the template, or `evaluations` times.
        """
        weighted = isinstance(self.division, Weighted) and len(self.tasks) > 1
        run = replace(
            with_tuning(template, self.tuning),
            tasks=self.tasks,
            policy=None,
            weighting=self.division.method
            if isinstance(self.division, Weighted) and weighted
            else None,
            reward=None if weighted or len(self.tasks) == 1 else template.reward,
        )
        steps = run.steps_for(int(template.steps * self.share + 1e-9))

        def every(given: int | None) -> int | None:
            if evaluations is not None:
                return max(steps // evaluations, 1)
            return None if given is None else max(given * steps // template.steps, 1)

        if not weighted:
            whole = Shares.equal(len(self.tasks))
            division = whole if isinstance(self.division, Weighted) else self.division
            run = replace(run, policy=division.policy(steps))
        return replace(
            run,
            steps=steps,
            evaluate_every=every(template.evaluate_every),
            checkpoint_every=every(template.checkpoint_every),
        )


def with_tuning(template: Run, tuning: Tuning | None) -> Run:
    """The template with this tuning; a learning rate that was the usual one is so again.

    >>> from dataclasses import replace
    >>> from taskmix.engine import DigitsSource, Optimization, Run
    >>> from taskmix.models import Transformer
    >>> model, rate = Transformer(path="bert-base-uncased"), Optimization(learning_rate=2e-5)
    >>> run = Run(label="", source=DigitsSource(), architecture=model, steps=1, seed=0)
    >>> with_tuning(replace(run, optimization=rate), "adapters").optimization.learning_rate
    0.0005
    """
    before = tuning_of(template.architecture)
    if tuning is None or tuning == before:
        return template
    optimization = template.optimization
    architecture = tuned(template.architecture, tuning)
    if before is not None and optimization.learning_rate == USUAL_RATES[before]:
        optimization = replace(optimization, learning_rate=USUAL_RATES[tuning])
    return replace(template, architecture=architecture, optimization=optimization)


@dataclass(frozen=True, kw_only=True)
class Expected:
    """A score to expect for a task, with its interval."""

    task: str
    metric: str
    value: float
    low: float
    high: float

    def __post_init__(self) -> None:
        words, numbers = (self.task, self.metric), (self.value, self.low, self.high)
        if not (all(isinstance(w, str) for w in words) and all(is_number(n) for n in numbers)):
            raise InputError(
                "What a plan expects should name a task and a metric, with finite numbers for `value`, "
                f"`low` and `high`. Found {words} and {numbers}."
            )


@dataclass(frozen=True, kw_only=True)
class Length:
    """The training for which a plan promises its scores."""

    batches: int  # of all parts together
    batch_size: int

    def __post_init__(self) -> None:
        if not all(type(n) is int and n > 0 for n in (self.batches, self.batch_size)):
            raise InputError(
                "The `length` of a plan should be whole numbers of batches and of rows in a batch. "
                f"Found {self.batches!r} and {self.batch_size!r}."
            )


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How to train: a model for each part.

    >>> part = Part(tasks=("a", "b"), scored=("a", "b"), share=1.0, division=Shares.equal(2))
    >>> Plan(parts=(part,)).probabilities
    (0.5, 0.5)
    """

    parts: tuple[Part, ...]
    name: str = "plan"  # what the report calls its runs
    words: str = ""  # what it is, for people
    expected: tuple[Expected, ...] = ()
    length: Length | None = None  # None: nothing is promised
    merge: Merge | None = None  # of the models of all parts into one; None: they stay apart
    evidence: Mapping[str, Any] = field(default_factory=dict)  # what it rests on

    def __post_init__(self) -> None:
        if not self.parts:
            raise InputError("A plan should have at least one part. Found none.")
        if not all(isinstance(word, str) for word in (self.name, self.words)):
            raise InputError("The `name` and the `words` of a plan should be text.")
        total = sum(part.share for part in self.parts)
        if abs(total - 1.0) > 1e-6:
            raise InputError(f"The shares of a plan's parts should sum to 1. Found {total}.")
        name, times = Counter(self.targets or [""]).most_common(1)[0]
        if times > 1:
            raise InputError(
                f"Every task should be scored in one part of a plan. Found `{name}` in several."
            )
        if self.merge is not None:
            self._check_merge()
        known = set(self.tasks)
        for item in self.expected:
            if item.task not in known:
                raise InputError(
                    f"A plan should expect scores of its tasks. Found `{item.task}`, which is none of "
                    "them."
                )

    def _check_merge(self) -> None:
        trained = [name for part in self.parts for name in part.tasks]
        if not isinstance(self.merge, Merge):
            raise InputError(f"The `merge` of a plan should be a Merge. Found {self.merge!r}.")
        if (
            len(self.parts) < 2
            or len(set(trained)) < len(trained)
            or set(trained) != set(self.targets)
        ):
            raise InputError(
                "A plan that merges models should have two parts or more, each for all of its tasks, "
                f"and no task in two of them. Found {len(self.parts)} for {', '.join(trained[:10])}."
            )

    @property
    def models(self) -> tuple[Part, ...]:
        """What comes of it, in the order of its runs: its parts, or one model merged of them."""
        if self.merge is None:
            return self.parts
        shares = Shares(probabilities=tuple(self.overall.values()))
        return (Part(tasks=self.tasks, scored=self.targets, share=1.0, division=shares),)

    @property
    def tasks(self) -> tuple[str, ...]:
        """All tasks that are trained on, part by part."""
        return tuple(dict.fromkeys(name for part in self.parts for name in part.tasks))

    @property
    def targets(self) -> tuple[str, ...]:
        """All tasks that are trained for, part by part."""
        return tuple(name for part in self.parts for name in part.scored)

    @property
    def probabilities(self) -> tuple[float, ...]:
        """Of drawing each of `tasks`, where that is the whole plan; otherwise it raises."""
        division = self.parts[0].division
        if len(self.parts) == 1 and isinstance(division, Shares):
            return division.probabilities
        found = f"{len(self.parts)} models to train"
        if len(self.parts) == 1:
            found = (
                f"all tasks in every step, weighted by {type(division.method).__name__}"
                if isinstance(division, Weighted)
                else "probabilities that change over the run"
            )
        raise InputError(
            "A plan should be one model with fixed probabilities to be given as probabilities alone. "
            f"Found {found}. Go through `plan.parts`, or train with `plan.runs` or `taskmix train "
            "--plan`."
        )

    @property
    def overall(self) -> dict[str, float]:
        """The share of all batches that each task gets, whichever model they train."""
        shares = dict.fromkeys(self.tasks, 0.0)
        for part in self.parts:
            for name, share in part.probabilities.items():
                shares[name] += part.share * share
        return shares

    def runs(
        self, template: Run, *, seeds: Sequence[int], evaluations: int | None = None
    ) -> list[Run]:
        """One run a part and seed, which spend `template.steps` batches together, seed by seed.

        Of a plan that merges models it is one run a seed, whose `sources` are those of the parts.
        """
        known = template.load().names
        missing = [name for name in self.tasks if name not in known]
        if missing:
            raise InputError(
                f"The plan should be for tasks at hand. Found `{missing[0]}` only in the plan, and the "
                f"tasks {', '.join(known[:10])}{' ...' if len(known) > 10 else ''}. Check the folder."
            )
        # In the order of the folder, so that the same plan is always the same run.
        ordered = self.for_tasks([name for name in known if name in set(self.tasks)])
        runs = [part.run(template, evaluations=evaluations) for part in ordered.parts]
        if self.merge is not None:
            names = tuple(name for name in known if name in set(self.tasks))
            runs.sort(key=lambda run: names.index((run.tasks or names)[0]))
            return [_merged(runs, self.merge, names, self.name, seed) for seed in seeds]
        return [replace(run, label=self.name, seed=seed) for seed in seeds for run in runs]

    def for_tasks(self, names: Sequence[str]) -> Plan:
        """The same plan with its one part's tasks in the order of `names`, which must be them."""
        _check_names(names)
        if set(names) != set(self.tasks):
            missing = sorted(set(self.tasks) - set(names))
            extra = sorted(set(names) - set(self.tasks))
            raise InputError(
                "The plan should be for the tasks at hand. Found "
                f"{_listed(extra)} without a place in the plan and {_listed(missing)} only in it. "
                "Choose the plan's tasks alone."
            )
        places = {name: place for place, name in enumerate(names)}
        return replace(self, parts=tuple(_in_order(part, places) for part in self.parts))

    def rows(self) -> list[dict[str, Any]]:
        """A row for each part and task, as `pandas.DataFrame(plan.rows())` takes them."""
        expected = {item.task: item for item in self.expected}
        rows = []
        for place, part in enumerate(self.parts):
            for task, probability in part.probabilities.items():
                scored = task in part.scored
                found = expected.get(task) if scored else None
                rows.append(
                    {
                        "part": place,
                        "task": task,
                        "scored": scored,
                        "share": part.share * probability,
                        "metric": None if found is None else found.metric,
                        "expected": None if found is None else found.value,
                        "low": None if found is None else found.low,
                        "high": None if found is None else found.high,
                    }
                )
        return rows

    def _repr_html_(self) -> str:
        """For notebooks: the parts and what is expected of them."""
        return html_table(self.rows(), caption=f"Plan {self.name}: {self.words or 'what to train'}")

    def to_json(self) -> str:
        """The plan as `plan.json` has it."""
        from taskmix.plans._file import plan_text

        return plan_text(self)

    def save(self, path: Path | str) -> Path:
        """Writes the plan, whole or not at all."""
        from taskmix.plans._file import save_plan  # which knows this class

        return save_plan(self, Path(path))

    @classmethod
    def load(cls, path: Path | str) -> Plan:
        """Reads a plan; a file that is none is told in one sentence."""
        from taskmix.plans._file import load_plan

        return load_plan(Path(path))


def _merged(
    runs: Sequence[Run], merge: Merge, tasks: tuple[str, ...], label: str, seed: int
) -> Run:
    """The run that merges the models of others; these are called as training alone is."""
    return replace(
        runs[0],
        label=label,
        tasks=tasks,
        policy=None,
        reward=None,
        weighting=None,
        steps=sum(run.steps for run in runs),
        evaluate_every=None,
        checkpoint_every=None,
        patience=None,
        seed=seed,
        merge=merge,
        sources=tuple(replace(run, label="single", seed=seed) for run in runs),
    )


def _in_order(part: Part, places: Mapping[str, int]) -> Part:
    order = sorted(range(len(part.tasks)), key=lambda at: places[part.tasks[at]])
    division = part.division
    if isinstance(division, Shares):  # the same numbers, not divided again
        division = Shares(probabilities=tuple(division.probabilities[at] for at in order))
    elif isinstance(division, Stages):
        division = Stages(
            stages=tuple(
                replace(stage, probabilities=tuple(stage.probabilities[at] for at in order))
                for stage in division.stages
            )
        )
    return replace(
        part,
        tasks=tuple(part.tasks[at] for at in order),
        scored=tuple(sorted(part.scored, key=places.__getitem__)),
        division=division,
    )


def _listed(names: Sequence[str]) -> str:
    return (
        ", ".join(f"`{name}`" for name in names[:5]) + (" ..." if len(names) > 5 else "") or "none"
    )


def _check_names(names: Sequence[str]) -> None:
    if not names or not all(isinstance(n, str) for n in names) or len(set(names)) != len(names):
        raise InputError(
            f"The tasks of a plan's part should be names that differ, at least one. Found "
            f"{list(names)[:10]}."
        )
