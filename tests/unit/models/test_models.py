from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tiny import base

from taskmix.errors import InputError, OptionError
from taskmix.models import (
    Perceptron,
    TextConvolution,
    TextConvolutionEncoder,
    Transformer,
    WindowBiLSTM,
    WindowBiLSTMEncoder,
)
from taskmix.tasks import (
    DenseInputs,
    EncodedSplit,
    EncodedTask,
    EncodedTasks,
    PairInputs,
    RaggedInputs,
    WindowInputs,
)


def encoded(
    inputs: object, *, labels: int = 3, name: str = "a", kind: str = "classification"
) -> EncodedTask:
    targets = torch.zeros(len(inputs), dtype=torch.long)  # type: ignore[arg-type]
    return EncodedTask(
        name=name,
        kind=kind,  # type: ignore[arg-type]
        labels=tuple("xyzuvw"[:labels]) if kind != "regression" else (),
        metric="accuracy",
        source=name,
        splits={"train": EncodedSplit(inputs, targets)},  # type: ignore[arg-type]
    )


def ragged(rows: list[list[int]]) -> RaggedInputs:
    flat = torch.tensor([token for row in rows for token in row], dtype=torch.long)
    offsets = torch.tensor([0, *[len(row) for row in rows]]).cumsum(0)
    return RaggedInputs(flat, offsets, minimum=7)


WORDS = tuple(f"w{number}" for number in range(20))


def test_a_perceptron_gives_one_output_a_class_and_one_number_for_regression() -> None:
    inputs = DenseInputs(torch.randn(4, 5))
    number = encoded(inputs, name="b", kind="regression")
    tasks = EncodedTasks(
        (encoded(inputs), number), features=5, extra={"target_scale": {"b": (100.0, 10.0)}}
    )
    model = Perceptron(hidden=(7,)).build(tasks)
    assert model(inputs.batch(torch.arange(4)), 0).shape == (4, 3)
    values = model(inputs.batch(torch.arange(4)), 1)
    assert values.shape == (4,)
    assert values.detach().sub(100).abs().max() < 50, "starts near the mean of the targets"


def test_a_text_convolution_equals_the_sum_written_out_by_hand() -> None:
    words = torch.nn.Embedding(5, 1, padding_idx=0)
    encoder = TextConvolutionEncoder(words, filters=1, kernels=(3,))
    with torch.no_grad():
        words.weight.copy_(torch.tensor([[0.0], [1.0], [2.0], [3.0], [4.0]]))
        encoder.convolutions[0].weight.copy_(torch.tensor([[[1.0, 10.0, 100.0]]]))
        encoder.convolutions[0].bias.fill_(0.5)
    # Words 1 2 with padding around: centre 1 sees (0, 1, 2), centre 2 sees (1, 2, 0).
    value = encoder(torch.tensor([[1, 2, 0, 0]]))
    assert value.item() == pytest.approx(max(10 + 200, 1 + 20) + 0.5)


def test_a_text_does_not_depend_on_how_long_its_neighbours_are() -> None:
    inputs = ragged([[3, 4, 5], list(range(1, 19)), []])
    tasks = EncodedTasks((encoded(inputs),), vocabulary=WORDS)
    model = TextConvolution(filters=6).build(tasks).eval()
    alone = model.encoder(inputs.batch(torch.tensor([0])))
    beside = model.encoder(inputs.batch(torch.tensor([0, 1, 2])))
    torch.testing.assert_close(alone[0], beside[0])
    assert torch.equal(beside[2], torch.zeros_like(beside[2])), "nothing said, nothing found"


def test_pairs_and_single_texts_share_one_encoder() -> None:
    single, pair = ragged([[2, 3]]), PairInputs(ragged([[2, 3]]), ragged([[4]]))
    tasks = EncodedTasks((encoded(single), encoded(pair, name="b")), vocabulary=WORDS)
    model = TextConvolution(filters=4).build(tasks).eval()
    row = torch.tensor([0])
    assert model(single.batch(row), 0).shape == (1, 3)
    assert model(pair.batch(row), 1).shape == (1, 3)
    code = model.encoder(pair.batch(row))
    first, second = model.encoder(pair.first.batch(row)), model.encoder(pair.second.batch(row))
    expected = torch.cat([first, second, (first - second).abs(), first * second], dim=1)
    torch.testing.assert_close(code, expected)


