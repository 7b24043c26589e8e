r"""One label from the votes of many unreliable sources, without a true label: a generative model by EM.

    Dawid and Skene, "Maximum Likelihood Estimation of Observer Error-Rates Using the EM Algorithm",
    Applied Statistics 28, 1979, Eqs. 2.3 to 2.5.
    Ratner, De Sa, Wu, Selsam and Ré, "Data Programming: Creating Large Training Sets, Quickly",
    NIPS 2016, section 3: independent sources, each with an accuracy and a coverage.

Item i has a hidden class $y_i$ with probabilities $\pi$; source j votes or abstains independently of
the others, given the class. With `accuracies` it is right with probability $\alpha_j$ when it votes,
and wrong votes fall on all other classes alike; when it votes says nothing. With `confusions` its
answer, an abstention counted in, has a probability of its own for every class, so that a source that
only ever votes for one class says something by its silence too.

Both are fitted from the majority vote onwards. `smoothing` pseudo-answers, of the form that the
majority vote gives all sources in the mean, keep the probabilities of a source of few votes away
from 0 and 1. Where every source votes for one class alone, `accuracies` runs into the class of most
votes, and both need the shares of the classes from elsewhere (`balance`), such as a few labelled
items.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taskmix.errors import InputError, OptionError

ABSTAIN = -1  # `_answers` has the vote v at v + 1, so this is place 0 and classes follow it


@dataclass(frozen=True, kw_only=True)
class LabelModel:
    """What the votes say of the sources and of the classes."""

    prior: NDArray[np.float64]  # [class], π
    answers: NDArray[np.float64]  # [source, class, answer]: 0 is an abstention, v + 1 a vote for v
    likelihoods: NDArray[np.float64]  # [round], logarithms, with the pseudo-answers; never falling

    def predict(
        self,
        votes: ArrayLike,  # [item, source]
    ) -> NDArray[np.float64]:
        """[item, class], the probability of each class given the votes."""
        given = _checked(votes, len(self.prior), self.answers.shape[0])
        return _posterior(_answers(given, len(self.prior)), self.prior, self.answers)[0]

    @property
    def accuracies(self) -> NDArray[np.float64]:
        """[source], the probability that a vote is right; NaN for a source that never votes."""
        voted = self.prior @ self.answers[:, :, 1:].sum(axis=2).T
        right = np.einsum("c,jcc->j", self.prior, self.answers[:, :, 1:])
        return np.where(voted > 0, right / np.where(voted > 0, voted, 1.0), np.nan)


def majority_vote(
    votes: ArrayLike,  # [item, source]
    classes: int,
) -> NDArray[np.float64]:
    """[item, class], the share of each class among the most voted; all alike where none voted.

    >>> majority_vote([[0, 0, 1], [0, 1, ABSTAIN]], classes=2)
    array([[1. , 0. ],
           [0.5, 0.5]])
    """
    counts = _answers(_checked(votes, classes), classes)[:, :, 1:].sum(axis=1)
    most = counts == counts.max(axis=1, keepdims=True)
    return np.asarray(most / most.sum(axis=1, keepdims=True))


def fit_label_model(
    votes: ArrayLike,  # [item, source], classes, or `ABSTAIN`
    classes: int,
    *,
    model: Literal["accuracies", "confusions"] = "confusions",
    balance: ArrayLike | None = None,  # [class], π where it is known; estimated
    smoothing: float = 50.0,
    rounds: int = 200,
    tolerance: float = 1e-7,  # of the mean log-likelihood of an item
) -> LabelModel:
    """EM until the likelihood stands still; items on which nobody voted are left out.

    >>> votes = [[0, 0, 1]] * 30 + [[1, 1, 0]] * 30 + [[0, 0, 0]] * 20 + [[1, 1, 1]] * 20
    >>> model = fit_label_model(votes, classes=2, smoothing=1.0)
    >>> model.accuracies.round(1)  # the third source contradicts the two others more often than not
    array([1. , 1. , 0.4])
    """
    given = _checked(votes, classes)
    if model not in ("accuracies", "confusions"):
        raise OptionError(f"`model` should be accuracies or confusions. Found {model!r}.")
    if smoothing < 0 or rounds < 1:
        raise OptionError(
            f"`smoothing` should be 0 or more and `rounds` 1 or more. Found {smoothing} and {rounds}."
        )
    given = given[(given != ABSTAIN).any(axis=1)]
    if len(given) == 0:
        raise InputError("The sources should have voted on some items. Found no vote at all.")
    answers = _answers(given, classes)
    posterior = majority_vote(given, classes)
    # What a source does in the mean, as pseudo-answers for each.
    pooled = np.einsum("ic,ija->ca", posterior, answers)[None]
    usual = _emissions(pooled, np.zeros_like(pooled), model)
    extra = smoothing * usual / classes
    likelihoods: list[float] = []
    prior, emissions = _balance(balance, classes), usual
    for _ in range(rounds):
        if balance is None:
            # Eq. 2.4, with one more item of each class.
            prior = (posterior.sum(axis=0) + 1) / (len(given) + classes)
        counts = np.einsum("ic,ija->jca", posterior, answers)
        emissions = _emissions(counts, extra, model)  # Eq. 2.3
        posterior, likelihood = _posterior(answers, prior, emissions)  # Eq. 2.5
        logs = np.log(np.maximum(emissions, 1e-300))
        likelihood += float((extra * logs).sum()) + float(np.log(prior).sum())
        likelihoods.append(likelihood)
        if len(likelihoods) > 1 and likelihood - likelihoods[-2] < tolerance * len(given):
            break
    return LabelModel(prior=prior, answers=emissions, likelihoods=np.array(likelihoods))


def _balance(balance: ArrayLike | None, classes: int) -> NDArray[np.float64]:
    if balance is None:
        return np.full(classes, 1 / classes)
    shares = np.asarray(balance, dtype=np.float64)
    if shares.shape != (classes,) or shares.min() <= 0 or not np.isclose(shares.sum(), 1):
        raise OptionError(
            f"`balance` should be {classes} shares above 0 that sum to 1. Found {shares.tolist()}."
        )
    return shares


def _emissions(
    counts: NDArray[np.float64],  # [source, class, answer], expected
    extra: NDArray[np.float64],  # [source or 1, class, answer], pseudo-answers
    model: str,
) -> NDArray[np.float64]:
    """[source, class, answer], the probabilities that make the counts likeliest."""
    total = counts + extra
    if model == "confusions":
        below = total.sum(axis=2, keepdims=True)
        return np.where(below > 0, total / np.where(below > 0, below, 1.0), 1 / total.shape[2])
    classes = total.shape[1]
    every, silent = total.sum(axis=(1, 2)), total[:, :, 0].sum(axis=1)
    right = np.einsum("jcc->j", total[:, :, 1:])
    voted = every - silent
    accuracy = np.where(voted > 0, right / np.where(voted > 0, voted, 1.0), 1 / classes)
    coverage = voted / np.where(every > 0, every, 1.0)
    wrong = (1 - accuracy) / max(classes - 1, 1)
    found = np.empty(total.shape)
    found[:, :, 0] = 1 - coverage[:, None]
    found[:, :, 1:] = (coverage * wrong)[:, None, None]
    place = np.arange(classes)
    found[:, place, place + 1] = (coverage * accuracy)[:, None]
    return found


def _posterior(
    answers: NDArray[np.float64], prior: NDArray[np.float64], emissions: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float]:
    """[item, class], and the log-likelihood of all answers."""
    logs = np.log(np.maximum(emissions, 1e-300))
    joint = np.log(prior) + np.einsum("ija,jca->ic", answers, logs, optimize=True)
    top = joint.max(axis=1, keepdims=True)
    shares = np.exp(joint - top)
    totals = shares.sum(axis=1, keepdims=True)
    return shares / totals, float((np.log(totals) + top).sum())


def _answers(votes: NDArray[np.int64], classes: int) -> NDArray[np.float64]:
    """[item, source, answer], one for the answer given."""
    return np.eye(classes + 1)[votes + 1]


def _checked(votes: ArrayLike, classes: int, sources: int | None = None) -> NDArray[np.int64]:
    given = np.asarray(votes)
    if given.ndim != 2 or (sources is not None and given.shape[1] != sources):
        raise InputError(
            f"`votes` should be [item, source]{f' with {sources} sources' if sources else ''}. Found "
            f"shape {given.shape}."
        )
    if classes < 2 or given.size == 0:
        raise InputError(
            f"There should be votes, for two classes or more. Found {given.size} and {classes} classes."
        )
    if (
        not np.issubdtype(given.dtype, np.integer)
        or given.min() < ABSTAIN
        or given.max() >= classes
    ):
        raise InputError(
            f"A vote should be a class from 0 to {classes - 1}, or {ABSTAIN} for none. Found "
            f"{given.min()} to {given.max()}."
        )
    return given.astype(np.int64)
