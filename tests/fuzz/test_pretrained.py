"""Models of strangers: their code, their promises, and a hub that does not answer."""

from __future__ import annotations

import io
import json
import shutil
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import huggingface_hub
import pytest
from pretrained import read_texts, save_bert, save_gguf
from torch.nn.modules.module import register_module_parameter_registration_hook

from taskmix.errors import InputError
from taskmix.models import outline_of
from taskmix.tasks import find_pooling, load_pretrained

LOADING: Any = sys.modules[load_pretrained.__module__]

CODE = """
from pathlib import Path
import transformers
Path({marker!r}).touch()
class Odd(transformers.BertConfig):
    model_type = "odd"
class OddTokenizer(transformers.PreTrainedTokenizerFast):
    pass
class OddModel(transformers.BertModel):
    config_class = Odd
"""


@pytest.fixture
def bert(tmp_path: Path) -> Path:
    save_bert(tmp_path / "bert")
    return tmp_path / "bert"


def change(file: Path, **values: object) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | values))


def with_code(bert: Path, marker: Path) -> None:
    (bert / "odd.py").write_text(CODE.format(marker=str(marker)))
    names = {"AutoConfig": "odd.Odd", "AutoModel": "odd.OddModel"}
    change(bert / "config.json", auto_map=names | {"AutoModelForCausalLM": "odd.OddModel"})