def test_a_window_tagger_reads_the_whole_window_and_tags_its_centre() -> None:
    padded = torch.tensor([0, 0, 0, 2, 3, 4, 0, 0, 0])
    inputs = WindowInputs(padded, torch.tensor([3, 4, 5]), width=3)
    tasks = EncodedTasks((encoded(inputs),), vocabulary=WORDS)
    torch.manual_seed(0)  # a few layers this narrow are sometimes dead from the start
    model = WindowBiLSTM(hidden=5, shared_layers=(6,), task_layers=(4,)).build(tasks)
    windows = inputs.batch(torch.arange(3))
    assert windows.tolist()[0] == [0, 0, 0, 2, 3, 4, 0]
    assert model(windows, 0).shape == (3, 3)
    encoder = model.encoder
    assert isinstance(encoder, WindowBiLSTMEncoder)
    states, _ = encoder.lstm(encoder.words(windows))
    torch.testing.assert_close(encoder(windows), encoder.dense(states[:, 3]))
    changed = windows.clone()
    changed[:, [0, 6]] = 7
    assert not torch.allclose(model(windows, 0), model(changed, 0)), "the ends of the window matter"


def test_a_pretrained_encoder_gives_a_pooled_text_or_the_first_piece_of_each_word(
    tmp_path: Path,
) -> None:
    path = base(tmp_path, "bert")
    inputs = DenseInputs(torch.zeros(2, 1))
    tasks = EncodedTasks((encoded(inputs),))
    model = Transformer(path=path).build(tasks).eval()
    first = Transformer(path=path, pooling="first").build(tasks).eval()
    batch = {"input_ids": torch.tensor([[1, 5, 6, 7]]), "attention_mask": torch.ones(1, 4).long()}
    whole = model.encoder.network(**batch).last_hidden_state
    torch.testing.assert_close(model.encoder(batch), whole.mean(dim=1))
    torch.testing.assert_close(first.encoder(batch), whole[:, 0])
    words = model.encoder({**batch, "word_starts": torch.tensor([[1, 3]])})
    torch.testing.assert_close(words, whole[:, [1, 3]])


def test_an_encoder_that_is_not_there_is_told_in_a_sentence(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="the extra `text` is not installed")
    with pytest.raises(InputError, match="should be a folder with a Hugging Face model"):
        Transformer(path=str(tmp_path / "nowhere")).build(EncodedTasks(()))


def test_wrong_options_are_refused_in_words() -> None:
    with pytest.raises(OptionError, match="odd widths"):
        TextConvolution(kernels=(2,))
    with pytest.raises(OptionError, match="at least one width"):
        Perceptron(hidden=())
    with pytest.raises(OptionError, match="`hidden` 1 or more"):
        WindowBiLSTM(hidden=0)


def test_convolving_as_one_product_of_windows_gives_the_same_code_and_gradients() -> None:
    torch.manual_seed(0)
    words = torch.nn.Embedding(50, 13, padding_idx=0)
    words.weight.requires_grad_(False)
    encoder = TextConvolutionEncoder(words, 5, (3, 5, 7))
    ids = torch.randint(1, 50, (6, 11))
    ids[1, 4:] = 0
    ids[2] = 0  # an empty text
    direction = torch.randn(6, encoder.features)
    found = []
    for code in (encoder(ids), encoder.encode_windows(ids, words(ids))):
        encoder.zero_grad()
        (code * direction).sum().backward()
        found.append([code.detach(), *(p.grad.clone() for p in encoder.convolutions.parameters())])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs)
    assert not found[1][0][2].any()  # nothing in an empty text, whatever the bias
