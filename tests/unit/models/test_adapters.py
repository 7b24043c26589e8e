"""Low-rank adapters over a frozen base, by hand and against PEFT."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import adapted, base, one_task, stirred

from taskmix.errors import InputError, OptionError
from taskmix.models import Adapters, Transformer, frozen_base, outline_of

transformers = pytest.importorskip("transformers", reason="the extra `text` is not installed")

BATCH = {
    "input_ids": torch.tensor([[1, 5, 6, 7], [2, 8, 0, 0]]),
    "attention_mask": torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]]),
}


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> str:
    return base(tmp_path_factory.mktemp("bert"), "bert")


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> str:
    return base(tmp_path_factory.mktemp("llama"), "llama")


def test_fresh_adapters_change_nothing(bert: str) -> None:
    model = adapted(bert)
    whole = Transformer(path=str(bert)).build(one_task()).eval()
    torch.testing.assert_close(model.encoder(BATCH), whole.encoder(BATCH))


@pytest.mark.parametrize("which", ["bert", "llama"])
def test_stirred_adapters_are_the_weights_with_their_product_added(
    which: str, request: pytest.FixtureRequest
) -> None:
    path = request.getfixturevalue(which)
    model = adapted(path)
    stirred(model)
    whole = Transformer(path=str(path)).build(one_task()).eval()
    network = whole.encoder.network
    network = network.base_model if which == "llama" else network
    for name in model.encoder.adapters.names:
        adapter = model.encoder.adapters.of(name)
        with torch.no_grad():
            network.get_submodule(name).weight += 2.0 * adapter.lora_B @ adapter.lora_A
    torch.testing.assert_close(model.encoder(BATCH), whole.encoder(BATCH), atol=1e-5, rtol=1e-5)


def test_two_models_over_one_base_do_not_hear_of_each_other(bert: str) -> None:
    first, second = adapted(bert), adapted(bert)
    before = second.encoder(BATCH)
    stirred(first)
    assert not torch.allclose(first.encoder(BATCH), before)
    torch.testing.assert_close(second.encoder(BATCH), before)
    device = torch.device("cpu")
    assert first.encoder.base(device) is second.encoder.base(device)


def test_only_adapters_and_heads_are_trained_and_kept(bert: str) -> None:
    model = adapted(bert)
    parts = {name.rpartition(".")[2] for name in model.state_dict() if "encoder" in name}
    assert parts == {"lora_A", "lora_B"}
    assert all(parameter.requires_grad for parameter in model.parameters())
    # Query and value of two layers, rank 8, 16 wide; and a head of 2.
    assert sum(p.numel() for p in model.parameters()) == 2 * 2 * 2 * 8 * 16 + 16 * 2 + 2


def test_a_base_whose_files_have_changed_is_read_again(bert: str, tmp_path: Path) -> None:
    device = torch.device("cpu")
    path = tmp_path / "model"
    transformers.BertModel.from_pretrained(bert).save_pretrained(path)
    before = frozen_base(str(path), device)
    changed = transformers.BertModel.from_pretrained(bert)
    changed.embeddings.word_embeddings.weight.data.add_(1.0)
    changed.save_pretrained(path)
    after = frozen_base(str(path), device)
    assert before is not after


def test_usual_targets_are_the_query_and_value_projections(bert: str, llama: str) -> None:
    for path, names in ((bert, {"query", "value"}), (llama, {"q_proj", "v_proj"})):
        shapes = outline_of(str(path)).shapes(None)
        assert {name.rpartition(".")[2] for name in shapes} == names
        assert len(shapes) == 4
    # Two key-value heads of four: the values are half as wide.
    assert outline_of(str(llama)).shapes(("v_proj",))["layers.0.self_attn.v_proj"] == (16, 8)


def test_targets_that_the_model_does_not_have_are_refused_with_those_it_has(bert: str) -> None:
    with pytest.raises(InputError, match=r"Found `q_proj`; it has dense, key, query, value"):
        adapted(bert, adapters=Adapters(targets=("q_proj",)))
    with pytest.raises(OptionError, match="`rank` should be 1 or more"):
        Adapters(rank=0)
    with pytest.raises(OptionError, match="`tune` should be adapters or all"):
        Transformer(path="x", tune="heads")  # type: ignore[arg-type]


@pytest.mark.parametrize("tune", ["adapters", "all"])
def test_the_scores_of_generated_pieces_are_those_of_the_causal_model(
    llama: str, tune: Any
) -> None:
    model = Transformer(path=str(llama), tune=tune).build(one_task("generation", ())).eval()
    batch = BATCH | {"word_starts": torch.tensor([[1, 2], [0, 1]])}
    whole = transformers.LlamaForCausalLM.from_pretrained(llama).eval()
    expected = whole(**BATCH).logits
    expected = torch.stack([expected[0, [1, 2]], expected[1, [0, 1]]])
    torch.testing.assert_close(model(batch, 0), expected)
