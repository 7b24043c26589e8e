"""The estimate of transfer by gradients, with one change at a time towards that of its authors.

    OMP_NUM_THREADS=1 python benchmarks/gradient_estimates.py [--models 4] [--dimensions 512]

On the digits, against the trained matrix of `cheap_transfer.py digits --subsets 20`. Ours is the rank
correlation within a target of the mean of the models' gains, with a 95 % interval over targets, and one
of the difference to the first row; the other number is the mean of single models.
"""

from __future__ import annotations

import argparse
import copy
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from _common import report, row
from cheap_transfer import Bench, Matrix, gains, interval, within
from taskmix.engine import Fleet, model_of_run
from taskmix.models import HardSharing
from taskmix.records import Study
from taskmix.tasks import EncodedTask
from taskmix.transfer import GradientOptions, SubsetDesign, TransferStudy, TrialOutcomes
from taskmix.transfer._estimating._jacobian import LinearRows, linearise_rows
from taskmix.transfer._estimating._linearised import _gradient_and_curvature
from taskmix.transfer._estimating._projection import SparseProjection

OURS = GradientOptions()
COUNT = 60  # subsets of a target that are estimated


@dataclass(frozen=True, kw_only=True)
class Change:
    """From our estimate: no change by default."""

    heads: bool = False  # free to move too
    newton: int = 1  # steps of Newton's method at most; 10 are a regression for every subset
    margin: bool = False  # one gradient a row, that of log p / (1 - p), instead of one an output
    network: bool = False  # the moved network is evaluated, not its linear outputs
    length: float | None = None  # of the move, as a share of the parameters' norm


CHANGES = {
    "the estimate": Change(),
    "heads free": Change(heads=True),
    "a regression per subset": Change(newton=10),
    "margins": Change(margin=True),
    "margins, a regression": Change(margin=True, newton=10),
    "moved network": Change(network=True),
    "length 0.1": Change(length=0.1),
    "length 0.3": Change(length=0.3),
    "length 2": Change(length=2.0),
    "length 0.1, moved network": Change(length=0.1, network=True),
    "length 1, moved network": Change(length=1.0, network=True),
    "length 3, moved network": Change(length=3.0, network=True),
    "all of them, length 0.1": Change(heads=True, newton=10, margin=True, network=True, length=0.1),
}


@dataclass(frozen=True)
class Near:
    """A task about a model, with the codes that its head reads."""

    task: EncodedTask
    train: LinearRows
    dev: LinearRows
    train_codes: Tensor  # [row, code], the last a one for the bias
    dev_codes: Tensor
    dev_inputs: Tensor


