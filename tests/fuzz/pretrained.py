"""Pretrained models for the readers: a BERT, a Llama and a GGUF file, each of some kilobytes.

Whoever reads one gets vectors of a few texts, and with them all that comes before: the configuration,
the tokenizer and the weights.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import gguf
import numpy as np
import pyarrow as pa
import tokenizers
import torch
import transformers
from mutations import refit_document

from taskmix.models import outline_of
from taskmix.tasks import (
    FeatureEncoding,
    Split,
    Task,
    TaskSet,
    find_pooling,
    load_pretrained,
)

R = TypeVar("R")

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "we", "play", "##ing", "go", "."]
WORDS = (
    b"3000000",
    b'"auto_map": {"AutoConfig": "evil.Evil", "AutoModel": "evil.Evil"},',
    b'"adapter"',
    b"llama",
    b"2147483647",
    b"num_hidden_layers",
    b"\xff\xff\xff\x7f",
    b"\x09\x00\x00\x00\x09\x00\x00\x00",
    b"\x00\x00\x00\x00\x01\x00\x00\x00",
)


def save_tokenizer(folder: Path) -> None:
    vocabulary = {piece: place for place, piece in enumerate(PIECES)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    marks = {"unk_token": "[UNK]", "pad_token": "[PAD]", "eos_token": "[SEP]"}
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **marks).save_pretrained(
        folder
    )


def save_bert(folder: Path, **more: Any) -> None:
    """A BERT of one layer, with its tokenizer."""
    config = transformers.BertConfig(
        vocab_size=len(PIECES),
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        max_position_embeddings=16,
        **more,
    )
    transformers.BertModel(config).save_pretrained(folder)
    save_tokenizer(folder)


def save_llama(folder: Path) -> None:
    """A Llama of one layer, with its tokenizer."""
    config = transformers.LlamaConfig(
        vocab_size=len(PIECES),
        hidden_size=8,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=16,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    save_tokenizer(folder)


def save_gguf(file: Path, *, layers: int = 1) -> None:
    """A Llama of one layer, whatever number of layers it claims, in a file of its own."""
    writer = gguf.GGUFWriter(file, "llama")
    writer.add_context_length(16)
    writer.add_embedding_length(32)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(32)
    writer.add_head_count(2)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_dimension_count(16)
    writer.add_tokenizer_model("gpt2")
    pieces = ["<unk>", "<s>", "</s>", "w", "e", "g", "o", "we", "go"]
    writer.add_token_list(pieces)
    writer.add_token_types([3, 3, 3, *[1] * 6])
    writer.add_token_merges(["w e", "g o"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    chance = np.random.default_rng(0)
    layer = {"attn_q": 2, "attn_k": 2, "attn_v": 2, "attn_output": 2, "ffn_gate": 2, "ffn_up": 2}
    layer |= {"ffn_down": 2, "attn_norm": 1, "ffn_norm": 1}
    shapes = {f"blk.0.{name}": (32,) * rank for name, rank in layer.items()}
    shapes |= {"token_embd": (len(pieces), 32), "output_norm": (32,), "output": (len(pieces), 32)}
    for name, shape in shapes.items():
        writer.add_tensor(f"{name}.weight", chance.normal(size=shape).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def read_texts(path: Path, cache: Path) -> object:
    """Vectors of some texts, by all that reads a model on the way there."""
    find_pooling(str(path))
    outline_of(str(path))
    table = pa.table({"text": ["we go.", "playing", "", "\u0378"]})
    task = Task(
        name="a",
        kind="classification",
        inputs="text",
        labels=("x",),
        metric="accuracy",
        source="a",
        splits={"train": Split(table, np.zeros(4, dtype=np.int64))},
    )
    encoding = FeatureEncoding(path=str(path), max_length=8, pooling="mean")
    return encoding.encode(TaskSet((task,)), cache=cache)


def _files(save: Callable[[Path], None]) -> dict[str, bytes]:
    with TemporaryDirectory() as name, torch.random.fork_rng():
        torch.manual_seed(0)
        save(Path(name))
        return {file.name: file.read_bytes() for file in Path(name).iterdir()}


def refit_header(data: bytes) -> bytes:
    """A file of weights whose first eight bytes say how long its header is."""
    end = data.find(b"}}", 8) + 2
    while end > 1 and data[end : end + 1] == b" ":
        end += 1
    return data if end < 2 else (end - 8).to_bytes(8, "little") + data[8:]


def pretrained_readers(make: Callable[..., R]) -> list[R]:
    """A reader for each file that a pretrained model is made of."""
    bert, llama = _files(save_bert), _files(save_llama)
    packed = _files(lambda folder: save_gguf(folder / "m.gguf"))["m.gguf"]

    def document(name: str, file: str, files: dict[str, bytes]) -> R:
        return make(
            name,
            f"m/{file}",
            (files[file],),
            lambda folder: read_texts(folder / "m", folder / "cache"),
            {f"m/{other}": data for other, data in files.items()},
            refit_document(files[file]),
            WORDS,
        )

    return [
        document("configuration of a BERT", "config.json", bert),
        document("configuration of a Llama", "config.json", llama),
        document("tokenizer of a model", "tokenizer.json", bert),
        document("settings of a tokenizer", "tokenizer_config.json", bert),
        make(
            "pretrained weights",
            "m/model.safetensors",
            (bert["model.safetensors"],),
            lambda folder: load_pretrained("AutoModel", str(folder / "m")),
            {f"m/{name}": data for name, data in bert.items()},
            refit_header,
            WORDS,
        ),
        make(
            "GGUF file",
            "m.gguf",
            (packed,),
            lambda folder: read_texts(folder / "m.gguf", folder / "cache"),
            words=WORDS,
        ),
    ]