@pytest.mark.parametrize(
    "read",
    [
        lambda path: load_pretrained("AutoModel", path),
        lambda path: load_pretrained("AutoModelForCausalLM", path),
        lambda path: load_pretrained("AutoTokenizer", path),
        outline_of,
        lambda path: read_texts(Path(path), Path(path).parent / "cache"),
    ],
    ids=["network", "causal network", "tokenizer", "outline", "vectors"],
)
def test_the_code_of_a_models_folder_is_not_run_whatever_standard_input_says(
    read: Callable[[str], object], bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_code(bert, tmp_path / "was run")
    change(bert / "config.json", model_type="odd")
    names = {"AutoTokenizer": [None, "odd.OddTokenizer"]}
    change(bert / "tokenizer_config.json", auto_map=names, tokenizer_class="OddTokenizer")
    rows = io.StringIO("y\ny\ny\n")
    monkeypatch.setattr("sys.stdin", rows)
    with pytest.raises(InputError, match=r"need no code but that of transformers. Found code in"):
        read(str(bert))
    assert not (tmp_path / "was run").exists()
    assert rows.tell() == 0, "a row was taken for an answer"


@pytest.mark.parametrize("layers", [50_000, 3_000_000, 2**62])
@pytest.mark.parametrize("kind", ["folder", "GGUF file"])
def test_far_more_layers_than_weights_are_refused_before_they_are_built(
    layers: int, kind: str, bert: Path, tmp_path: Path
) -> None:
    path = bert
    if kind == "GGUF file":
        path = tmp_path / "m.gguf"
        save_gguf(path, layers=min(layers, 2**32 - 1))
    else:
        change(bert / "config.json", num_hidden_layers=layers)
    built = []
    with (
        register_module_parameter_registration_hook(lambda *_: built.append(1)),
        pytest.raises(InputError, match=r"weights or more are described|layers is|block_count is"),
    ):
        outline_of(str(path))
    assert len(built) < 10_000


def test_memory_is_held_against_what_is_described(
    bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(bert / "config.json", num_hidden_layers=9)  # of which one has weights
    monkeypatch.setattr("taskmix.tasks._encoding._pretrained.free_memory", lambda: 8000)
    with pytest.raises(InputError, match="should fit into memory"):
        load_pretrained("AutoModel", str(bert))


@pytest.mark.parametrize(
    "values",
    [
        struct.pack("<IQ", 0, 2**40),  # of small numbers
        struct.pack("<IQ", 8, 2**40),  # of texts
        struct.pack("<IQ", 0, 4_000_000),
        struct.pack("<IQI", 9, 2**20, 9),  # of lists of lists
    ],
)
def test_a_list_in_a_gguf_header_is_no_longer_than_the_file(values: bytes, tmp_path: Path) -> None:
    name = b"general.architecture"
    header = b"GGUF" + struct.pack("<IQQQ", 3, 0, 2, len(name)) + name
    header += struct.pack("<IQ", 8, 5) + b"bloom" + struct.pack("<Q", 1) + b"x"
    (tmp_path / "m.gguf").write_bytes(header + struct.pack("<I", 9) + values)
    for kind in ("AutoModel", "AutoTokenizer"):
        with pytest.raises(InputError, match=r"m.gguf` should be .* a GGUF file"):
            load_pretrained(kind, str(tmp_path / "m.gguf"))  # type: ignore[arg-type]


def test_a_network_from_a_gguf_file_is_loaded_without_a_word_and_can_be_saved_again(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    save_gguf(tmp_path / "m.gguf")
    network = load_pretrained("AutoModel", str(tmp_path / "m.gguf"))
    assert capfd.readouterr().err == ""
    network.save_pretrained(tmp_path / "again")
    again = load_pretrained("AutoModel", str(tmp_path / "again"))
    assert again.state_dict().keys() == network.state_dict().keys()


def without_special_tokens(document: dict[str, Any]) -> None:
    document["post_processor"]["special_tokens"] = {}  # which its rule names


def without_unknown(document: dict[str, Any]) -> None:
    document["model"]["unk_token"] = "[NONE]"


def too_many(document: dict[str, Any]) -> None:
    document["model"]["vocab"]["go"] = 2**20  # more than the network knows


@pytest.mark.parametrize("spoil", [without_special_tokens, without_unknown, too_many])
def test_a_tokenizer_that_fails_at_the_first_text_is_told_in_a_sentence(
    spoil: Callable[[dict[str, Any]], None], bert: Path, tmp_path: Path
) -> None:
    document = json.loads((bert / "tokenizer.json").read_text())
    spoil(document)
    (bert / "tokenizer.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"bert` should be .* Reading it ended in"):
        read_texts(bert, tmp_path / "cache")


class Hub:
    """Stands where the hub is asked, and counts."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
        self.asked: list[str] = []
        self.end = Event()
        monkeypatch.setattr(huggingface_hub, "get_session", lambda: SimpleNamespace(head=self.head))
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(cache))
        monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: self.asked.append("an address"))
        monkeypatch.setattr(LOADING, "PATIENCE", 0.05)
        LOADING._hub_answers.cache_clear()

    def head(self, address: str, **_: object) -> None:
        self.asked.append(address)
        self.end.wait()


@pytest.fixture
def silent_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    hub = Hub(monkeypatch, tmp_path / "hub")
    yield hub
    hub.end.set()
    LOADING._hub_answers.cache_clear()


def test_a_hub_that_does_not_answer_is_asked_once(silent_hub: Hub) -> None:
    for read in (find_pooling, outline_of, lambda path: load_pretrained("AutoTokenizer", path)):
        with pytest.raises(InputError, match="no answer of the hub in"):
            read("some/name")
    assert silent_hub.asked == [huggingface_hub.constants.ENDPOINT]


def test_a_model_in_the_cache_of_the_hub_needs_no_network(
    silent_hub: Hub, bert: Path, tmp_path: Path
) -> None:
    place = tmp_path / "hub" / "models--some--name"
    (place / "refs").mkdir(parents=True)
    (place / "refs" / "main").write_text("0" * 40)
    shutil.copytree(bert, place / "snapshots" / ("0" * 40))
    assert load_pretrained("AutoModel", "some/name").config.hidden_size == 8
    assert len(load_pretrained("AutoTokenizer", "some/name")("we go")["input_ids"]) == 4
    assert silent_hub.asked == [huggingface_hub.constants.ENDPOINT]
