r"""How models are blended: calibrated first, then weighted, task by task.

A member's logits are divided by a temperature T, and its probabilities are averaged with weights w,

    p(y | x) = Σ_m w_m softmax(z_m(x) / T_m)_y

Guo et al., "On Calibration of Modern Neural Networks", ICML 2017 (T); Jacobs et al., "Adaptive
Mixtures of Local Experts", 1991 (w by EM, here without inputs). Dev rows are few, so both are held to
what is known without them: ln T ~ N(0, 1), and w has a Dirichlet prior worth `PRIOR_ROWS` rows, around
the weights of all tasks together, and those around the plain mean. Of regression the values are
averaged, with weights of least squares and the same prior.

Members are chosen by cross-fitting: weights fitted on four fifths of each task's dev rows are judged on
the fifth, by log loss (squared error) in units of a guess's. The best member is taken, then whichever
improves the blend most, up to three. Nothing makes a network a member but what it adds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import nnls

from taskmix.adviser._members import BlendMember, sentences_of
from taskmix.tasks import MISSING, Task, TaskSet
from taskmix.training import Blend, blended

Array = NDArray[np.float64]

MOST_MEMBERS = 3
FOLDS = 5
PRIOR_ROWS = 20.0  # that the prior of a task's weights counts as
EM_STEPS = 60
LOG_TEMPERATURES = np.linspace(-2.5, 2.5, 26)
FLOOR = 1e-6  # of a probability: what no member thinks possible costs no more than that
SUM_TO_ONE = 1e3  # how strictly least squares keep to weights that sum to 1


@dataclass(frozen=True, kw_only=True)
class Blends:
    """The members chosen, the best first, and how each task blends them."""

    members: tuple[BlendMember, ...]
    of_task: Mapping[str, Blend]  # places among `members`
    losses: Mapping[str, float]  # by the names of members tried alone, and `blend`: cross-fitted
    dev: Mapping[str, Array]  # what the blend says of dev rows that its weights did not see

    def outputs(self, tasks: TaskSet, split: str) -> dict[str, Array]:
        """What the blend says of a split, as its members' own outputs are."""
        found = {}
        for name, blend in self.of_task.items():
            said = [self.members[place].outputs(split)[name] for place in blend.members]  # type: ignore[arg-type]
            found[name] = blend_outputs(tasks[name], said, blend.weights, blend.temperatures)
        return found


def blend_outputs(
    task: Task, outputs: Sequence[Array], weights: Sequence[float], temperatures: Sequence[float]
) -> Array:
    """Log probabilities, logits of several labels, or values."""
    blend = Blend(
        members=tuple(range(len(outputs))),
        weights=tuple(weights),
        temperatures=tuple(temperatures),
    )
    return np.asarray(blended(task.kind, [torch.from_numpy(each) for each in outputs], blend))


def fit_blends(
    members: Sequence[BlendMember],
    tasks: TaskSet,
    targets: Sequence[str],
    judged: Sequence[str],  # those of them by which members are chosen
    *,
    most: int = MOST_MEMBERS,
    seed: int = 0,
) -> Blends:
    """Chooses members by cross-fitting and weighs them by all dev rows; each target gets a blend.

    >>> from taskmix.models import LinearPeer
    >>> from taskmix.tasks import digits_tasks
    >>> from taskmix.adviser._members import peer_member
    >>> tasks = digits_tasks().select(("parity", "half"))
    >>> peers = [
    ...     peer_member(LinearPeer(strength=strength), tasks, None, name=name, seed=0)
    ...     for name, strength in (("strict", 1.0), ("usual", 0.01))]
    >>> found = fit_blends(peers, tasks, tasks.names, tasks.names)
    >>> found.members[0].name, sum(found.of_task["half"].weights)
    ('usual', 1.0)
    """
    known = {
        name: found
        for name in targets
        if (found := _Dev.of(tasks[name], members, seed)) is not None
    }
    data = {name: known[name] for name in judged if name in known}
    every = [place for place in range(len(members)) if all(p.has(place) for p in data.values())]
    losses = {members[place].name: _loss(data, (place,)) for place in every}
    chosen: tuple[int, ...] = ()
    best = np.inf
    while len(chosen) < most:
        tried = {place: _loss(data, (*chosen, place)) for place in every if place not in chosen}
        if not tried or min(tried.values()) >= best:
            break
        place = min(tried, key=lambda each: tried[each])
        chosen, best = (*chosen, place), tried[place]
    if not chosen:  # too few dev rows to choose by: the network and the first peer, evenly
        chosen, best = tuple(range(min(len(members), 2))), np.nan
    serving = _serving(members, chosen, targets, known)
    blends: dict[str, Blend] = {}
    dev: dict[str, Array] = {}
    used = tuple(dict.fromkeys((*chosen, *(place for own in serving.values() for place in own))))
    for name, own in serving.items():
        heats, weights = [1.0] * len(own), np.full(len(own), 1 / max(len(own), 1))
        if name in known:
            heats = [known[name].temperature(place, None) for place in own]
            weights = known[name].weights(own, heats, _common_weights(data, own), None)
            unseen = {fold: _common_weights(data, own, fold) for fold in range(FOLDS)}
            dev[name] = known[name].cross_fitted(own, unseen)
        blends[name] = Blend(
            members=tuple(used.index(place) for place in own),
            weights=tuple(map(float, weights)),
            temperatures=tuple(map(float, heats)),
        )
    return Blends(
        members=tuple(members[place] for place in used),
        of_task=blends,
        losses={**losses, "blend": float(best)},
        dev=dev,
    )


