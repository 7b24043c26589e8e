"""Window BiLSTM tagger: the tag of a word from the word and three neighbours on each side.

    Bettgenhäuser, Hedderich and Klakow, "Learning Functions to Study the Benefit of Multitask
    Learning", 2020, section 4: a shared BiLSTM over the window, then dense layers, shared
    (`shared_layers`) or of each task (`task_layers`), then one linear output for each task.

The code of a window is the BiLSTM's output at its centre, the word to be tagged.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import cast

from torch import Tensor, nn

from taskmix.errors import OptionError
from taskmix.models._sharing import HardSharing, make_head
from taskmix.models._text_convolution import word_embedding
from taskmix.tasks import EncodedTasks, WindowEncoding


class WindowBiLSTMEncoder(nn.Module):
    """Token ids [row, 2 * width + 1] to [row, features].

    >>> encoder = WindowBiLSTMEncoder(torch.nn.Embedding(20, 8, padding_idx=0), 6, shared_layers=())
    >>> tuple(encoder(torch.tensor([[0, 4, 2], [4, 2, 7]])).shape)  # 6 in each direction
    (2, 12)
    """

    def __init__(self, words: nn.Embedding, hidden: int, shared_layers: tuple[int, ...]) -> None:
        super().__init__()
        self.words = words
        self.lstm = nn.LSTM(words.embedding_dim, hidden, batch_first=True, bidirectional=True)
        layers: list[nn.Module] = []
        features = 2 * hidden
        for width in shared_layers:
            layers += [nn.Linear(features, width), nn.ReLU()]
            features = width
        self.dense = nn.Sequential(*layers)
        self.features = features

    def forward(self, windows: Tensor) -> Tensor:
        states, _ = self.lstm(self.words(windows))
        return cast("Tensor", self.dense(states[:, windows.shape[1] // 2]))


@dataclass(frozen=True, kw_only=True)
class WindowBiLSTM:
    """Options of the tagger, with the paper's window.

    >>> WindowBiLSTM(width=1).encoding.width
    1
    >>> WindowBiLSTM(hidden=0)
    Traceback (most recent call last):
        ...
    taskmix.errors.OptionError: `width` should be 0 or more and `hidden` 1 or more. ...
    """

    width: int = 3
    hidden: int = 100
    shared_layers: tuple[int, ...] = ()
    task_layers: tuple[int, ...] = ()
    head_dropout: float = 0.0
    dimension: int = 100  # of learned word vectors; a file brings its own
    vectors: Path | None = None
    train_vectors: bool = False
    io_training: bool = False  # the paper trains on IO tags and evaluates on IOB2

    def __post_init__(self) -> None:
        if self.width < 0 or self.hidden < 1:
            raise OptionError(
                f"`width` should be 0 or more and `hidden` 1 or more. Found {self.width} and "
                f"{self.hidden}. The paper's window is width 3."
            )

    @property
    def encoding(self) -> WindowEncoding:
        return WindowEncoding(width=self.width, vectors=self.vectors, io_training=self.io_training)

    def build(self, tasks: EncodedTasks) -> HardSharing:
        words = word_embedding(tasks, self.dimension, train=self.train_vectors)
        encoder = WindowBiLSTMEncoder(words, self.hidden, self.shared_layers)
        heads = [
            make_head(
                tasks, task, encoder.features, hidden=self.task_layers, dropout=self.head_dropout
            )
            for task in tasks
        ]
        return HardSharing(encoder, heads, tasks.names)
