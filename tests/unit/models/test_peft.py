"""Adapters as the files of PEFT: what it loads answers as here, and what it saved is gone on from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import adapted, base, one_task, stirred

from taskmix.errors import InputError, OptionError
from taskmix.models import (
    Adapters,
    HardSharing,
    Transformer,
    merged_network,
    pretrained,
    read_adapters,
    save_adapters,
    tuned,
)

transformers = pytest.importorskip("transformers", reason="the extra `text` is not installed")
peft = pytest.importorskip("peft", reason="PEFT, the oracle, is not installed")

BATCH = {
    "input_ids": torch.tensor([[1, 5, 6, 7], [2, 8, 3, 4]]),
    "attention_mask": torch.ones(2, 4, dtype=torch.long),
}
KINDS = ("bert", "llama", "gpt2")
MODULES = {"bert": ["query", "value"], "llama": ["q_proj", "down_proj"], "gpt2": ["c_attn", "c_fc"]}


def loader(kind: str) -> Any:
    return transformers.AutoModel if kind == "bert" else transformers.AutoModelForCausalLM


def states(network: Any) -> torch.Tensor:
    """The last hidden states of a model of transformers or PEFT."""
    with torch.no_grad():
        return network.eval()(**BATCH, output_hidden_states=True).hidden_states[-1]


def own_states(model: HardSharing) -> torch.Tensor:
    """The same of ours: every piece is read, as a word is."""
    places = torch.arange(4).expand(2, 4)
    with torch.no_grad():
        found: torch.Tensor = model.encoder(BATCH | {"word_starts": places})
    return found


def peft_folder(folder: Path, path: str, kind: str, **options: Any) -> Path:
    """What PEFT saves of adapters that it has, and says, at random."""
    settings = {"r": 4, "lora_alpha": 6, "target_modules": MODULES[kind]} | options
    model = peft.get_peft_model(loader(kind).from_pretrained(path), peft.LoraConfig(**settings))
    stirred(model)
    model.save_pretrained(folder / "peft")
    torch.save(states(model), folder / "expected.pt")
    return folder / "peft"


@pytest.mark.parametrize("kind", KINDS)
def test_peft_loads_what_we_trained_and_answers_the_same(tmp_path: Path, kind: str) -> None:
    path = base(tmp_path, kind)
    model = adapted(path, adapters=Adapters(rank=3, scale=1.5, targets=tuple(MODULES[kind])))
    stirred(model)
    save_adapters(tmp_path / "out", model.encoder)
    config = json.loads((tmp_path / "out" / "adapter_config.json").read_text())
    assert config["lora_alpha"] == 4.5
    assert config["target_modules"] == MODULES[kind], "the ends of names are enough here"
    loaded = peft.PeftModel.from_pretrained(loader(kind).from_pretrained(path), tmp_path / "out")
    plain = states(loader(kind).from_pretrained(path))
    assert float((own_states(model) - plain).abs().max()) > 0.02, "the adapters say something"
    torch.testing.assert_close(states(loaded), own_states(model), atol=1e-4, rtol=1e-4)


def test_modules_whose_ends_are_not_theirs_alone_are_named_whole(tmp_path: Path) -> None:
    path = base(tmp_path, "llama")
    some = ("layers.1.self_attn.q_proj",)
    model = adapted(path, adapters=Adapters(targets=some))
    stirred(model)
    save_adapters(tmp_path / "out", model.encoder)
    config = json.loads((tmp_path / "out" / "adapter_config.json").read_text())
    assert config["target_modules"] == ["model.layers.1.self_attn.q_proj"]
    assert (config["task_type"], config["fan_in_fan_out"]) == ("CAUSAL_LM", False)
    loaded = peft.PeftModel.from_pretrained(loader("llama").from_pretrained(path), tmp_path / "out")
    torch.testing.assert_close(states(loaded), own_states(model), atol=1e-4, rtol=1e-4)
    assert read_adapters(tmp_path / "out", path).targets == some


@pytest.mark.parametrize("rank_stabilised", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_what_peft_saved_answers_the_same_here(
    tmp_path: Path, kind: str, rank_stabilised: bool
) -> None:
    path = base(tmp_path, kind)
    folder = peft_folder(tmp_path, path, kind, use_rslora=rank_stabilised)
    architecture = pretrained(path, "adapters", adapter=str(folder))
    model = architecture.build(one_task()).eval()
    expected = torch.load(tmp_path / "expected.pt", weights_only=True)
    torch.testing.assert_close(own_states(model), expected, atol=1e-4, rtol=1e-4)
    assert isinstance(architecture, Transformer)
    assert architecture.adapters.rank == 4
    assert architecture.adapters.scale == (3.0 if rank_stabilised else 1.5)


def test_adapters_for_classification_are_found_under_the_name_of_the_encoder(
    tmp_path: Path,
) -> None:
    path = base(tmp_path, "bert")
    whole = transformers.AutoModelForSequenceClassification.from_pretrained(path)
    model = peft.get_peft_model(whole, peft.LoraConfig(r=2, target_modules=["query"]))
    stirred(model)
    model.save_pretrained(tmp_path / "peft")
    here = adapted(path, adapters=read_adapters(tmp_path / "peft", path))
    torch.testing.assert_close(own_states(here), states(model), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_a_merged_model_answers_the_same_without_adapters(tmp_path: Path, kind: str) -> None:
    path = base(tmp_path, kind)
    model = adapted(path, adapters=Adapters(rank=3, targets=tuple(MODULES[kind])))
    stirred(model)
    network: Any = merged_network(model.encoder)
    network.save_pretrained(tmp_path / "merged")
    loaded = loader(kind).from_pretrained(tmp_path / "merged")
    torch.testing.assert_close(states(loaded), own_states(model), atol=1e-4, rtol=1e-4)
    # The base that other models share is as it was.
    fresh = adapted(path)
    torch.testing.assert_close(own_states(fresh), states(loader(kind).from_pretrained(path)))


REFUSED = [
    ({"peft_type": "IA3"}, "kind LORA. Found IA3"),
    ({"use_dora": True}, "Found `use_dora`, which is not taken here"),
    ({"bias": "all"}, "without trained biases"),
    ({"modules_to_save": ["classifier"]}, "Found `modules_to_save`"),
    ({"rank_pattern": {"query": 2}}, "Found `rank_pattern`"),
    ({"layer_replication": [[0, 2]]}, "Found `layer_replication`"),
    ({"something_of_next_year": 1}, "Found `something_of_next_year`"),
    ({"init_lora_weights": "pissa"}, "unchanged base. Found `init_lora_weights` 'pissa'"),
    ({"r": "four"}, "should be a whole number"),
    ({"r": 3}, "adapters of rank 3"),
    ({"r": 0}, "a rank of 1 or more"),
]


@pytest.mark.parametrize(("change", "words"), REFUSED, ids=[str(c) for c, _ in REFUSED])
def test_what_is_no_plain_lora_is_refused_by_name(
    tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    path = base(tmp_path, "bert")
    folder = peft_folder(tmp_path, path, "bert")
    file = folder / "adapter_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(InputError, match=words):
        read_adapters(folder, path)


def test_a_pickle_is_never_loaded(tmp_path: Path) -> None:
    path = base(tmp_path, "bert")
    folder = peft_folder(tmp_path, path, "bert")
    (folder / "adapter_model.safetensors").unlink()
    with pytest.raises(InputError, match=r"Found none"):
        read_adapters(folder, path)
    (folder / "adapter_model.bin").write_bytes(b"\x80\x04.")
    with pytest.raises(InputError, match=r"a pickle, which is never loaded"):
        read_adapters(folder, path)


@pytest.mark.parametrize("content", [b"", b"\x00" * 64, b"{}", b"\xff" * 1000])
def test_a_broken_file_is_told_in_a_sentence(tmp_path: Path, content: bytes) -> None:
    path = base(tmp_path, "bert")
    folder = peft_folder(tmp_path, path, "bert")
    (folder / "adapter_model.safetensors").write_bytes(content)
    with pytest.raises(InputError, match=r"should have safetensors|should have adapters"):
        read_adapters(folder, path)
    (folder / "adapter_config.json").write_bytes(content)
    with pytest.raises(InputError, match=r"adapter_config.json|LORA"):
        read_adapters(folder, path)


def test_adapters_of_another_base_are_refused(tmp_path: Path) -> None:
    bert, llama = base(tmp_path, "bert"), base(tmp_path, "llama")
    wide = base(tmp_path / "wide", "bert", hidden_size=24)
    folder = peft_folder(tmp_path, bert, "bert")
    with pytest.raises(InputError, match=r"should fit .*which is no linear module of it"):
        read_adapters(folder, llama)
    with pytest.raises(InputError, match=r"Found 4 x 16 and 16 x 4 for `encoder.layer.0.*24 f"):
        read_adapters(folder, wide)


def test_files_that_change_after_they_were_read_are_noticed(tmp_path: Path) -> None:
    path = base(tmp_path, "bert")
    folder = peft_folder(tmp_path, path, "bert")
    architecture = pretrained(path, "adapters", adapter=str(folder))
    other = adapted(path, adapters=Adapters(rank=4))
    save_adapters(tmp_path / "other", other.encoder)
    weights = "adapter_model.safetensors"
    (folder / weights).write_bytes((tmp_path / "other" / weights).read_bytes())
    with pytest.raises(InputError, match="it was changed since"):
        architecture.build(one_task())


def test_nothing_of_others_is_written_over(tmp_path: Path) -> None:
    model = adapted(base(tmp_path, "bert"))
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="adapters should be written into a folder that is new"):
        save_adapters(tmp_path / "out", model.encoder)
    assert [each.name for each in (tmp_path / "out").iterdir()] == ["thesis.txt"]


def test_a_model_that_begins_with_adapters_trains_them(tmp_path: Path) -> None:
    path = base(tmp_path, "bert")
    architecture = pretrained(path, "adapters", adapter=str(peft_folder(tmp_path, path, "bert")))
    for how in ("heads", "all"):
        with pytest.raises(OptionError, match="should go on training them"):
            tuned(architecture, how)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="both `rank` and `adapter`"):
        pretrained(path, "adapters", rank=2, adapter="x")
    with pytest.raises(OptionError, match="`adapter` should go with adapters"):
        pretrained(path, "all", adapter="x")
