"""Any Hugging Face encoder, from a folder or the hub, with one head for each task.

A text or a pair is the vector of the first token, as in Devlin et al., "BERT", NAACL 2019; a word of
a sentence to be tagged is the vector of its first piece.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from safetensors import SafetensorError
from torch import Tensor, nn

from taskmix.errors import InputError
from taskmix.models._sharing import HardSharing, make_head
from taskmix.tasks import EncodedTasks, SubwordEncoding, load_pretrained


class TransformerEncoder(nn.Module):
    """A batch of `SubwordInputs` to [row, hidden], or [row, word, hidden] where words are tagged."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network
        self.features = int(cast("Any", network).config.hidden_size)

    def forward(self, batch: dict[str, Tensor]) -> Tensor:
        starts = batch.get("word_starts")
        inputs = {name: value for name, value in batch.items() if name != "word_starts"}
        states = cast("Tensor", self.network(**inputs).last_hidden_state)
        if starts is None:
            return states[:, 0]
        places = starts.unsqueeze(-1).expand(-1, -1, states.shape[-1])
        return states.gather(1, places)


@dataclass(frozen=True, kw_only=True)
class Transformer:
    """Options of a pretrained encoder.

    >>> Transformer(path="bert-base-uncased", max_length=64).encoding
    SubwordEncoding(path='bert-base-uncased', max_length=64)
    """

    path: str  # a folder with weights and tokenizer, or a name on the hub
    max_length: int = 128
    head_dropout: float = 0.1
    freeze: bool = False  # train the heads alone

    @property
    def encoding(self) -> SubwordEncoding:
        return SubwordEncoding(path=self.path, max_length=self.max_length)

    def build(self, tasks: EncodedTasks) -> HardSharing:
        try:
            network = load_pretrained("AutoModel", self.path)
        except (OSError, ValueError, SafetensorError) as error:
            raise InputError(
                f"`{self.path}` should be a folder with a Hugging Face model or a name on the hub. "
                f"Loading it said: {str(error).splitlines()[0]} Check the path."
            ) from error
        encoder = TransformerEncoder(network)
        if self.freeze:
            encoder.requires_grad_(False)
        heads = [
            make_head(tasks, task, encoder.features, dropout=self.head_dropout) for task in tasks
        ]
        return HardSharing(encoder, heads, tasks.names)
