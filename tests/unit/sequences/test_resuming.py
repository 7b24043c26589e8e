"""A fit that is interrupted anywhere, and gone on with, ends with the bits of an undisturbed one."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from taskmix.errors import OptionError, RecordError, RunError
from taskmix.numerics import state_to_tree
from taskmix.records import Study, load_state, save_state
from taskmix.sequences import (
    FitStoppedError,
    Gaussian,
    GaussianHiddenMarkov,
    HiddenMarkov,
    LinearDynamics,
    Markov,
    Multinomial,
    PooledMixture,
    RecordedFits,
    Recurrent,
    SeparateModels,
    SequenceMixture,
    _restarts,
    choose_mixture,
    compare_with_baselines,
)
from taskmix.sequences._storage import from_tree

KINDS: dict[str, Any] = {
    "markov": Markov(),
    "markov of order 2": Markov(order=2),
    "hmm": HiddenMarkov(states=2),
    "hmm, products": HiddenMarkov(states=5),
    "multinomial": Multinomial(),
    "gru": Recurrent(hidden=4, embedded=3, steps=2),
    "gaussian": Gaussian(),
    "gaussian mixture": Gaussian(components=2, covariance="diagonal"),
    "gaussian hmm": GaussianHiddenMarkov(states=2),
    "lds": LinearDynamics(states=2),
    "gru of vectors": Recurrent(observes="vectors", hidden=4, steps=2),
    "two kinds": [Markov(), HiddenMarkov(states=2)],
}
WAYS: dict[str, dict[str, Any]] = {
    "restarts": {"n_init": 2, "max_iter": 5},
    "annealing": {"n_init": 2, "annealing": 2, "max_iter": 4},
    "batches": {"batch_size": 11, "max_iter": 2},
}


@pytest.fixture(autouse=True)
def short_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starts are compared early, so that the best one has iterations left; and no disk is waited for."""
    monkeypatch.setattr(_restarts, "SHORT", 3)
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def model_of(kind: str, **options: Any) -> SequenceMixture:
    number = [2, 1] if kind == "two kinds" else 3
    return SequenceMixture(KINDS[kind], number, random_state=1, tol=0.0, **options)


def data_of(model: Any) -> tuple[list[Any], list[str]]:
    """Thirty sequences of five tasks."""
    generator = np.random.default_rng(0)
    sequences: list[Any] = []
    for _ in range(30):
        size = int(generator.integers(2, 7))
        if model.observes == "symbols":
            letters = generator.choice(list("abcd"), size, p=generator.dirichlet(np.ones(4)))
            sequences.append("".join(letters))
        else:
            sequences.append(generator.normal(size=(size, 2)).cumsum(axis=0))
    return sequences, [f"task {place % 5}" for place in range(30)]


def bits(value: Any) -> Any:
    """Whatever a model has learned, so that equal means every bit."""
    if is_dataclass(value) and not isinstance(value, type):
        return [bits(getattr(value, each.name)) for each in fields(value)]
    if isinstance(value, dict):
        return [(key, bits(item)) for key, item in value.items()]
    if isinstance(value, list | tuple):
        return [bits(item) for item in value]
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    return value.hex() if isinstance(value, float) else value


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_from_every_state_a_fit_goes_on_to_the_same_bits(
    kind: str, way: str, tmp_path: Path
) -> None:
    whole = model_of(kind, **WAYS[way])
    sequences, tasks = data_of(whole)
    states = list(whole.fit_states(sequences, tasks))
    assert len(states) > 5
    expected = bits(whole.learned())
    every = range(0, len(states), 1 if kind == "markov" else 3)
    for place in every:
        save_state(tmp_path / "state", state_to_tree(states[place], named=True))
        state = from_tree(load_state(tmp_path / "state"), tmp_path / "state")
        again = model_of(kind, **WAYS[way])
        rest = list(again.fit_states(sequences, tasks, resume=state))
        assert len(rest) == len(states) - place - 1
        assert bits(again.learned()) == expected