def _serving(
    members: Sequence[BlendMember],
    chosen: tuple[int, ...],
    targets: Sequence[str],
    known: Mapping[str, _Dev],
) -> dict[str, tuple[int, ...]]:
    """Who answers for each target: the chosen that do, or else who does best on that one."""

    def answers(place: int, name: str) -> bool:
        return name in members[place].dev or name in members[place].test

    def loss(place: int, name: str) -> float:
        return _loss({name: known[name]}, (place,)) if name in known else 0.0

    found = {}
    for name in targets:
        own = tuple(place for place in chosen if answers(place, name))
        others = (place for place in range(len(members)) if answers(place, name))
        found[name] = own or tuple(sorted(others, key=lambda p: loss(p, name)))[:1]
    return {name: own for name, own in found.items() if own}


def _common_weights(
    data: Mapping[str, _Dev], chosen: tuple[int, ...], fold: int | None = None
) -> Array:
    """Of all tasks together, held to the plain mean."""
    prior = np.full(len(chosen), 1 / len(chosen))
    if len(chosen) == 1 or not data:
        return prior
    found = [
        each.weights(chosen, [each.temperature(p, fold) for p in chosen], prior, fold)
        for each in data.values()
        if all(each.has(place) for place in chosen)
    ]
    if not found:
        return prior
    return np.asarray(np.mean(found, axis=0))


def _loss(data: Mapping[str, _Dev], chosen: tuple[int, ...]) -> float:
    """Cross-fitted, the mean over tasks in units of a guess's loss."""
    if not data:
        return np.inf
    losses = np.zeros(len(data))
    for fold in range(FOLDS):
        common = _common_weights(data, chosen, fold)
        for place, each in enumerate(data.values()):
            heats = [each.temperature(member, fold) for member in chosen]
            weights = each.weights(chosen, heats, common, fold)
            losses[place] += each.sum_of_losses(chosen, weights, heats, fold)
    counts = np.array([each.count * each.guess for each in data.values()])
    return float(np.mean(losses / counts))


