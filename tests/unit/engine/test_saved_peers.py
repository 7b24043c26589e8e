"""Peers and blends in the folder of a trained model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from taskmix.engine import (
    DigitsSource,
    FolderSource,
    Here,
    Run,
    load_model,
    save_models,
    trained_model,
)
from taskmix.errors import OptionError, RecordError
from taskmix.models import LinearPeer, Perceptron, TreesPeer, choose_architecture
from taskmix.records import Study, load_state, save_state
from taskmix.training import Blend, PeerPart, TrainedModel, blended

NAMES = ("parity", "half")
HALF = Blend(members=(0, 1), weights=(0.5, 0.5), temperatures=(2.0, 1.0))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Any:
    study = Study(tmp_path_factory.mktemp("study"))
    run = Run(label="net", source=DigitsSource(), architecture=Perceptron(), steps=60, seed=0)
    Here(workers=1).run([run], study)
    tasks = run.load().select(NAMES)
    linear = LinearPeer(sharing="partly", strength=0.1).fit(tasks)
    trees = TreesPeer(sharing="pooled", iterations=10).fit(tasks)
    return run, study, tasks, linear, trees


def test_a_kept_blend_answers_as_before(world: Any, tmp_path: Path) -> None:
    run, study, tasks, linear, trees = world
    members = [(linear, ["half"]), (trees, [])]
    blends = {"parity": Blend(members=(0, 1, 2), weights=(0.5, 0.3, 0.2), temperatures=(1.0,) * 3)}
    save_models(tmp_path / "m", [(run, ["mod3"])], study, peers=members, blends=blends)
    model = load_model(tmp_path / "m")
    assert set(model.tasks) == {"mod3", "half", "parity"}
    rows = tasks["parity"].splits["test"].inputs
    network = load_model(save_models(tmp_path / "n", [(run, ["parity"])], study))
    parts = [network.probabilities(rows, "parity")]
    parts += [each.outputs("parity", rows).double().exp().numpy() for each in (linear, trees)]
    expected = 0.5 * parts[0] + 0.3 * parts[1] + 0.2 * parts[2]
    np.testing.assert_allclose(model.probabilities(rows, "parity"), expected, atol=1e-6)
    half = linear.outputs("half", rows).exp()
    torch.testing.assert_close(torch.from_numpy(model.probabilities(rows, "half")).float(), half)
    answer = model.predict(rows, "parity")[0]
    assert answer["label"] == model.question("parity").labels[int(expected[0].argmax())]


def test_a_folder_may_have_peers_only(world: Any, tmp_path: Path) -> None:
    _, study, tasks, linear, _ = world
    model = load_model(save_models(tmp_path / "m", [], study, peers=[(linear, NAMES)]))
    rows = tasks["half"].splits["test"].inputs
    assert model.tasks == NAMES
    shares = torch.from_numpy(model.probabilities(rows, "half")).float()
    torch.testing.assert_close(shares, linear.outputs("half", rows).exp())


def test_a_folder_without_peers_is_one_that_older_versions_read(world: Any, tmp_path: Path) -> None:
    run, study, *_ = world
    folder = save_models(tmp_path / "m", [(run, ["parity"])], study)
    document = json.loads((folder / "model.json").read_text())
    assert document["version"] == 1
    assert not {"peers", "blends"} & document.keys()


def test_a_network_on_ngrams_and_a_peer_of_texts_answer_as_before(tmp_path: Path) -> None:
    lines = [
        f"{'good' if n % 2 else 'bad'} film number {n},{'yes' if n % 2 else 'no'}"
        for n in range(60)
    ]
    (tmp_path / "films.csv").write_text("\n".join(["text,label", *lines]) + "\n")
    study, source = Study(tmp_path / "study"), FolderSource(path=str(tmp_path / "films.csv"))
    architecture, _ = choose_architecture("auto", source.load())
    run = Run(label="net", source=source, architecture=architecture, steps=40, seed=0)
    Here(workers=1).run([run], study)
    name, tasks = source.load().names[0], source.load()
    peer = LinearPeer().fit(tasks)
    mean = {name: Blend(members=(0, 1), weights=(0.5, 0.5), temperatures=(1.0, 1.0))}
    folder = save_models(tmp_path / "m", [(run, [])], study, peers=[(peer, [])], blends=mean)
    (tmp_path / "films.csv").unlink()
    new = [{"text": "a good one"}, {"text": "quite bad"}]
    network = trained_model([(run, [name])], study).probabilities(new)
    linear = peer.outputs(name, pa.table({"text": ["a good one", "quite bad"]})).exp().numpy()
    found = load_model(folder)
    np.testing.assert_allclose(found.probabilities(new), (network + linear) / 2, atol=1e-6)
    assert [answer["label"] for answer in found.predict(new)] == ["yes", "no"]


def _other_tree(state: dict[str, torch.Tensor]) -> None:
    state["answers.0.scores.forests.0.left"][0] = 0  # a way down that comes back


def _fewer_features(state: dict[str, torch.Tensor]) -> None:
    name = "answers.1.scores.weights"
    state[name] = state[name][:, :-1].clone()


def _no_array(state: dict[str, torch.Tensor]) -> None:
    state.pop("features.columns.shift")


@pytest.mark.parametrize(
    ("place", "change"), [(1, _other_tree), (0, _fewer_features), (0, _no_array)]
)
def test_arrays_of_something_else_are_told_in_a_sentence(
    world: Any, tmp_path: Path, place: int, change: Callable[[dict[str, torch.Tensor]], None]
) -> None:
    _, study, _, linear, trees = world
    folder = save_models(tmp_path / "m", [], study, peers=[(linear, ["half"]), (trees, ["parity"])])
    document = json.loads((folder / "model.json").read_text())
    file = folder / document["peers"][place]["file"]
    state = load_state(file)
    change(state)
    save_state(file, state)
    with pytest.raises(RecordError, match="should describe the parameters beside it"):
        load_model(folder)


@pytest.mark.parametrize(
    "change",
    [
        lambda each: each["blends"].update(
            half={"members": [7], "weights": [1], "temperatures": [1]}
        ),
        lambda each: each["peers"][0]["description"]["of"]["answers"].pop(),
        lambda each: each["peers"][0]["description"]["of"]["peer"].update(made="os.system"),
        lambda each: each["peers"][0]["description"]["of"]["features"].update(of=3),
        lambda each: each["peers"][0]["description"]["of"]["answers"][0]["of"].update(seen=[9, 10]),
        lambda each: each.update(peers={"a": 1}),
    ],
)
def test_a_changed_description_is_told_in_a_sentence(
    world: Any, tmp_path: Path, change: Callable[[dict[str, Any]], Any]
) -> None:
    _, study, _, linear, _ = world
    folder = save_models(tmp_path / "m", [], study, peers=[(linear, NAMES)])
    document = json.loads((folder / "model.json").read_text())
    change(document)
    (folder / "model.json").write_text(json.dumps(document))
    with pytest.raises((RecordError, OptionError)):
        load_model(folder)


def test_a_blend_of_values_is_their_mean_and_of_labels_the_logit_of_the_mean() -> None:
    first, second = torch.tensor([1.0, 2.0]), torch.tensor([3.0, -2.0])
    blend = Blend(members=(0, 1), weights=(0.25, 0.75), temperatures=(1.0, 1.0))
    assert blended("regression", [first, second], blend).tolist() == [2.5, -1.0]
    mean = 0.5 * torch.sigmoid(first / 2) + 0.5 * torch.sigmoid(second)
    found = blended("multilabel", [first[:, None], second[:, None]], HALF)
    torch.testing.assert_close(found[:, 0].sigmoid().float(), mean)


def test_a_member_of_weight_0_says_nothing() -> None:
    sure = torch.tensor([[500.0, -500.0]])
    none = Blend(members=(0, 1), weights=(0.0, 1.0), temperatures=(1.0, 1.0))
    found = blended("classification", [sure, torch.zeros(1, 2)], none)
    torch.testing.assert_close(found.exp().float(), torch.tensor([[0.5, 0.5]]))


def test_members_that_did_not_learn_the_task_are_refused(world: Any) -> None:
    *_, linear, _ = world
    part = PeerPart(fitted=linear, answers=NAMES)
    with pytest.raises(OptionError, match="parts that learned `mod3`"):
        TrainedModel([part, part], {"mod3": HALF})
