"""Back-off counts and what tasks have of their own, against values by hand and slow ways."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from scipy.special import gammaln

from taskmix.sequences import Gaussian, Markov, OwnStrengths, SequenceMixture, flatten_sequences
from taskmix.sequences import _backoff as strengths_module
from taskmix.sequences._backoff import Strengths, backed_off_steps, learn_strengths
from taskmix.sequences._chains import count_chains, find_transitions
from taskmix.sequences._markov import learn_factor


def counted(parts: list[Any], tasks: list[int], symbols: int, order: int) -> Any:
    seen = find_transitions(flatten_sequences(parts, symbols=symbols), order, halting=True)
    group = np.array(tasks)[seen.owner]
    weight = np.ones(len(group))
    chains = count_chains(group, seen, weight, groups=max(tasks) + 1, symbols=symbols, order=order)
    return chains, seen, group, weight


def test_a_level_by_hand() -> None:
    """After 0 came 1 twice and the end once: (2 - d + (s + 2d) B(1)) / (3 + s), and so on below."""
    chains, _, _, _ = counted([[0, 1], [0, 1], [0]], [0, 0, 0], 2, 1)
    held = Strengths((2.0, 1.0), (0.0, 0.5), (0.0, 0.25))
    outside = np.array([0.2, 0.3, 0.5])
    row = chains.rows(np.array([0]), np.array([1]), outside[None], held)[0]
    # No context: 0 three times, 1 twice, the end three times, of eight.
    below = (np.array([3.0, 2.0, 3.0]) + 2 * outside) / 10
    base = 0.75 * below + 0.25 * outside
    expected = (np.array([0.0, 1.5, 0.5]) + (1 + 0.5 * 2) * base) / 4
    np.testing.assert_allclose(row, expected)
    first = chains.rows(np.array([0]), np.array([0]), np.array([[0.5, 0.5, 0.0]]), held)[0]
    assert first[-1] == 0  # nothing ends before it has begun
    assert first.sum() == pytest.approx(1.0)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31), st.integers(0, 3))
def test_leaving_out_is_counting_without(seed: int, order: int) -> None:
    generator = np.random.default_rng(seed)
    parts = [generator.integers(0, 3, generator.integers(1, 6)) for _ in range(6)]
    tasks = [0, 1, 0, 1, 0, 0]
    chains, seen, group, weight = counted(parts, tasks, 3, order)
    left = chains.leave_out(group, seen, weight)
    for sequence in range(len(parts)):
        rest = [place for place in range(len(parts)) if place != sequence]
        others, _, _, _ = counted(
            [parts[place] for place in rest], [tasks[p] for p in rest], 3, order
        )
        own = seen.owner == sequence
        wanted = others.look_up(group[own], seen.contexts[own], seen.symbol[own])
        for name in ("times", "totals", "kinds"):
            np.testing.assert_allclose(getattr(left, name)[:, own], getattr(wanted, name))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**31))
def test_rows_are_distributions_and_say_what_single_steps_say(seed: int) -> None:
    generator = np.random.default_rng(seed)
    parts = [generator.integers(0, 3, generator.integers(1, 6)) for _ in range(5)]
    chains, seen, group, _ = counted(parts, [0, 1, 0, 1, 0], 3, 2)
    held = Strengths(*(tuple(generator.random(3).tolist()) for _ in range(3)))
    outside = generator.dirichlet(np.ones(4), len(seen.symbol))
    outside[seen.contexts == 0, -1] = 0.0
    outside /= outside.sum(axis=1, keepdims=True)
    rows = chains.rows(group, seen.contexts, outside, held)
    np.testing.assert_allclose(rows.sum(axis=1), 1.0)
    places = np.arange(len(seen.symbol))
    steps = backed_off_steps(
        chains.look_up(group, seen.contexts, seen.symbol), outside[places, seen.symbol], held
    )
    np.testing.assert_allclose(rows[places, seen.symbol], steps)
    more = chains.with_more(group, seen, np.ones(len(group)), 3)
    doubled = more.look_up(group, seen.contexts, seen.symbol)
    once = chains.look_up(group, seen.contexts, seen.symbol)
    np.testing.assert_allclose(doubled.times, 2 * once.times)
    np.testing.assert_allclose(doubled.totals, 2 * once.totals)


def test_the_gradient_is_that_of_differences(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(0)
    parts = [generator.integers(0, 3, 6) for _ in range(8)]
    chains, seen, group, weight = counted(parts, [0, 1] * 4, 3, 2)
    left = chains.leave_out(group, seen, weight)
    asked: list[Any] = []

    def look(level: Any, first: Any, **options: Any) -> Any:
        point = first + generator.normal(0, 0.5, len(first))
        slow = approx_fprime(point, lambda values: level(values)[0], 1e-6)
        asked.append((level(point)[1], slow))
        return type("Found", (), {"x": first})

    monkeypatch.setattr(strengths_module, "minimize", look)
    learn_strengths(left, np.full(len(weight), 0.25), weight)
    np.testing.assert_allclose(*asked[0], rtol=1e-3, atol=1e-4)


def drawn(tasks: int, each: int, apart: float, seed: int = 0) -> tuple[list[Any], list[int]]:
    """Chains of tasks, each `apart` from one that all have in common."""
    generator = np.random.default_rng(seed)
    common = generator.dirichlet(np.full(4, 0.5), 5)
    sequences, owners = [], []
    for task in range(tasks):
        own = generator.dirichlet(np.full(4, 0.5), 5)
        rows = (1 - apart) * common + apart * own
        for _ in range(each):
            symbols = [int(generator.choice(4, p=rows[4]))]
            while len(symbols) < 8:
                symbols.append(int(generator.choice(4, p=rows[symbols[-1]])))
            sequences.append(np.array(symbols))
            owners.append(task)
    return sequences, owners


@pytest.mark.parametrize("apart", [0.0, 0.5, 1.0])
def test_a_task_with_its_own_part_is_no_worse_than_alone_or_pooled(apart: float) -> None:
    sequences, owners = drawn(6, 40, apart)
    train = [place for place in range(len(owners)) if place % 40 < 20]
    test = [place for place in range(len(owners)) if place % 40 >= 20]
    fit = ([sequences[place] for place in train], [owners[place] for place in train])
    judged = ([sequences[place] for place in test], [owners[place] for place in test])
    ours = SequenceMixture(Markov(), 1, random_state=0).fit(*fit).score(*judged)
    pooled = SequenceMixture(Markov(), 1, own=False, random_state=0).fit(*fit).score(*judged)
    alone = np.mean(
        [
            SequenceMixture(Markov(), 1, own=False, symbols=4, random_state=0)
            .fit([one for one, owner in zip(*fit, strict=True) if owner == task])
            .score([one for one, owner in zip(*judged, strict=True) if owner == task])
            for task in range(6)
        ]
    )
    assert ours > max(pooled, alone) - 0.03  # nats a sequence, of about eleven
    if apart == 0.5:
        assert ours > max(pooled, alone)


def test_vectors_have_a_generator_of_their_own_where_it_helps() -> None:
    generator = np.random.default_rng(0)
    sequences, owners = [], []
    for task in range(6):
        centre = generator.normal(0, 3, 2)
        for _ in range(16):
            sequences.append(centre + generator.normal(size=(5, 2)))
            owners.append(task)
    fit = (sequences[::2], owners[::2])
    judged = (sequences[1::2], owners[1::2])
    plain = SequenceMixture(Gaussian(), 1, own=False, random_state=0).fit(*fit)
    ours = SequenceMixture(Gaussian(), 1, random_state=0).fit(*fit)
    assert ours.own_ is not None
    assert ours.score(*judged) > plain.score(*judged) + 1
    found = ours.task_log_likelihood(judged[0])
    assert (found.argmax(axis=1) == np.array(judged[1])).mean() > 0.8
    np.testing.assert_allclose(found[np.arange(len(found)), judged[1]], ours.score_samples(*judged))
    ahead = ours.predict_next(sequences[0][:2], 0)
    assert ahead.mean is not None
    assert ours.sample(3, length=4, random_state=0).shape == (4, 2)
    new = [np.array([9.0, -9.0]) + generator.normal(size=(5, 2)) for _ in range(6)]
    wider = ours.adapt(new, ["new"] * 6)
    assert wider.score(new, ["new"] * 6) > ours.score(new, [None] * 6) + 1
    np.testing.assert_allclose(wider.score_samples(*judged), ours.score_samples(*judged))


def test_strengths_that_are_given_are_taken_and_new_tasks_count_for_themselves() -> None:
    sequences, owners = drawn(4, 10, 0.5)
    learned = SequenceMixture(Markov(), 1, random_state=0).fit(sequences, owners)
    assert learned.own_ is not None
    held = OwnStrengths(learned.own_.chains.order, learned.own_.held)
    given_ = SequenceMixture(Markov(), 1, own=held, random_state=0).fit(sequences, owners)
    np.testing.assert_allclose(
        given_.score_samples(sequences, owners), learned.score_samples(sequences, owners)
    )
    wider = learned.adapt(sequences[:10], ["again"] * 10)
    np.testing.assert_allclose(
        wider.score_samples(sequences[:10], ["again"] * 10),
        learned.score_samples(sequences[:10], owners[:10]),
        rtol=1e-6,
    )


def test_a_strength_is_that_of_the_marginal_likelihood() -> None:
    # By hand, one coin each: 9 of 10 and 1 of 10, even prior means. With strength 2f the likelihood is
    # [Γ(2f) Γ(f+9) Γ(f+1) / (Γ(2f+10) Γ(f)²)]²; on a grid of f it is highest at about 0.47.
    counts = np.array([[[9.0, 1.0]], [[1.0, 9.0]]])
    grid = np.linspace(0.02, 1.0, 99)
    levels = (
        gammaln(2 * grid) - gammaln(2 * grid + 10)
        + gammaln(grid + 9) + gammaln(grid + 1) - 2 * gammaln(grid)
    )  # fmt: skip
    found = learn_factor(counts, np.array([[0.5, 0.5]]), np.array([2.0]))
    assert found == pytest.approx(grid[levels.argmax()], abs=0.02)
