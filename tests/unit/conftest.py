"""A tokenizer whose pieces are single characters, so that what is to be written can be counted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

LETTERS = " \n?!.,abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZé0123456789"
END, BEGIN = 0, 1
TEMPLATE = "{% for each in messages %}{{ each['role'][0] + '!' + each['content'] }}{% endfor %}?"

SaveLetters = Callable[..., str]


@pytest.fixture
def save_letters(tmp_path: Path) -> SaveLetters:
    """Saves such a tokenizer into a folder: 0 ends a text, 1 may begin it, then the letters."""
    tokenizers = pytest.importorskip("tokenizers", reason="the extra `text` is not installed")
    transformers = pytest.importorskip("transformers", reason="the extra `text` is not installed")

    def save(
        folder: Path | None = None, *, begins: bool = False, template: bool = False, **more: Any
    ) -> str:
        vocabulary = {piece: place for place, piece in enumerate(["</s>", "<s>", *LETTERS])}
        model = tokenizers.models.WordLevel(vocabulary, unk_token="?")
        tokenizer = tokenizers.Tokenizer(model)
        tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Split("", "isolated")
        tokenizer.decoder = tokenizers.decoders.Fuse()
        if begins:
            tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
                single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", BEGIN)]
            )
        target = tmp_path / "letters" if folder is None else folder
        transformers.PreTrainedTokenizerFast(
            tokenizer_object=tokenizer,
            eos_token="</s>",
            bos_token="<s>",
            unk_token="?",
            chat_template=TEMPLATE if template else None,
            **more,
        ).save_pretrained(target)
        return str(target)

    return save


@pytest.fixture
def save_language_model(save_letters: SaveLetters, tmp_path: Path) -> SaveLetters:
    """Saves a tiny causal model with random weights, and the tokenizer of letters beside it."""
    transformers = pytest.importorskip("transformers", reason="the extra `text` is not installed")
    torch = pytest.importorskip("torch")

    def save(kind: str = "llama", *, seed: int = 0, **more: Any) -> str:
        size = 2 + len(LETTERS)
        ends: dict[str, Any] = {"bos_token_id": BEGIN, "eos_token_id": END}
        if kind == "gpt2":
            config = transformers.GPT2Config(
                vocab_size=size, n_embd=16, n_layer=2, n_head=2, n_positions=48, **ends
            )
        else:
            config = transformers.LlamaConfig(
                vocab_size=size,
                hidden_size=16,
                intermediate_size=24,
                num_hidden_layers=2,
                num_attention_heads=2,
                num_key_value_heads=1,
                max_position_embeddings=48,
                initializer_range=0.3,  # so that what it writes differs from row to row
                **ends,
            )
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            network = transformers.AutoModelForCausalLM.from_config(config)
        folder = tmp_path / f"{kind}{seed}"
        network.save_pretrained(folder)
        return save_letters(folder, **more)

    return save