class NearModel:
    """Every task about one model on all of them, for all changes."""

    def __init__(
        self, model: HardSharing, tasks: Sequence[EncodedTask], dimensions: int, seed: int
    ):
        self.model = model.eval()
        self.parameters = {name: each.detach() for name, each in model.encoder.named_parameters()}
        self.norm = float(torch.cat([each.flatten() for each in self.parameters.values()]).norm())
        self.projection = SparseProjection(dimensions=dimensions, seed=seed)
        generator = np.random.default_rng(seed)  # the rows are those that `linearise` draws
        self.tasks = [self.near(task, place, generator) for place, task in enumerate(tasks)]

    def near(self, task: EncodedTask, place: int, generator: np.random.Generator) -> Near:
        found: dict[str, Any] = {}
        for split in ("train", "dev"):
            data, drawing = task.splits[split], copy.deepcopy(generator)
            drawn = np.sort(drawing.permutation(len(data.targets))[: OURS.rows])
            linear = linearise_rows(
                self.model, task, place, split, self.projection, OURS.rows, generator
            )
            inputs = data.inputs.batch(torch.from_numpy(drawn))
            found |= {split: linear, f"{split}_codes": self.codes(self.parameters, inputs)}
        return Near(task=task, dev_inputs=inputs, **found)

    def codes(self, parameters: dict[str, Tensor], inputs: Tensor) -> Tensor:
        with torch.no_grad():
            codes = torch.func.functional_call(self.model.encoder, parameters, (inputs,))
        return torch.cat([codes, codes.new_ones(len(codes), 1)], dim=1)

    def unprojected(self, move: Tensor) -> dict[str, Tensor]:
        """The move of every parameter: the transposed projection, which is its gradient."""
        zeros = {name: torch.zeros_like(each) for name, each in self.parameters.items()}
        flat = [each.reshape(1, -1).requires_grad_() for each in zeros.values()]
        grads = torch.autograd.grad(self.projection(flat) @ move.float(), flat)
        return {
            name: grad.view_as(each)
            for (name, each), grad in zip(zeros.items(), grads, strict=True)
        }

    def gains(self, asked: TransferStudy, change: Change) -> Matrix:
        rows = [trained(near, change) for near in self.tasks]
        # Ridges are shares of mean curvatures: of all tasks together, and of every head alone.
        first = [
            _gradient_and_curvature(each, near.task, 1.0)
            for each, near in zip(rows, self.tasks, strict=True)
        ]
        diagonals = [curvature.diagonal() for _, curvature in first]
        shared = self.tasks[0].train.jacobian.shape[2]
        ridges = [
            torch.full_like(each, OURS.ridge * float(each[shared:].mean())) for each in diagonals
        ]
        for each in ridges:
            each[:shared] = OURS.ridge * float(sum(some[:shared].mean() for some in diagonals))
        known: dict[tuple[str, ...], NDArray[np.float64]] = {}
        trials = [*asked.alone(), *asked.subsets(COUNT)]
        for trial in trials:
            if trial.tasks not in known:
                members = [asked.tasks.index(name) for name in trial.tasks]
                move, own = self.move(members, rows, first, ridges, change.newton)
                known[trial.tasks] = np.full(len(rows), np.nan)
                known[trial.tasks][members] = self.outcomes(members, move, own, change)
        return gains(
            TrialOutcomes(
                description=asked,
                trials=tuple(trials),
                outcomes=np.array([known[trial.tasks] for trial in trials]),
                errors=(None,) * len(trials),
            )
        )

    def move(
        self,
        members: Sequence[int],
        rows: Sequence[LinearRows],
        first: Sequence[tuple[Tensor, Tensor]],  # gradient and curvature before any move
        ridges: Sequence[Tensor],
        newton: int,
    ) -> tuple[Tensor, list[Tensor]]:
        """What training the members does to what they share and to their heads; whose is what."""
        shared = self.tasks[0].train.jacobian.shape[2]
        ends = np.cumsum([shared, *(len(ridges[task]) - shared for task in members)])
        own = [
            torch.tensor([*range(shared), *range(*ends[k : k + 2])]) for k in range(len(members))
        ]
        penalty = torch.zeros(int(ends[-1]), dtype=torch.float64)
        for task, mine in zip(members, own, strict=True):
            penalty[mine] = ridges[task]
        move = torch.zeros_like(penalty)
        for number in range(newton):
            curvature, gradient = torch.diag(penalty), penalty * move
            for task, mine in zip(members, own, strict=True):
                sloped, curved = first[task]
                if number:
                    here = replace(rows[task], outputs=rows[task].moved(move[mine]))
                    sloped, curved = _gradient_and_curvature(here, self.tasks[task].task, 1.0)
                curvature[mine[:, None], mine] += curved
                gradient[mine] += sloped
            step = torch.linalg.solve(curvature, -gradient)
            move += step
            if step.norm() < 0.01 * move.norm():
                break
        return move, own

    def outcomes(
        self,
        members: Sequence[int],
        move: Tensor,
        own: Sequence[Tensor],
        change: Change,
    ) -> list[float]:
        """Accuracy on dev of every member."""
        shared = self.tasks[0].train.jacobian.shape[2]
        if change.length is not None:
            length = torch.cat(
                [each.flatten() for each in self.unprojected(move[:shared]).values()]
            )
            move = move * (change.length * self.norm / max(float(length.norm()), 1e-12))
        if change.network:
            back = self.unprojected(move[:shared])
            moved = {name: each + back[name] for name, each in self.parameters.items()}
        found = []
        for task, mine in zip(members, own, strict=True):
            near = self.tasks[task]
            outputs, codes = near.dev.moved(move[:shared].float()), near.dev_codes
            if change.network:
                codes = self.codes(moved, near.dev_inputs)
                with torch.no_grad():
                    outputs = self.model.heads[task](codes[:, :-1])
            if change.heads:
                outputs = outputs + codes @ move[mine[shared:]].view(-1, codes.shape[1]).float().t()
            found.append(float((outputs.argmax(dim=1) == near.dev.targets).float().mean()))
        return found


