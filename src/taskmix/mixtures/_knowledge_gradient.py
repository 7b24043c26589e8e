r"""What runs are expected to tell about the best mixture: the knowledge gradient, from draws of laws.

A run on mixture $c$ would show its metrics, with noise. Laws that are equally likely now would not be
any more: the expected metrics of every other mixture $x$ move by a gain times the surprise, as in
linear-Gaussian conditioning, and with them the mixture that is expected to be best. What the target
gains by choosing after the run and not before is worth

    $\min_x \bar t(x) - E_y [\min_x \bar t_y(x)]$,

with $\bar t$ what is expected of the target now, $\bar t_y$ after result $y$. By exactly this the
expected regret falls: what it is measured against, the best under the true law, does not change.

    Frazier, Powell and Dayanik, "The knowledge-gradient policy for correlated normal beliefs",
    INFORMS Journal on Computing 2009, Eq. 4 and 8.
    Evensen, "Sequential data assimilation with a nonlinear quasi-geostrophic model", Journal of
    Geophysical Research 1994, for gains taken from draws.

Departures. A batch is chosen one run after the other, each given all before it: `Beliefs` hold, for each
draw, what would be expected if that draw were the truth and the runs chosen so far were seen. Each
metric teaches about itself alone, which claims too little where metrics go together. Gains come from
tens of draws, so that each correlation is shrunk by what chance gives: $\rho^2$ becomes
$\rho^2 - (1 - \rho^2) / (n - 2)$ for $n$ draws, or zero. A target that is not linear in the metrics
keeps the difference that it has now between the mean of targets and the target of means.

The regret after a batch (`regrets_after`) is told without flattery. Gains taken from some draws fit
these draws too well, the more so the more runs a batch has: with 64 draws and 12 runs the regret after
them would seem a tenth of what it is. So the draws are divided. From most of them the gains are taken,
the others play the truth: each in turn shows its results, with noise, the mixture is chosen by them,
and what it gives away by that draw is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from taskmix.mixtures._table import Floats

_TINY = 1e-300
FOLDS = 8


@dataclass(frozen=True, eq=False, kw_only=True)
class Beliefs:
    """What is expected of mixtures after the runs chosen so far, were each draw in turn the truth.

    Two sets of mixtures: contenders, one of which is going to be chosen, and those that can be run.
    """

    target: Callable[[Floats], Floats]  # [..., metric] to [...]
    is_linear: bool  # whether the target is a weighted sum
    offset: Floats  # [contender], mean of targets minus target of means
    chosen: int  # the contender that would be chosen without any run
    truth: Floats  # [draw, contender, metric]
    expected: Floats  # [draw, contender, metric]
    run_truth: Floats  # [draw, run, metric]
    run_expected: Floats  # [draw, run, metric]
    noise: Floats  # [run, metric], standard deviations
    luck: Floats  # [draw, metric], how the next run would come out, in standard deviations

    @classmethod
    def before(
        cls,
        target: Callable[[Floats], Floats],
        *,
        is_linear: bool,
        truth: Floats,
        run_truth: Floats,
        noise: Floats,
        random: np.random.Generator,
    ) -> Beliefs:
        """Before any run."""
        mean, targets = truth.mean(axis=0), target(truth).mean(axis=0)
        return cls(
            target=target,
            is_linear=is_linear,
            offset=targets - target(mean),
            chosen=int(np.argmin(targets)),
            truth=truth,
            expected=np.broadcast_to(mean, truth.shape),
            run_truth=run_truth,
            run_expected=np.broadcast_to(run_truth.mean(axis=0), run_truth.shape),
            noise=noise,
            luck=_luck(random, len(truth), truth.shape[2]),
        )

    def targets(self) -> Floats:
        """[draw, contender], what is expected of the target."""
        found: Floats = self.target(self.expected) + self.offset
        return found

    def after(self, run: int, random: np.random.Generator) -> Beliefs:
        """After one of the runs; the next run has luck of its own."""
        surprise = self._surprises([run])
        gain = self._gains([run], self.truth - self.expected)[0]
        run_gain = self._gains([run], self.run_truth - self.run_expected)[0]
        return replace(
            self,
            expected=self.expected + gain * surprise,
            run_expected=self.run_expected + run_gain * surprise,
            luck=_luck(random, *self.luck.shape),
        )

    def won(self) -> Floats:
        """[draw], by how much the contender chosen after the runs is better than that chosen before."""
        targets = self.targets()
        return np.asarray(targets[:, self.chosen] - targets.min(axis=1))

    def won_after_each(self, runs: Sequence[int]) -> Floats:
        """[run, draw], `won` after each of the runs, one at a time; a few matrix products for all."""
        gains = self._gains(runs, self.truth - self.expected)  # [run, contender, metric]
        surprises = self._surprises(runs)  # [draw, run, metric]
        now = self.targets()
        if self.is_linear:
            slopes = self._slopes()
        found = np.empty((len(runs), len(now)))
        for place in range(len(runs)):
            if self.is_linear:
                targets = now + surprises[:, place] @ (gains[place] * slopes).T
            else:
                moved = self.expected + gains[place] * surprises[:, place, None]
                targets = self.target(moved) + self.offset
            found[place] = targets[:, self.chosen] - targets.min(axis=1)
        return found

    def explained(self, runs: Sequence[int]) -> Floats:
        """[run], how much of the variance of contenders against the chosen one a run explains.

        For choosing among runs of which none is going to change the choice by itself.
        """
        left = self.truth - self.expected
        gains = self._gains(runs, left - left[:, self.chosen : self.chosen + 1])
        seen = (self._surprises(runs) ** 2).mean(axis=0)  # [run, metric]
        scale = self._slopes() if self.is_linear else np.ones(self.noise.shape[1])
        return np.asarray((gains**2 * (seen * scale**2)[:, None]).sum(axis=2).mean(axis=1))

    def _slopes(self) -> Floats:
        """[metric], the weights of a linear target."""
        count = self.noise.shape[1]
        return self.target(np.eye(count)) - self.target(np.zeros((1, count)))

    def _here(self, runs: Sequence[int]) -> Floats:
        """[draw, run, metric], what is not known yet of the runs' mixtures."""
        left = self.run_truth[:, runs] - self.run_expected[:, runs]
        return np.asarray(left - left.mean(axis=0))

    def _surprises(self, runs: Sequence[int]) -> Floats:
        """[draw, run, metric], how far the runs' results would be from what is expected."""
        here, noise = self._here(runs), self.noise[runs]
        found = here + noise * self.luck[:, None]
        # As wide as it should be: by chance the luck of tens of draws goes with their values or against.
        wanted = (here**2).mean(axis=0) + noise**2
        found *= np.sqrt(wanted / np.maximum((found**2).mean(axis=0), _TINY))
        return np.asarray(found)

    def _gains(self, runs: Sequence[int], left: Floats) -> Floats:
        return shrunk_gains(self._here(runs), left, self.noise[runs])


