r"""The census: whose people to learn from when predicting the income of the people of one state.

    Li, Nguyen and Zhang, "Identification of Negative Transfers in Multitask Learning Using
    Surrogate Models", TMLR 2023: "Illustration of positive transfers vs. negative transfers" and
    "Multi-group learning": every state is a task and has the 50 others as sources; ten answers
    predict whether a person earns more than 50,000 dollars; nine racial groups.

The paper says neither how large the network and the subsets are nor how many rows a state has.
Here a state has up to 3,000 rows to train on, a subset three sources (as in the authors' other
experiments), and the network one hidden layer of 32 and one output layer for all states: it is the
same question everywhere. (With an output layer for each state, nearly every source helps a little,
and there would be next to no negative transfer to find.) Every state gets the same number of
batches, whatever it is trained with, and f is the cross-entropy on its dev rows.

`f1_transfer/census` is the figure the authors' work is quoted for, the mean over states of F1 of
telling which held-out subsets help; `transfer_studies.py` says what stands beside it. Accuracies are in
hundredths, of test rows, means over seeds, and their intervals are over states. The worst group is
the one of least accuracy among the racial groups with at least `smallest_group` test rows in the
state. The paper's +1.29 is the gain of worst-group accuracy and fairness metrics over group DRO.
`group_dro` trains on all states' rows and `group_dro_own` on those of the target alone, both with
the racial groups as the groups and one output layer; the former sees as many rows a step as pooled
training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from papers.census_data import GROUP, CensusEncoding, CensusSource
from papers.rows import PaperRow, row
from papers.runner import Data, Desk, Flag
from papers.transfer_studies import (
    HeldOut,
    TransferOptions,
    cost_rows,
    f1_rows,
    held_out_table,
    select_sources,
    sign_test,
)
from taskmix.engine import Executor, Run, finish, model_of_run
from taskmix.models import HardSharing, Perceptron
from taskmix.numerics import paired_interval
from taskmix.records import Study
from taskmix.tasks import DenseInputs, Inputs
from taskmix.transfer import TransferStudy, best_prefixes, measure_trials
from taskmix.weighting import FixedWeights, GroupDRO

PAPER_GAIN = 1.29  # of worst-group accuracy over group DRO, in hundredths


@dataclass(frozen=True, kw_only=True)
class CensusOptions(TransferOptions):
    """The setting; the paper gives the tasks and the features alone."""

    QUICK: ClassVar[dict[str, Any]] = {
        "states": ("CA", "HI", "NJ", "PR", "TX", "WY"),
        "rows": 300,
        "steps": 50,
    }
    QUICK |= {"subsets": 10, "held_out": 4, "repeats": 2, "alone": 3, "seeds": 2, "size": 2}
    data: Annotated[Path, Data]
    states: Annotated[tuple[str, ...] | None, Flag("States to keep, with commas.", "only")] = None
    rows: Annotated[int, Flag("Of a state to train on.")] = 3000
    hidden: Annotated[tuple[int, ...], Flag("Widths of the network.")] = (32,)
    steps: Annotated[int, Flag("Batches of every task in a run.")] = 400
    own_group_dro: Annotated[bool, Flag("Group DRO on each state alone too; slow.")] = False
    smallest_group: int = 50  # test rows of a racial group that counts

    @property
    def source(self) -> CensusSource:
        return CensusSource(path=str(self.data), states=self.states, rows=self.rows)

    @property
    def network(self) -> Perceptron:
        """With one output layer for all states."""
        return Perceptron(hidden=self.hidden, one_head=True, reads=CensusEncoding())

    @property
    def template(self) -> Run:
        """A run of all states."""
        return self.run("census", self.source, self.network)

    def study(self, *, held_out: bool) -> TransferStudy:
        """Every state a target, from the same runs: to be fitted, or to be tried on."""
        template = self.template
        design = self.design(held_out=held_out)
        return TransferStudy(template=template, targets=template.load().names, design=design)


def run(options: CensusOptions, desk: Desk) -> list[PaperRow]:
    """Which states help to predict income in which: F1 of telling, and accuracy by racial group.

    Stop it and run it again: finished runs are not repeated.

    Example: python -m papers census acs_income/ --only AK,CA,HI,NJ,NY,PR,TX,WY --subsets 40
    """
    with desk.working() as (study, executor):
        return reproduce_census(options, study, executor)


def reproduce_census(options: CensusOptions, study: Study, executor: Executor) -> list[PaperRow]:
    """Both figures of the paper as rows; runs that the study holds already cost nothing."""
    description, trial = options.study(held_out=False), options.study(held_out=True)
    fitted = measure_trials(
        description, [*description.alone(), *description.subsets(options.subsets)], study, executor
    )
    surrogates, chosen = select_sources(
        fitted, study, executor, prefixes=partial(best_prefixes, count=3), seeds=2
    )
    tried = measure_trials(
        trial,
        [*trial.subsets(options.held_out), *trial.held_out(options.held_out)],
        study,
        executor,
    )
    generator = np.random.default_rng(options.seed)
    roles: dict[str, HeldOut] = {"": "design", "/other_sizes": "held out"}
    rows = []
    for name, role in roles.items():
        tests = [
            sign_test(fit, held_out_table(fitted, tried, target, role), generator=generator)
            for target, fit in surrogates.items()
        ]
        rows += f1_rows(f"f1_transfer/census{name}", tests)
    rows += census_accuracy_rows(options, description, chosen, study, executor)
    return [*rows, *cost_rows("census", [fitted, tried], chosen)]


def census_accuracy_rows(
    options: CensusOptions,
    description: TransferStudy,
    chosen: dict[str, tuple[str, ...]],
    study: Study,
    executor: Executor,
) -> list[PaperRow]:
    """Average and worst-group accuracy of every method, and ours minus theirs."""
    methods = _methods(options, description, chosen)
    finish(
        executor,
        [run for runs in methods.values() for some in runs.values() for run in some],
        study,
    )
    people = _People(options)
    tables = {
        name: np.array([people.accuracies(runs[target], target, study) for target in chosen])
        for name, runs in methods.items()
    }  # [target, (average, worst)]
    rows = []
    for place, kind in enumerate(("accuracy", "worst_group")):
        for name, table in tables.items():
            rows.append(row(f"census/{kind}/{name}", None, table[:, place]))
        for name, table in tables.items():
            if name != "selected":
                gain = paired_interval(tables["selected"][:, place], table[:, place])
                paper = PAPER_GAIN if (kind, name) == ("worst_group", "group_dro") else None
                rows.append(row(f"census/{kind}/selected_minus_{name}", paper, gain))
    return rows


def _methods(
    options: CensusOptions, description: TransferStudy, chosen: dict[str, tuple[str, ...]]
) -> dict[str, dict[str, list[Run]]]:
    """The runs of each method, by target; methods for all targets at once have the same for each."""
    seeds = range(options.seed, options.seed + options.seeds)
    template, sizes = options.template, options.template.load().sizes
    own_heads = replace(options.network, one_head=False)
    races = replace(options.source, groups="race")
    of_races = replace(template, label="group dro", source=races, weighting=GroupDRO())
    # As many rows a step as pooled training has.
    batch = max(options.batch_size * len(sizes) // len(races.load()), 1)
    for_all = {
        "pooled": replace(
            template,
            label="pooled",
            weighting=FixedWeights(weights=tuple(float(size) for size in sizes)),
        ),
        "all_sources": replace(template, label="all sources", architecture=own_heads),
        "group_dro": replace(of_races, batch_size=batch),
    }
    methods: dict[str, dict[str, list[Run]]] = {
        name: {target: [replace(run, seed=seed) for seed in seeds] for target in chosen}
        for name, run in for_all.items()
    }
    methods["single"] = {
        target: [description.run([target], seed) for seed in seeds] for target in chosen
    }
    if options.own_group_dro:
        methods["group_dro_own"] = {
            target: [
                replace(
                    of_races,
                    label="group dro own",
                    source=replace(races, states=(target,)),
                    seed=seed,
                )
                for seed in seeds
            ]
            for target in chosen
        }
    methods["selected"] = {
        target: [
            description.run([n for n in description.tasks if n == target or n in sources], seed)
            for seed in seeds
        ]
        for target, sources in chosen.items()
    }
    return methods


class _People:
    """The test rows of every state, and what models say of them."""

    def __init__(self, options: CensusOptions) -> None:
        self._smallest = options.smallest_group
        self._tasks = options.template.load()
        self._encoded = CensusEncoding().encode(self._tasks)
        self._models: dict[Run, tuple[HardSharing, tuple[str, ...]]] = {}

    def accuracies(self, runs: Sequence[Run], target: str, study: Study) -> list[float]:
        """The average and the worst group's accuracy in hundredths, means over the runs."""
        split = self._tasks[target].splits["test"]
        groups = split.inputs.column(GROUP).to_numpy()
        found = []
        for run in runs:
            if run not in self._models:
                model, tasks = model_of_run(run, study)
                self._models[run] = model.cpu().eval(), tasks.names
            model, names = self._models[run]
            said = _answers(
                model,
                names.index(target) if target in names else 0,
                self._encoded[target].splits["test"].inputs,
            )
            found.append(group_accuracies(said == split.targets, groups, self._smallest))
        return [100.0 * float(value) for value in np.mean(found, axis=0)]


def group_accuracies(
    right: NDArray[np.bool_],  # [row]
    groups: NDArray[np.integer],  # [row]
    smallest: int,
) -> tuple[float, float]:
    """The accuracy over all rows, and the least over groups that have enough of them."""
    counts = np.bincount(groups)
    shares = np.bincount(groups, right) / np.maximum(counts, 1)
    enough = counts >= max(min(smallest, counts.max()), 1)
    return float(right.mean()), float(shares[enough].min())


def _answers(model: HardSharing, head: int, inputs: Inputs) -> NDArray[np.int64]:
    """[row], the class that a model gives each row; with one output layer any head will do."""
    assert isinstance(inputs, DenseInputs)
    with torch.inference_mode():
        return np.asarray(model(inputs.values, head).argmax(dim=1).numpy())