def fitted_in_pieces(
    study: Path, make: Callable[[], Any], data: tuple[list[Any], list[str]]
) -> tuple[Any, Any, int]:
    """The model, its result and the number of stops: it is stopped after every iteration."""
    for stops in count():
        fits = RecordedFits(study=Study(study), data="d", should_stop=lambda: True)
        model = make()
        try:
            return model, fits("it", model, *data, partial(model.score, *data)), stops
        except FitStoppedError:
            (summary,) = Study(study).summaries()
            assert (summary.status, summary.step) == ("stopped", stops + 1)
    raise AssertionError


@pytest.mark.parametrize("kind", ["markov", "hmm, products", "lds", "gru of vectors"])
def test_a_recorded_fit_stopped_after_every_iteration_ends_as_if_never_stopped(
    kind: str, tmp_path: Path
) -> None:
    for way in WAYS:
        whole = model_of(kind, **WAYS[way])
        data = data_of(whole)
        states = list(whole.fit_states(*data))
        study = tmp_path / way
        found, score, stops = fitted_in_pieces(study, lambda w=way: model_of(kind, **WAYS[w]), data)  # type: ignore[misc]
        assert stops == len(states)
        assert bits(found.learned()) == bits(whole.learned())
        assert score == whole.score(*data)
        (summary,) = Study(study).summaries()
        assert summary.status == "finished"
        assert [row.value for row in summary.scores] == [states[-1].bound]
        bounds = [state.bound for state in states if state.bound is not None]
        (run,) = Study(study).runs()
        assert run.scores()["value"].to_pylist() == bounds


@pytest.mark.parametrize(
    "make",
    [
        lambda: SeparateModels(model_of("hmm", n_init=1, max_iter=3)),
        lambda: SeparateModels(model_of("markov", batch_size=4, max_iter=2)),
        lambda: PooledMixture(HiddenMarkov(states=2), 2, n_init=2, max_iter=5, random_state=0),
    ],
)
def test_baselines_go_on_as_well(make: Callable[[], Any], tmp_path: Path) -> None:
    whole = make()
    data = data_of(model_of("hmm"))
    whole.fit(*data)
    found, score, stops = fitted_in_pieces(tmp_path, make, data)
    assert stops > 5
    assert bits(found.learned()) == bits(whole.learned())
    assert score == whole.score(*data)


def test_a_killed_fit_loses_only_what_came_after_its_last_checkpoint(tmp_path: Path) -> None:
    class Killed(BaseException):
        pass

    whole = model_of("markov", n_init=2, max_iter=5)
    data = data_of(whole)
    expected = len(list(whole.fit_states(*data)))
    taken = 0

    def die(state: Any) -> None:
        nonlocal taken
        taken += 1
        if taken % 3 == 0:
            raise Killed

    while True:
        model = model_of("markov", n_init=2, max_iter=5, on_state=die)
        fits = RecordedFits(study=Study(tmp_path), data="d", save_every=0.0)
        try:
            fits("it", model, *data, lambda: None)
            break
        except Killed:  # between an iteration and its checkpoint: the iteration is done again
            continue
    assert taken == expected + (expected - 1) // 2
    assert bits(model.learned()) == bits(whole.learned())


def test_asking_twice_fits_once_and_fresh_fits_again(tmp_path: Path) -> None:
    seen: list[Any] = []
    data = data_of(model_of("markov"))

    def ask(**options: Any) -> SequenceMixture:
        model = model_of("markov", n_init=1, max_iter=3, on_state=seen.append)
        RecordedFits(study=Study(tmp_path), **{"data": "d", **options})("it", model, *data, int)
        return model

    first = ask()
    assert len(seen) == 3
    assert bits(ask().learned()) == bits(first.learned())
    assert len(seen) == 3
    ask(data="other")
    assert len(seen) == 6
    assert bits(ask(fresh=True).learned()) == bits(first.learned())
    assert len(seen) == 9


