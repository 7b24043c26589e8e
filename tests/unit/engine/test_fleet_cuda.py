"""On CUDA, too, a member gives what it gives alone, with its steps replayed as a graph."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from fleet_toys import on_cuda, side_by_side

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="there is no CUDA device here"
)


@pytest.mark.parametrize("drawn", [False, True], ids=["all", "drawn"])
@pytest.mark.parametrize("kind", ["perceptron", "convolution", "bilstm", "causal"])
def test_members_train_as_they_do_alone_and_in_a_graph(
    tmp_path: Path, kind: Any, drawn: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Solo runs would otherwise use TF32 in convolutions and in `nn.LSTM`, PyTorch's default there.
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # that steps cannot be captured is told as a warning
        side_by_side(on_cuda(tmp_path, kind, drawn=drawn), tmp_path, tolerance=1e-3)
