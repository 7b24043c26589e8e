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
