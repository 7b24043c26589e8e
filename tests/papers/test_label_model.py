"""The label model against Bayes' rule written out, and on votes whose sources are known."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from papers.label_model import fit_label_model, majority_vote

VOTES = arrays(
    np.int64, st.tuples(st.integers(1, 12), st.integers(1, 5)), elements=st.integers(-1, 2)
)


def simulated(
    generator: np.random.Generator, accuracies: list[float], coverage: float, items: int
) -> tuple[np.ndarray, np.ndarray]:
    """Votes of independent sources on items of three classes, and the truth."""
    truth = generator.choice(3, size=items, p=[0.5, 0.3, 0.2])
    votes = np.full((items, len(accuracies)), -1)
    for place, accuracy in enumerate(accuracies):
        right = generator.random(items) < accuracy
        wrong = (truth + generator.integers(1, 3, size=items)) % 3
        voted = generator.random(items) < coverage
        votes[voted, place] = np.where(right, truth, wrong)[voted]
    return votes, truth


@given(
    VOTES.filter(lambda votes: bool((votes >= 0).any())),
    st.sampled_from(["accuracies", "confusions"]),
)
def test_posteriors_are_bayes_rule_and_the_likelihood_never_falls(
    votes: np.ndarray, kind: str
) -> None:
    model = fit_label_model(votes, 3, model=kind, smoothing=2.0)  # type: ignore[arg-type]
    assert np.diff(model.likelihoods).min(initial=0.0) > -1e-8
    assert model.answers.sum(axis=2) == pytest.approx(np.ones(model.answers.shape[:2]))
    for row, found in zip(votes, model.predict(votes), strict=True):
        joint = [
            model.prior[label]
            * math.prod(model.answers[source, label, vote + 1] for source, vote in enumerate(row))
            for label in range(3)
        ]
        assert found.sum() == pytest.approx(1)
        if sum(joint) > 1e-12:  # not where a row that nobody voted on is the only silence there is
            assert found.tolist() == pytest.approx([value / sum(joint) for value in joint])


def test_one_round_of_em_is_the_sum_over_all_assignments() -> None:
    """Brute force: the expected counts from every way to label three items."""
    votes = np.array([[0, 0, 1], [1, -1, 1], [0, 1, -1]])
    begin = majority_vote(votes, 2)
    counts = np.zeros((3, 2, 3))
    for labels in itertools.product(range(2), repeat=3):
        weight = math.prod(begin[item, label] for item, label in enumerate(labels))
        for item, label in enumerate(labels):
            for source, vote in enumerate(votes[item]):
                counts[source, label, vote + 1] += weight
    expected = counts / counts.sum(axis=2, keepdims=True)
    found = fit_label_model(votes, 2, rounds=1, smoothing=0.0)
    assert found.answers == pytest.approx(expected)
    assert found.prior.tolist() == pytest.approx((begin.sum(axis=0) + 1) / 5)


@pytest.mark.parametrize("kind", ["accuracies", "confusions"])
def test_known_sources_are_recovered_and_their_posterior_beats_the_majority(kind: str) -> None:
    accuracies = [0.95, 0.9, 0.6, 0.55, 0.5, 0.45, 0.45]
    votes, truth = simulated(np.random.default_rng(0), accuracies, 0.7, 6000)
    model = fit_label_model(votes, 3, model=kind, smoothing=5.0)  # type: ignore[arg-type]
    assert model.accuracies.tolist() == pytest.approx(accuracies, abs=0.04)
    assert model.prior.tolist() == pytest.approx([0.5, 0.3, 0.2], abs=0.03)
    rows = np.arange(len(truth))
    voted = majority_vote(votes, 3)[rows, truth].mean()
    assert (model.predict(votes).argmax(axis=1) == truth).mean() > voted + 0.05


def test_a_source_that_votes_for_one_class_speaks_by_its_silence() -> None:
    generator = np.random.default_rng(1)
    truth = generator.integers(2, size=3000)
    fires = generator.random((3000, 4)) < np.where(truth == 1, 0.8, 0.05)[:, None]
    other = np.where(generator.random(3000) < 0.9, truth, 1 - truth)
    votes = np.column_stack([np.where(fires, 1, -1), other])
    model = fit_label_model(votes, 2, balance=[0.5, 0.5])
    silent = np.array([[-1, -1, -1, -1, 1]])
    assert model.predict(silent)[0, 0] > 0.9, "four that stay silent outvote one"