def test_a_choice_and_a_comparison_in_pieces_are_those_in_one_piece(tmp_path: Path) -> None:
    model = model_of("markov", n_init=1, max_iter=3)
    data = data_of(model)
    held = (data[0][:9], data[1][:9])
    fits = RecordedFits(study=Study(tmp_path), data="d", should_stop=lambda: True)

    def insist(ask: Callable[..., Any], *given: Any, **options: Any) -> tuple[Any, int]:
        for stops in count():
            try:
                return ask(clone(model), *given, **options, fitting=fits), stops
            except FitStoppedError:
                continue
        raise AssertionError

    wanted = {"generator": model.generator, "budget": 2}
    choice, stops = insist(choose_mixture, *data, **wanted)
    assert stops > 6
    assert bits(choice) == bits(choose_mixture(clone(model), *data, **wanted))
    found, stops = insist(compare_with_baselines, *data, *held)
    assert stops > 5
    whole = compare_with_baselines(clone(model), *data, *held)
    assert bits(found.rows) == bits(whole.rows)
    for name, fitted in found.models.items():
        assert bits(fitted.learned()) == bits(whole.models[name].learned())


def test_what_cannot_be_gone_on_with_is_refused_in_a_sentence(tmp_path: Path) -> None:
    data = data_of(model_of("markov"))
    study = Study(tmp_path)
    fits = RecordedFits(study=study, data="d", should_stop=lambda: True)
    model = model_of("markov", n_init=1)
    with pytest.raises(OptionError, match="whole number where a fit is recorded"):
        fits("it", clone(model).set_params(random_state=None), *data, int)
    with pytest.raises(FitStoppedError):
        fits("it", model, *data, int)
    (run,) = study.runs()
    with run.claim() as claim:
        assert claim.writer is not None
        with pytest.raises(RunError, match="Found it busy"):
            fits("it", model, *data, int)
        summary = run.summary()
        assert summary is not None
        specification, tasks = summary.specification, summary.tasks
        claim.writer.start(
            specification=specification, seed=1, label="it", tasks=tasks, steps=summary.steps
        )
        claim.writer.commit(5, {"another": "form"}, best=None, best_step=None)
    with pytest.raises(RecordError, match="Found something else"):
        fits("it", model, *data, int)


def test_every_class_that_files_have_by_name_is_still_called_so() -> None:
    """A class that is renamed could not be read from what an older version wrote."""
    for name in (
        *(
            "AdaptedStrengths",
            "Chains",
            "ForeseenRest",
            "OwnChains",
            "OwnGenerators",
            "OwnStrengths",
        ),
        *(
            "Strengths",
            "Alphabet",
            "Background",
            "Backoff",
            "Bank",
            "BatchState",
            "DynamicsStatistics",
        ),
        *("FitState", "Gaussian", "GaussianHiddenMarkov", "GaussianHiddenMarkovParameters"),
        *("GaussianHiddenMarkovStatistics", "GaussianParameters", "HiddenMarkov"),
        *("HiddenMarkovParameters", "HiddenMarkovStatistics", "Judgement", "Level"),
        *("LinearDynamics", "LinearDynamicsParameters", "Markov", "MarkovParameters"),
        *("MarkovStatistics", "MixtureState", "Moments", "Multinomial", "MultinomialParameters"),
        *("MultinomialStatistics", "Outcomes", "Recurrent", "RecurrentParameters"),
        *("SeparateState", "Sequences", "StochasticState"),
    ):
        with pytest.raises(RecordError, match="Found something else"):  # its fields are missing
            from_tree({"dataclass": name, "fields": {"no such field": 1}}, "file")
    with pytest.raises(RecordError, match=r"^`file` should .* Found 'Renamed'"):
        from_tree({"dataclass": "Renamed", "fields": {}}, "file")