def shrunk_gains(
    here: Floats,  # [draw, run, metric], what is not known of the runs' mixtures
    left: Floats,  # [draw, mixture, metric], what is not known of others
    noise: Floats,  # [run, metric]
) -> Floats:
    """[run, mixture, metric], by how much a mixture's metric moves with a run's surprise of 1."""
    count = len(left)
    here = here - here.mean(axis=0)
    # [metric, run, draw] @ [metric, draw, mixture], the metrics one by one.
    both = np.matmul(here.transpose(2, 1, 0), left.transpose(2, 0, 1)).transpose(1, 2, 0) / count
    variance = (here**2).mean(axis=0)[:, None]
    spread = left.var(axis=0)
    square = np.clip(both**2 / np.maximum(variance * spread, _TINY), 1e-12, 1.0)
    kept = np.maximum(square - (1.0 - square) / max(count - 2, 1), 0.0) / square
    seen = np.maximum(variance + noise[:, None] ** 2, _TINY)
    return np.asarray(kept * both / seen)


def _luck(random: np.random.Generator, draws: int, metrics: int) -> Floats:
    """Of mean 0 and spread 1 over the draws, so that chance does not move what is expected."""
    found = random.standard_normal((draws, metrics))
    found -= found.mean(axis=0)
    return np.asarray(found / np.maximum(found.std(axis=0), _TINY))


def regrets_after(
    start: Beliefs,
    runs: Sequence[int],
    best_of_each: Floats,  # [draw], the lowest target by each draw
    random: np.random.Generator,
) -> Floats:
    """[draw], the regret of what would be chosen after the runs, were that draw the truth."""
    targets = start.target(start.truth)  # [draw, contender]
    found = np.empty(len(targets))
    folds = random.permutation(len(targets)) % FOLDS
    luck = random.standard_normal((len(runs), *start.luck.shape))
    for fold in range(FOLDS):
        is_held = folds == fold
        chosen = _expected_after(start, runs, np.flatnonzero(~is_held), luck)[is_held].argmin(
            axis=1
        )
        found[is_held] = targets[is_held, chosen] - best_of_each[is_held]
    return found


def _expected_after(
    start: Beliefs, runs: Sequence[int], teachers: NDArray[np.int64], luck: Floats
) -> Floats:
    """[draw, contender], the target expected after the runs, gains being taken from some draws."""
    contenders = start.truth.shape[1]
    truth = np.concatenate([start.truth, start.run_truth[:, runs]], axis=1)
    expected = np.broadcast_to(truth[teachers].mean(axis=0), truth.shape)
    for number, run in enumerate(runs):
        left, noise, place = truth - expected, start.noise[run], contenders + number
        here = left[:, place : place + 1]
        gain = shrunk_gains(here[teachers], left[teachers], noise[None])[0]
        expected = expected + gain * (here + (noise * luck[number])[:, None])
    after: Floats = start.target(expected[:, :contenders]) + start.offset
    return after
