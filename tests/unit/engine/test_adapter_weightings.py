"""Methods that ask for gradients, losses or rewards work with adapters and with heads on vectors."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from fleet_toys import WORDS, text_source

from taskmix.engine import FolderSource, Optimization, Run, execute
from taskmix.engine._run import build
from taskmix.models import Adapters, named_last_layer, pretrained
from taskmix.policies import Exp3S, PredictionGain, QuantileScaled
from taskmix.records import Study
from taskmix.weighting import (
    FAMO,
    MGDA,
    AlignedMTL,
    Balancer,
    CAGrad,
    GradNorm,
    NashMTL,
    PCGrad,
)

transformers = pytest.importorskip("transformers", reason="the extra `text` is not installed")
tokenizers = pytest.importorskip("tokenizers", reason="the extra `text` is not installed")

METHODS = (PCGrad(), MGDA(), GradNorm(), CAGrad(), NashMTL(), AlignedMTL(), FAMO())
REWARD = QuantileScaled(reward=PredictionGain())


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKMIX_CACHE", str(tmp_path / "cache"))
    torch.set_num_threads(1)


def saved(folder: Path, kind: str) -> str:
    """A small pretrained model, which is random, and a tokenizer of words."""
    torch.manual_seed(0)
    path = folder / kind
    sizes: dict[str, Any] = {
        "vocab_size": 80,
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 24,
        "max_position_embeddings": 64,
    }
    if kind == "bert":
        transformers.BertModel(transformers.BertConfig(**sizes)).save_pretrained(path)
    else:
        transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes)).save_pretrained(path)
    pieces = ["[PAD]", "[UNK]", "[END]", *WORDS]
    vocabulary = {piece: place for place, piece in enumerate(pieces)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", eos_token="[END]"
    ).save_pretrained(path)
    return str(path)


def prompts(folder: Path) -> FolderSource:
    chance = random.Random(0)
    for name in ("first", "second"):
        (folder / "prompts" / name).mkdir(parents=True)
        for split in ("train", "dev"):
            rows = [
                {"prompt": " ".join(chance.choices(WORDS, k=4)), "answer": chance.choice(WORDS)}
                for _ in range(12)
            ]
            text = "".join(json.dumps(row) + "\n" for row in rows)
            (folder / "prompts" / name / f"{split}.jsonl").write_text(text)
    return FolderSource(path=str(folder / "prompts"))


def run_of(folder: Path, kind: str, tune: Any, **options: Any) -> Run:
    written = kind == "llama"
    source = prompts(folder) if written else text_source(folder)
    return Run(
        label="toy",
        source=source,
        architecture=pretrained(saved(folder, kind), tune, max_length=32),
        tasks=None if written else ("two", "three", "long"),
        optimization=Optimization(learning_rate=0.01),
        steps=5,
        batch_size=4,
        seed=0,
        **options,
    )


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
@pytest.mark.parametrize(
    ("kind", "tune"), [("bert", "adapters"), ("bert", "heads"), ("llama", "adapters")]
)
def test_weights_of_any_method_train_what_is_tuned(
    tmp_path: Path, kind: str, tune: str, method: Any
) -> None:
    run = run_of(tmp_path, kind, tune, weighting=method)
    study = Study(tmp_path / "study")
    assert execute(run, study).outcome == "finished"
    steps = run.folder(study).steps(["step", "weight"]).to_pylist()
    weights = [row["weight"] for row in steps]
    assert all(math.isfinite(weight) for weight in weights)
    if not isinstance(method, PCGrad):  # which leaves gradients alone that agree
        assert max(weights) - min(weights) > 1e-6, "the method has an opinion"
    best = run.folder(study).best()
    assert best is not None
    fresh = build(run)[0].state_dict()
    changed = [name for name, value in fresh.items() if not torch.equal(best[name], value)]
    shared = [name for name in fresh if name.startswith("encoder.")]
    assert set(shared) <= set(changed), "all that is shared was trained"


@pytest.mark.parametrize("tune", ["heads", "adapters"])
def test_a_policy_that_learns_from_rewards_draws_its_tasks(tmp_path: Path, tune: str) -> None:
    run = run_of(tmp_path, "bert", tune, policy=Exp3S(eta=0.5), reward=REWARD)
    study = Study(tmp_path / "study")
    assert execute(run, study).outcome == "finished"
    steps = run.folder(study).steps(["reward", "probability"]).to_pylist()
    assert len(steps) == 5
    assert any(row["reward"] for row in steps)
    assert len({row["probability"] for row in steps}) > 1, "they were learned from"


def test_gradients_are_compared_over_the_adapters_alone(tmp_path: Path) -> None:
    model, tasks = build(run_of(tmp_path, "bert", "adapters"))
    with torch.no_grad():
        for parameter in model.encoder.parameters():  # B begins at 0, and then A has no gradient
            parameter.add_(0.1)

    def losses() -> list[torch.Tensor]:
        code = model.encoder(tasks[0].splits["train"].inputs.batch(torch.arange(4)))
        return [head(code).square().mean() for head in model.heads]

    model.eval()
    parameters = list(model.encoder.parameters())
    assert sum(each.numel() for each in parameters) == 2 * 2 * 2 * 8 * 16  # the base has far more
    rows = []
    for loss in losses():
        found = torch.autograd.grad(loss, parameters, retain_graph=True)
        rows.append(torch.cat([each.flatten() for each in found]))
    matrix = torch.stack(rows)
    balanced = Balancer(PCGrad(), shared=model.encoder).backward(losses())
    assert balanced.gramian is not None
    torch.testing.assert_close(balanced.gramian.float(), matrix @ matrix.T, rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize(
    ("targets", "last"),
    [(None, "attention-self-value"), (("dense",), "output-dense")],  # not the pooler's, last of all
)
def test_the_last_layer_is_the_last_b_that_is_trained(
    tmp_path: Path, targets: Any, last: str
) -> None:
    run = run_of(tmp_path, "bert", "adapters", weighting=GradNorm())
    architecture: Any = run.architecture
    adapters = Adapters(rank=2, targets=targets)
    run = replace(run, architecture=replace(architecture, adapters=adapters))
    model, _ = build(run)
    found: Any = named_last_layer(model.encoder)
    name = f"encoder.adapters.encoder-layer-1-{last}.lora_B"
    assert [id(each) for each in found] == [id(dict(model.named_parameters())[name])]
    assert execute(run, Study(tmp_path / "study")).outcome == "finished"