def trained(near: Near, change: Change) -> LinearRows:
    """The rows that are trained on, in all coordinates that move."""
    rows, codes = near.train, near.train_codes.double()
    outputs, jacobian = rows.outputs.double(), rows.jacobian.double()
    if change.heads:
        head = torch.einsum("op,rc->ropc", torch.eye(outputs.shape[1]).double(), codes)
        jacobian = torch.cat([jacobian, head.flatten(2)], dim=2)
    if not change.margin:
        return replace(rows, outputs=outputs, jacobian=jacobian)
    # A logistic regression on the margin m has the outputs 0 and m.
    every = torch.arange(len(outputs))
    shares = outputs.softmax(dim=1)
    true = shares[every, rows.targets].clamp(1e-6, 1 - 1e-6)
    away = jacobian[every, rows.targets] - (shares.unsqueeze(2) * jacobian).sum(dim=1)
    margins = (away / (1 - true).unsqueeze(1)).unsqueeze(1)
    return replace(
        rows,
        outputs=torch.stack([torch.zeros_like(true), (true / (1 - true)).log()], dim=1),
        jacobian=torch.cat([torch.zeros_like(margins), margins], dim=1),
        targets=torch.ones_like(rows.targets),
    )


def ends(values: NDArray[np.float64]) -> str:
    """The interval of 95 % of a mean over targets."""
    low, high = interval(lambda drawn: float(np.nanmean(values[drawn])), len(values))
    return f"{low:.2f} to {high:.2f}"


def measure(quick: bool, *, models: int, dimensions: int) -> list[dict[str, Any]]:
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        asking = {"folder": "digits", "subsets": 8 if quick else 20, "seeds": 2 if quick else 4}
        rest = {"device": "cpu", "out": Path(folder), "minutes": 60.0}
        bench = Bench(argparse.Namespace(**asking, **rest))
        bench.truth()
        steps = round(OURS.share * bench.asked.template.steps)
        design = SubsetDesign(count=COUNT, alone=1, held_out=3, seed=5)
        run = replace(bench.asked.template, steps=steps, seed=70_000)
        asked = replace(bench.asked, template=run, design=design)
        study = Study(Path(folder) / "models")
        runs = [asked.run(asked.tasks, run.seed + number) for number in range(models)]
        list(Fleet(workers=1).run(runs, study))
        near = []
        for each in runs:
            model, tasks = model_of_run(each, study)
            near.append(NearModel(model, list(tasks), dimensions, each.seed))
        rows, unchanged = [], None
        for name, change in list(CHANGES.items())[: 2 if quick else None]:
            found = [each.gains(asked, change) for each in near]
            alone = float(np.mean([np.nanmean(within(each, bench.matrix)) for each in found]))
            ranks = within(np.mean(found, axis=0), bench.matrix)
            unchanged = ranks if unchanged is None else unchanged
            unit = f"({ends(ranks)}), minus the first ({ends(ranks - unchanged)})"
            print(f"{name}: {np.nanmean(ranks):.2f} {unit}", file=sys.stderr, flush=True)
            rows.append(row(name, float(np.nanmean(ranks)), alone, "one model", unit))
        return rows


if __name__ == "__main__":
    counts = {
        "--models": {"type": int, "default": OURS.models, "help": "on all tasks"},
        "--dimensions": {"type": int, "default": OURS.dimensions, "help": "of the projection"},
    }
    report("gradient estimates", measure, str(__doc__), options=counts)