class _Dev:
    """The dev rows of one task: what members say of them, and which fifth each belongs to."""

    def __init__(
        self,
        task: Task,
        outputs: Mapping[int, Array],
        targets: Array,
        known: NDArray[np.bool_],  # [row], whether it has a target
        folds: NDArray[np.int64],  # [2, row]: its fold, and which sentence or row it is of
    ) -> None:
        self._task, self._whole, self._where = task, outputs, folds[0]
        self._outputs = {place: said[known] for place, said in outputs.items()}
        self._targets, self._folds = targets[known], folds[0][known]
        self.count, self.guess = len(self._targets), _guess(task, self._targets)
        self._heats: dict[tuple[int, int | None], float] = {}
        # A row of several words, or labels, counts for one.
        self._prior_rows = PRIOR_ROWS * self.count / max(len(np.unique(folds[1][known])), 1)

    @classmethod
    def of(cls, task: Task, members: Sequence[BlendMember], seed: int) -> _Dev | None:
        if not len(task.splits.get("dev", ())):
            return None
        targets = np.asarray(task.splits["dev"].targets)
        sentences = sentences_of(task, "dev")
        units = np.arange(len(targets))
        if sentences is not None:
            units = np.repeat(np.arange(len(sentences) - 1), np.diff(sentences))
        if task.kind == "regression":
            known = np.isfinite(targets)
        elif task.kind == "multilabel":
            known = (targets != MISSING).all(axis=1)
        else:
            known = targets != MISSING
        if known.sum() < 2 * FOLDS:
            return None
        order = np.random.default_rng(seed).permutation(int(units.max()) + 1) % FOLDS
        outputs = {
            place: member.dev[task.name]
            for place, member in enumerate(members)
            if task.name in member.dev
        }
        folds = np.stack([order[units], units])
        return cls(task, outputs, targets, known, folds)

    def has(self, place: int) -> bool:
        return place in self._outputs

    def temperature(self, place: int, fold: int | None) -> float:
        """Of a member, fitted to all rows but those of a fold."""
        key = (place, fold)
        if key not in self._heats:
            self._heats[key] = self._fit_temperature(place, self._kept(fold))
        return self._heats[key]

    def weights(
        self, chosen: tuple[int, ...], heats: Sequence[float], prior: Array, fold: int | None
    ) -> Array:
        """Held to a prior, fitted to all rows but those of a fold."""
        if len(chosen) == 1:
            return np.ones(1)
        rows = self._kept(fold)
        if self._task.kind == "regression":
            return self._least_squares(chosen, prior, rows)
        said = self._of_truth(chosen, heats, rows)
        found = prior.copy()
        for _ in range(EM_STEPS):
            parts = found[:, None] * said
            parts /= parts.sum(axis=0)
            found = self._prior_rows * prior + parts.sum(axis=1)
            found /= found.sum()
        return found

    def sum_of_losses(
        self, chosen: tuple[int, ...], weights: Array, heats: Sequence[float], fold: int
    ) -> float:
        rows = self._folds == fold
        if self._task.kind == "regression":
            mixed = np.tensordot(weights, [self._value(p)[rows] for p in chosen], axes=1)
            return float(np.square(mixed - self._targets[rows]).sum())
        said = self._of_truth(chosen, heats, rows)
        total = -np.log(weights @ said).sum()
        return float(total) / (self._targets.shape[1] if self._task.kind == "multilabel" else 1)

    def cross_fitted(self, chosen: tuple[int, ...], unseen: Mapping[int, Array]) -> Array:
        """What the blend says of each row, weighed by the others."""
        found: Array | None = None
        for fold in unseen:
            heats = [self.temperature(place, fold) for place in chosen]
            weights = self.weights(chosen, heats, unseen[fold], fold)
            said = blend_outputs(
                self._task, [self._whole[place] for place in chosen], weights.tolist(), heats
            )
            found = np.zeros_like(said) if found is None else found
            found[self._where == fold] = said[self._where == fold]
        assert found is not None
        return found

    def _kept(self, fold: int | None) -> NDArray[np.bool_]:
        return np.ones(self.count, dtype=np.bool_) if fold is None else self._folds != fold

    def _value(self, place: int) -> Array:
        return self._outputs[place].reshape(-1)

    def _of_truth(
        self, chosen: Sequence[int], heats: Sequence[float], rows: NDArray[np.bool_]
    ) -> Array:
        """[member, row], the probability of what is true; of several labels each is a row."""
        found = []
        for place, heat in zip(chosen, heats, strict=True):
            shares = _probabilities(self._task, self._outputs[place][rows] / heat)
            found.append(_of_targets(self._task, shares, self._targets[rows]))
        return np.maximum(np.array(found), FLOOR)

    def _fit_temperature(self, place: int, rows: NDArray[np.bool_]) -> float:
        if self._task.kind == "regression":
            return 1.0
        fits = [
            np.log(self._of_truth((place,), (float(np.exp(each)),), rows)).sum() - each**2 / 2
            for each in LOG_TEMPERATURES
        ]
        return float(np.exp(LOG_TEMPERATURES[int(np.argmax(fits))]))

    def _least_squares(self, chosen: Sequence[int], prior: Array, rows: NDArray[np.bool_]) -> Array:
        said = np.array([self._value(place)[rows] for place in chosen]).T
        spread = float(np.sqrt(self._prior_rows * max(said.var(axis=1).mean(), 1e-12)))
        design = np.concatenate(
            [said, spread * np.eye(len(chosen)), np.full((1, len(chosen)), SUM_TO_ONE)]
        )
        scale = max(float(np.abs(said).max()), 1e-12)
        design[-1] *= scale
        aim = np.concatenate([self._targets[rows], spread * prior, [SUM_TO_ONE * scale]])
        found, _ = nnls(design, aim)
        return np.asarray(found / found.sum() if found.sum() > 0 else prior)


def _probabilities(task: Task, logits: Array) -> Array:
    if task.kind == "multilabel":
        return np.asarray(1 / (1 + np.exp(-np.clip(logits, -500, 500))))
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=-1, keepdims=True))


def _of_targets(task: Task, shares: Array, targets: Array) -> Array:
    if task.kind == "multilabel":
        return np.asarray(np.where(targets == 1, shares, 1 - shares)).reshape(-1)
    return np.asarray(shares[np.arange(len(targets)), targets.astype(np.int64)])


def _guess(task: Task, targets: Array) -> float:
    """The loss of a guess that knows how frequent each answer is in dev."""
    if task.kind == "regression":
        return max(float(targets.var()), 1e-12)
    if task.kind == "multilabel":
        share = np.clip(targets.mean(axis=0), 0.01, 0.99)
        return float(-(share * np.log(share) + (1 - share) * np.log(1 - share)).mean())
    share = np.bincount(targets.astype(np.int64), minlength=len(task.labels)) / len(targets)
    return max(float(-(share[share > 0] * np.log(share[share > 0])).sum()), 0.05)
