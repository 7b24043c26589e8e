"""Log-likelihoods of batches of sequences under recurrent networks, observation by observation.

Sequences are padded to the longest of the batch. At time t a network has read t observations, so there
is one time more than there are observations: after the last one it says whether the sequence ends.
Each function gives log-likelihoods [generator, sequence], their parts by time, and what was said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from taskmix.sequences._normal import LOG_TWO_PI, Background
from taskmix.sequences._observed import Sequences
from taskmix.sequences._recurrent._network import NetworkLayout, run

if TYPE_CHECKING:
    from torch import Tensor

Passed = tuple["Tensor", "Tensor", "Tensor"]
_LARGEST = 14.0  # of a log-variance, in units of the data's own; beyond it gradients explode


def pass_symbols(
    layout: NetworkLayout,
    weights: Tensor,
    sequences: Sequences,
    rows: NDArray[np.int64],
    *,
    halting: bool,
) -> Passed:
    """What is said are log-probabilities of symbols and the end. Nothing ends before it began."""
    import torch

    lengths, inside, place = _padded(sequences, rows)
    times, symbols = inside.shape[1], sequences.symbols
    padded = np.append(sequences.values, -1)[np.where(inside, place, -1)]
    before = np.full(padded.shape, symbols)  # the beginning
    before[:, 1:] = np.where(padded < 0, symbols + 1, padded)[:, :-1]
    said = run(layout, weights, _like(weights, before.astype(np.int64)))
    barred = np.zeros((times, symbols + 1))
    barred[: 1 if halting else times, -1] = -np.inf
    said = torch.log_softmax(said + _like(weights, barred), dim=-1)
    target, judged = padded.astype(np.int64), padded >= 0
    if halting:
        ends = (np.arange(times) == lengths[:, None]) & (lengths > 0)[:, None]
        target, judged = np.where(ends, symbols, target), judged | ends
    index = _like(weights, np.where(judged, target, 0))[None, ..., None]
    steps = said.gather(-1, index.expand(len(weights), -1, -1, 1))[..., 0]
    steps = steps.masked_fill(~_like(weights, judged), 0.0)
    return steps.sum(dim=-1), steps, said


def pass_vectors(
    layout: NetworkLayout,
    weights: Tensor,
    sequences: Sequences,
    rows: NDArray[np.int64],
    behind: Background,
) -> Passed:
    """What is said are means and log-variances, in units of the background."""
    import torch

    _, inside, place = _padded(sequences, rows)
    deviation = np.sqrt(behind.variance)
    values = (sequences.values - behind.mean) / deviation
    values = np.concatenate([values, np.full((1, values.shape[1]), np.nan)])
    values = values[np.where(inside, place, -1)]
    seen = ~np.isnan(values)
    values = np.where(seen, values, 0.0)
    before = np.zeros((*values.shape[:2], 2 * values.shape[2]))
    before[:, 1:] = np.concatenate([values, seen], axis=2)[:, :-1]
    mean, size = run(layout, weights, _like(weights, before)).chunk(2, dim=-1)
    size = size.clamp(-_LARGEST, _LARGEST)
    distance = (_like(weights, values) - mean) ** 2 * torch.exp(-size)
    each = -0.5 * (distance + size + LOG_TWO_PI) - _like(weights, np.log(deviation))
    steps = (each * _like(weights, seen.astype(np.float64))).sum(dim=-1)
    return steps.sum(dim=-1), steps, torch.cat([mean, size], dim=-1)


def _padded(
    sequences: Sequences, rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64]]:
    """Lengths, and for each sequence and time whether something is observed then, and where it is."""
    lengths = sequences.lengths[rows]
    times = np.arange(int(lengths.max(initial=0)) + 1)
    inside = times < lengths[:, None]
    return lengths, inside, np.where(inside, sequences.starts[rows][:, None] + times, 0)


def _like(weights: Tensor, values: NDArray[Any]) -> Tensor:
    import torch

    return torch.tensor(values, device=weights.device)
