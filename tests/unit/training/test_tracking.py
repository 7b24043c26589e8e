"""What listeners write is read back by the tools they write for."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from taskmix.engine import DigitsSource, Run, events_of, execute
from taskmix.errors import InputError
from taskmix.models import Perceptron
from taskmix.policies import HardProgress, Uniform
from taskmix.records import Study
from taskmix.training import (
    CheckpointEvent,
    EndEvent,
    Event,
    MLflowListener,
    StepEvent,
    TensorBoardListener,
    WandbListener,
)
from taskmix.weighting import Equal

TASKS = ("parity", "half")


@pytest.fixture
def run() -> Run:
    return Run(
        label="x",
        source=DigitsSource(),
        architecture=Perceptron(hidden=(4,)),
        tasks=TASKS,
        policy=Uniform(),
        reward=HardProgress(),
        steps=12,
        evaluate_every=5,
        seed=0,
    )


def told(run: Run, study: Path) -> list[Event]:
    events: list[Event] = []
    execute(run, Study(study), listener=events.append)
    return events


@pytest.mark.parametrize("weighted", [False, True])
def test_a_record_is_told_as_its_run_was(run: Run, weighted: bool, tmp_path: Path) -> None:
    from dataclasses import replace

    if weighted:
        run = replace(run, policy=None, reward=None, weighting=Equal())
    live = [each for each in told(run, tmp_path) if not isinstance(each, CheckpointEvent)]
    again = list(events_of(Study(tmp_path).run(run.specification())))
    assert [type(each) for each in again] == [type(each) for each in live]
    for ours, theirs in zip(again, live, strict=True):
        assert ours.step == theirs.step
        if isinstance(ours, StepEvent) and isinstance(theirs, StepEvent):
            assert ours.tasks == theirs.tasks
            assert ours.losses == pytest.approx(theirs.losses)
            assert ours.weights == theirs.weights
            assert (ours.probabilities is None) == (theirs.probabilities is None)
        elif isinstance(ours, EndEvent) and isinstance(theirs, EndEvent):
            assert ours.scores == theirs.scores


def test_tensorboard_reads_losses_probabilities_and_scores(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="the extra `tracking` is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    listener = TensorBoardListener(tmp_path / "board", TASKS)
    events = told(run, tmp_path / "study")
    for event in events:
        listener(event)
    board = EventAccumulator(str(tmp_path / "board")).Reload()
    losses = {
        name: [e.losses[0] for e in events if isinstance(e, StepEvent) and e.tasks == (place,)]
        for place, name in enumerate(TASKS)
    }
    for name in TASKS:
        found = board.Scalars(f"loss/{name}")
        np.testing.assert_allclose([each.value for each in found], losses[name], rtol=1e-6)
        assert board.Scalars(f"probability/{name}")[0].value == 0.5
        assert [each.step for each in board.Scalars(f"dev/{name}/accuracy")] == [5, 10, 12]
        assert len(board.Scalars(f"final/test/{name}/accuracy")) == 1
    assert [each.step for each in board.Scalars("dev/mean")] == [5, 10, 12]


def test_mlflow_reads_the_same_and_the_parameters(run: Run, tmp_path: Path) -> None:
    mlflow = pytest.importorskip("mlflow", reason="the extra `tracking` is not installed")
    uri = f"file:{tmp_path / 'runs'}"
    listener = MLflowListener(uri, TASKS, name="first", parameters={"steps": 12})
    for event in told(run, tmp_path / "study"):
        listener(event)
    listener.close()  # a second time does no harm
    client = mlflow.MlflowClient(tracking_uri=uri)
    found = client.get_run(listener.run_id)
    assert found.info.status == "FINISHED"
    assert found.data.params == {"steps": "12"}
    assert [m.step for m in client.get_metric_history(listener.run_id, "dev/mean")] == [5, 10, 12]
    steps = sum(len(client.get_metric_history(listener.run_id, f"loss/{name}")) for name in TASKS)
    assert steps == 12


@pytest.fixture
def _offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb", reason="the extra `wandb` is not installed")
    monkeypatch.setenv("WANDB_MODE", "offline")
    for name in ("DIR", "CACHE_DIR", "CONFIG_DIR", "DATA_DIR"):
        monkeypatch.setenv(f"WANDB_{name}", str(tmp_path))


def wandb_records(file: Path) -> list[Any]:
    from wandb.proto import wandb_internal_pb2 as messages
    from wandb.sdk.internal.datastore import DataStore

    store = DataStore()
    store.open_for_scan(str(file))
    found = []
    while (data := store.scan_data()) is not None:
        found.append(messages.Record())
        found[-1].ParseFromString(data)
    return found


def wandb_history(folder: Path) -> list[dict[str, float]]:
    """What an offline run has kept to be sent, in order."""
    (file,) = folder.rglob("*.wandb")
    records = wandb_records(file)
    deadline = time.monotonic() + 60  # its own process writes the file, a moment after `finish`
    while not any(each.HasField("exit") for each in records) and time.monotonic() < deadline:
        time.sleep(0.05)
        records = wandb_records(file)
    items = [each.history.item for each in records if each.HasField("history")]
    return [{i.nested_key[0]: float(i.value_json) for i in row} for row in items]


@pytest.mark.usefixtures("_offline")
def test_weights_and_biases_keeps_the_same_offline(run: Run, tmp_path: Path) -> None:
    listener = WandbListener("digits", TASKS, name="first", parameters={"steps": 12})
    events = told(run, tmp_path / "study")
    for event in events:
        listener(event)
    listener.close()  # a second time does no harm
    rows = wandb_history(tmp_path)
    for place, name in enumerate(TASKS):
        losses = [e.losses[0] for e in events if isinstance(e, StepEvent) and e.tasks == (place,)]
        found = [row[f"loss/{name}"] for row in rows if f"loss/{name}" in row]
        np.testing.assert_allclose(found, losses, rtol=1e-6)
    assert [row["_step"] for row in rows if "dev/mean" in row] == [5, 10, 12]
    assert sum(f"final/test/{TASKS[0]}/accuracy" in row for row in rows) == 1


@pytest.mark.usefixtures("_offline")
def test_a_project_that_weights_and_biases_refuses_is_told() -> None:
    with pytest.raises(InputError, match=r"Weights & Biases should take.*WANDB_MODE=offline"):
        WandbListener("no/slashes?", TASKS)
