"""Heads and adapters in a folder: without the model they belong to, which is found again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from fleet_toys import RUN, side_by_side, word_tasks

from taskmix.engine import (
    FolderSource,
    Optimization,
    Run,
    _saved,
    check_mergeable,
    execute,
    load_model,
    save_models,
)
from taskmix.errors import InputError, OptionError, TaskmixWarning
from taskmix.models import (
    Adapters,
    LinearPeer,
    Transformer,
    pretrained,
    save_adapters,
)
from taskmix.records import Study
from taskmix.tasks import FeatureEncoding

transformers = pytest.importorskip("transformers", reason="the extra `text` is not installed")
pytestmark = pytest.mark.usefixtures("own_cache")

SaveModel = Callable[..., str]
TINY = replace(RUN, optimization=Optimization(learning_rate=0.01), steps=12, batch_size=8)
TEXTS = [{"text": "bad day"}, {"text": "gaze"}, {"text": "zebra"}]
PROMPTS = [{"prompt": "big?"}, {"prompt": "small?"}]


def prompt_tasks(folder: Path) -> FolderSource:
    (folder / "ask").mkdir(parents=True)
    rows = [("big?", "yes"), ("small?", "no"), ("red?", "yes"), ("blue?", "no")]
    text = "".join(json.dumps({"prompt": ask, "answer": say}) + "\n" for ask, say in rows)
    for split in ("train", "dev", "test"):
        (folder / "ask" / f"{split}.jsonl").write_text(text)
    return FolderSource(path=str(folder))


def kept(source: FolderSource, architecture: Any, folder: Path, **options: Any) -> Run:
    """Trains a little, and keeps the model in `folder / "model"`."""
    run = replace(TINY, source=source, architecture=architecture)
    study = Study(folder / "study")
    execute(run, study)
    save_models(folder / "model", [(run, run.load().names)], study, **options)
    return run


def part(folder: Path) -> dict[str, Any]:
    """What `model.json` says of the one model."""
    [found] = json.loads((folder / "model" / "model.json").read_text())["models"]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("tune", "parts"), [("heads", set()), ("adapters", {"adapter0"}), ("all", {"encoder0"})]
)
def test_a_kept_model_answers_as_in_training_and_has_no_copy_of_a_frozen_base(
    save_encoder: SaveModel, tmp_path: Path, tune: Any, parts: set[str]
) -> None:
    path = save_encoder()
    run = kept(word_tasks(tmp_path / "tasks"), pretrained(path, tune, max_length=16), tmp_path)
    if tune == "all":
        shutil.rmtree(path)  # the model needs nothing from outside
    summary = Study(tmp_path / "study").run(run.specification()).summary()
    assert summary is not None
    recorded = {(s.task, s.metric): s.value for s in summary.scores if s.split == "test"}
    rows = [json.loads(line) for line in (tmp_path / "tasks/letter/test.jsonl").open()]
    answers = load_model(tmp_path / "model").predict(tmp_path / "tasks/letter/test.jsonl", "letter")
    right = [answer["label"] == row["label"] for answer, row in zip(answers, rows, strict=True)]
    assert sum(right) / len(right) == pytest.approx(recorded["letter", "accuracy"])
    names = {each.name.split("-")[0] for each in (tmp_path / "model").iterdir()}
    assert names - {".lock"} == {"model.json", "model0"} | parts


@pytest.mark.parametrize("tune", ["heads", "adapters"])
def test_a_base_that_has_moved_is_asked_for_and_can_be_given(
    save_encoder: SaveModel, tmp_path: Path, tune: Any
) -> None:
    path = save_encoder()
    kept(word_tasks(tmp_path / "tasks"), pretrained(path, tune, max_length=16), tmp_path)
    expected = load_model(tmp_path / "model").predict(TEXTS, "length")
    Path(path).rename(tmp_path / "elsewhere")
    with pytest.raises(InputError, match=r"should find `.*bert`.*load_model\(\.\.\., base=PATH\)"):
        load_model(tmp_path / "model")
    found = load_model(tmp_path / "model", base=tmp_path / "elsewhere")
    assert found.predict(TEXTS, "length") == expected
    with pytest.raises(InputError, match=r"Did not find one at `.*nowhere`"):
        load_model(tmp_path / "model", base=tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"trained on"), pytest.warns(TaskmixWarning):
        load_model(tmp_path / "model", base=save_encoder("wide", hidden=24))
    with pytest.warns(TaskmixWarning, match="are not those that the model"):
        load_model(tmp_path / "model", base=save_encoder("other", seed=1))


def test_a_peer_on_vectors_names_its_base_too_and_finds_it_elsewhere(
    save_encoder: SaveModel, tmp_path: Path
) -> None:
    path, study = save_encoder(), Study(tmp_path / "study")
    tasks = word_tasks(tmp_path / "tasks").load()
    fitted = LinearPeer().fit(tasks, encoding=FeatureEncoding(path=path, max_length=16))
    expected = fitted.outputs("letter", tasks["letter"].splits["test"].inputs).exp().numpy()
    folder = save_models(tmp_path / "model", [], study, peers=[(fitted, tasks.names)])
    rows = tmp_path / "tasks/letter/test.jsonl"
    assert load_model(folder).probabilities(rows, "letter") == pytest.approx(expected, abs=1e-6)
    Path(path).rename(tmp_path / "elsewhere")
    with pytest.raises(InputError, match=r"should find `.*bert`"):
        load_model(folder)
    found = load_model(folder, base=tmp_path / "elsewhere")
    assert found.probabilities(rows, "letter") == pytest.approx(expected, abs=1e-6)
    with pytest.warns(TaskmixWarning, match="are not those that the model"):
        wide = load_model(folder, base=save_encoder("wide", hidden=24))
    with pytest.raises(InputError, match="vectors should have 16 numbers"):
        wide.probabilities(rows, "letter")


def test_a_base_is_refused_where_none_is_needed(save_encoder: SaveModel, tmp_path: Path) -> None:
    kept(word_tasks(tmp_path / "tasks"), pretrained(save_encoder(), "all", max_length=16), tmp_path)
    with pytest.raises(OptionError, match="which needs none"):
        load_model(tmp_path / "model", base="x")


@pytest.mark.parametrize("tune", ["heads", "adapters", "all"])
def test_the_pooling_of_a_model_is_kept_with_it(
    save_encoder: SaveModel, tmp_path: Path, tune: Any
) -> None:
    path = save_encoder()
    (Path(path) / "1_Pooling").mkdir()
    modules = [{"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]
    (Path(path) / "modules.json").write_text(json.dumps(modules))
    pooling = Path(path) / "1_Pooling" / "config.json"
    pooling.write_text(json.dumps({"pooling_mode_cls_token": True}))
    kept(word_tasks(tmp_path / "tasks"), pretrained(path, tune, max_length=16), tmp_path)
    described = part(tmp_path)["architecture"]
    assert (described["reads"] if tune == "heads" else described)["pooling"] == "first"


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_a_model_that_writes_is_kept_as_adapters_and_merged(
    save_language_model: SaveModel, tmp_path: Path, kind: str
) -> None:
    peft = pytest.importorskip("peft", reason="PEFT, the oracle, is not installed")
    path = save_language_model(kind)
    architecture = Transformer(path=path, max_length=24, tune="adapters")
    kept(prompt_tasks(tmp_path / "tasks"), architecture, tmp_path, merged=True)
    answers = load_model(tmp_path / "model").predict(PROMPTS)
    document = part(tmp_path)
    auto = transformers.AutoModelForCausalLM
    adapted = peft.PeftModel.from_pretrained(
        auto.from_pretrained(path), tmp_path / "model" / document["adapters"]
    )
    merged = auto.from_pretrained(tmp_path / "model" / document["merged"])
    ids = torch.tensor([[3, 4, 5, 6]])
    with torch.no_grad():
        plain = auto.from_pretrained(path)(ids).logits
        expected = adapted.eval()(ids).logits
        torch.testing.assert_close(merged(ids).logits, expected, atol=1e-4, rtol=1e-4)
    assert not torch.allclose(plain, expected, atol=1e-3), "something was trained"
    # The merged folder is a model to go on from: it has the tokenizer, too.
    whole = Transformer(path=str(tmp_path / "model" / document["merged"]), max_length=24)
    source = FolderSource(path=str(tmp_path / "tasks"))
    still = Optimization(learning_rate=1e-30)
    again = replace(TINY, source=source, architecture=whole, optimization=still, steps=1)
    study = Study(tmp_path / "again")
    execute(again, study)
    save_models(tmp_path / "whole", [(again, ("ask",))], study)
    found = load_model(tmp_path / "whole").predict(PROMPTS)
    assert [each["answer"] for each in found] == [each["answer"] for each in answers]
    for mine, its in zip(found, answers, strict=True):
        assert mine["log_probability"] == pytest.approx(its["log_probability"], abs=1e-4)


def test_a_model_that_cannot_be_merged_leaves_the_old_one_as_it_was(
    save_encoder: SaveModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = kept(word_tasks(tmp_path / "tasks"), pretrained(save_encoder(), "adapters"), tmp_path)
    before = {each: each.read_bytes() for each in (tmp_path / "model").rglob("*") if each.is_file()}

    def fail(encoder: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(_saved, "merged_network", fail)
    with pytest.raises(MemoryError):
        save_models(
            tmp_path / "model", [(run, ("letter",))], Study(tmp_path / "study"), merged=True
        )
    after = {each: each.read_bytes() for each in (tmp_path / "model").rglob("*") if each.is_file()}
    assert after == before


@pytest.mark.parametrize("tune", ["heads", "all"])
def test_only_adapters_are_merged(save_encoder: SaveModel, tmp_path: Path, tune: Any) -> None:
    source = word_tasks(tmp_path / "tasks")
    run = replace(TINY, source=source, architecture=pretrained(save_encoder(), tune))
    with pytest.raises(OptionError, match=f"Found one that tunes {tune}"):
        check_mergeable([run])


def started(path: str, folder: Path, *, seed: int) -> Transformer:
    """A model that begins with adapters that lie in a folder."""
    fresh = Transformer(path=path, tune="adapters", adapters=Adapters(rank=2))
    encoded = fresh.encoding.encode(FolderSource(path=str(folder / "tasks")).load())
    torch.manual_seed(seed)
    encoder: Any = fresh.build(encoded).encoder
    for parameter in encoder.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    shutil.rmtree(folder / "adapters", ignore_errors=True)
    save_adapters(folder / "adapters", encoder)
    made = pretrained(path, "adapters", max_length=16, adapter=str(folder / "adapters"))
    assert isinstance(made, Transformer)
    return made


def test_a_run_that_begins_with_other_adapters_is_another_run(
    save_encoder: SaveModel, tmp_path: Path
) -> None:
    path, source = save_encoder(), word_tasks(tmp_path / "tasks")
    runs = [
        replace(TINY, source=source, architecture=each)
        for each in (started(path, tmp_path, seed=seed) for seed in (0, 1, 0))
    ]
    study = Study(tmp_path / "study")
    names = [study.run(run.specification()).name for run in runs]
    assert names[0] != names[1], "the folder is the same, and what is in it is not"
    assert names[0] == names[2]


def test_runs_that_begin_with_adapters_train_in_a_fleet_as_alone_and_are_kept(
    save_encoder: SaveModel, tmp_path: Path
) -> None:
    path, source = save_encoder(), word_tasks(tmp_path / "tasks")
    run = replace(TINY, source=source, architecture=started(path, tmp_path, seed=0), steps=6)
    side_by_side([run, replace(run, seed=1, tasks=("letter",))], tmp_path, tolerance=1e-4)
    study = Study(tmp_path / "alone")
    save_models(tmp_path / "model", [(run, ("letter", "length"))], study)
    shutil.rmtree(tmp_path / "adapters")  # what was begun with is not needed any more
    load_model(tmp_path / "model").predict(TEXTS, "length")
