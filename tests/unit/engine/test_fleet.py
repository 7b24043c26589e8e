"""A member of a fleet gives what it gives alone: rows, draws, losses, best step, scores, parameters."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fleet_toys import (
    RUN,
    SUBSETS,
    MarkedRows,
    changed,
    runs_of,
    side_by_side,
    tag_source,
    text_source,
    vectors_file,
)

from taskmix.engine import Optimization
from taskmix.models import Perceptron, TextConvolution, WindowBiLSTM
from taskmix.policies import Fixed, SizeProportional, Tempered, Uniform
from taskmix.tasks import NgramEncoding
from taskmix.weighting import Equal, FixedWeights

DECISIONS: list[Any] = [Equal(), None]  # all tasks every step, or one drawn


@pytest.mark.parametrize("weighting", DECISIONS, ids=["all", "drawn"])
def test_perceptrons_train_as_they_do_alone(tmp_path: Path, weighting: Any) -> None:
    side_by_side(runs_of(weighting=weighting), tmp_path)


@pytest.mark.parametrize(
    ("rates", "weighting"), [((0.2, 0.3), None), ((0.2, 0.0), Equal()), ((0.0, 0.3), Equal())]
)
def test_dropout_leaves_out_the_same_units(
    tmp_path: Path, rates: tuple[float, float], weighting: Any
) -> None:
    dropping = Perceptron(hidden=(16, 12), dropout=rates[0], head_dropout=rates[1])
    side_by_side([changed(run, dropping) for run in runs_of(weighting=weighting)], tmp_path)


@pytest.mark.parametrize("weighting", DECISIONS, ids=["all", "drawn"])
def test_one_head_of_all_tasks_is_shared_within_a_member_alone(
    tmp_path: Path, weighting: Any
) -> None:
    subsets = (("parity", "shuffled_parity"), ("shuffled_parity",), ("parity", "shuffled_parity"))
    pooled = Perceptron(hidden=(16,), one_head=True, dropout=0.1)
    runs = runs_of(changed(RUN, pooled), subsets, weighting=weighting)
    side_by_side(runs, tmp_path)


@pytest.mark.parametrize(
    ("kind", "weighting"), [("sgd", Equal()), ("adamw", None), ("adam", Equal())]
)
def test_every_optimiser_steps_as_alone_with_each_members_rate_decay_and_clipping(
    tmp_path: Path, kind: Any, weighting: Any
) -> None:
    runs = [
        replace(
            run,
            clip_norm=[None, 0.5, 0.1][number],
            optimization=Optimization(
                optimizer=kind,
                learning_rate=[1e-2, 1e-3, 1e-2][number],
                weight_decay=[0.0, 0.1, 0.01][number],
                schedule="cosine",
                warmup=0.2,
            ),
        )
        for number, run in enumerate(runs_of(weighting=weighting))
    ]
    side_by_side(runs, tmp_path)


def test_every_policy_that_learns_nothing_draws_what_it_draws_alone(tmp_path: Path) -> None:
    policies = (Tempered(temperature=2.0), SizeProportional(), Fixed((0.9, 0.1)), None, Uniform())
    subsets = (*SUBSETS, SUBSETS[0], SUBSETS[1])
    runs = runs_of(subsets=subsets, weighting=None)
    side_by_side([replace(r, policy=p) for r, p in zip(runs, policies, strict=True)], tmp_path)


def test_fixed_weights_differ_between_members(tmp_path: Path) -> None:
    weights = ((1.0, 3.0), (1.0, 0.0, 2.0), (5.0, 1.0))
    runs = [
        replace(run, weighting=FixedWeights(weights=given))
        for run, given in zip(runs_of(), weights, strict=True)
    ]
    side_by_side(runs, tmp_path)


@pytest.mark.parametrize("weighting", DECISIONS, ids=["all", "drawn"])
def test_tasks_that_share_their_rows_and_miss_labels_train_as_alone(
    tmp_path: Path, weighting: Any
) -> None:
    subsets = (("kind", "sum", "many"), ("sum",), ("many", "kind"))
    base = replace(RUN, source=MarkedRows())
    side_by_side(runs_of(base, subsets, weighting=weighting), tmp_path)


@pytest.mark.parametrize(
    ("words", "weighting"), [("learned", Equal()), ("frozen", None), ("trained", Equal())]
)
def test_text_convolutions_read_texts_and_pairs_as_alone(
    tmp_path: Path, words: str, weighting: Any
) -> None:
    vectors = None if words == "learned" else vectors_file(tmp_path)
    architecture = TextConvolution(
        filters=5,
        kernels=(3, 5) if vectors else (1,),
        dimension=6,
        min_count=1,
        vectors=vectors,
        train_vectors=words == "trained",
        head_dropout=0.3 if words == "learned" else 0.0,
    )
    subsets = (("two", "three"), ("long", "two"), ("pair", "two", "long"), ("pair",))
    base = changed(RUN, architecture, source=text_source(tmp_path))
    side_by_side(runs_of(base, subsets, steps=12, weighting=weighting), tmp_path)


@pytest.mark.parametrize("weighting", DECISIONS, ids=["all", "drawn"])
def test_perceptrons_on_ngrams_read_texts_and_pairs_as_alone(
    tmp_path: Path, weighting: Any
) -> None:
    architecture = Perceptron(hidden=(8,), reads=NgramEncoding(width=24))
    subsets = (("two", "three"), ("long", "two"), ("pair", "two", "long"), ("pair",), ("three",))
    base = changed(RUN, architecture, source=text_source(tmp_path))
    side_by_side(runs_of(base, subsets, steps=12, weighting=weighting), tmp_path)


@pytest.mark.parametrize(("words", "weighting"), [("learned", None), ("frozen", Equal())])
def test_window_taggers_read_half_the_window_and_train_as_alone(
    tmp_path: Path, words: str, weighting: Any
) -> None:
    architecture = WindowBiLSTM(
        width=2 if words == "learned" else 0,
        hidden=4,
        dimension=6,
        vectors=None if words == "learned" else vectors_file(tmp_path),
        shared_layers=(7,) if words == "learned" else (),
        task_layers=(5,) if words == "learned" else (),
        head_dropout=0.2 if words == "learned" else 0.0,
    )
    base = changed(RUN, architecture, source=tag_source(tmp_path))
    subsets = (("entities", "parts"), ("parts",), ("parts", "entities"))
    side_by_side(runs_of(base, subsets, weighting=weighting), tmp_path)


def test_members_of_lower_precision_are_as_near_as_it_lets_them(tmp_path: Path) -> None:
    from taskmix.engine import Fleet, Here
    from taskmix.records import Study

    runs = runs_of(precision="bfloat16", steps=10)
    alone = Here(workers=1).run(runs, Study(tmp_path / "alone"))
    together = Fleet(workers=1).run(runs, Study(tmp_path / "together"))
    for solo, member in zip(alone, together, strict=True):
        assert solo.summary is not None
        assert member.summary is not None
        for mine, its in zip(member.summary.scores, solo.summary.scores, strict=True):
            assert mine.value == pytest.approx(its.value, rel=0.05, abs=0.05)


def test_each_member_stops_when_it_would_alone_and_the_others_go_on(
    tmp_path: Path,
) -> None:
    subsets = (*SUBSETS, ("half",), ("shuffled_ten",))
    runs = runs_of(subsets=subsets, steps=60, evaluate_every=4, patience=1)
    side_by_side(runs, tmp_path)
    from taskmix.records import Study

    lengths = {summary.step for summary in Study(tmp_path / "together").summaries()}
    assert len(lengths) > 1  # else nothing was tried


def test_a_member_that_diverges_fails_alone_and_in_the_same_words(tmp_path: Path) -> None:
    for number, weighting in enumerate(DECISIONS):
        runs = runs_of(weighting=weighting, checkpoint_every=5, evaluate_every=None)
        wild = Optimization(optimizer="sgd", learning_rate=1e30)
        tame = Optimization(optimizer="sgd", learning_rate=1e-2)
        runs = [
            replace(run, optimization=wild if place == 1 else tame)
            for place, run in enumerate(runs)
        ]
        side_by_side(runs, tmp_path / str(number))
