"""Inner products of the tasks' gradients, and how the solvers see them.

A Gramian of float32 gradients is a few millionths off, and those of real models are close to
singular as soon as two tasks agree. So the solvers get directions and lengths apart: the cosines
between the gradients, with a small ridge, and the norms. The ridge is relative to each task's own
gradient: one task whose gradient is a million times larger changes nothing for the others. It
makes every solution unique, hence symmetric: tasks with the same gradients get the same weights.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Solver = Callable[[Vector, Matrix], Vector]  # norms [task], cosines [task, task] -> weights [task]

COLUMNS = 1 << 22  # numbers converted at once, where gradients have a type of few bits


def gramian_of(gradients: Tensor) -> Tensor:
    """Inner products [task, task] of the rows of `gradients` [task, parameter], on the CPU.

    In float32, or float64 where the gradients have it; in float64 as well where float32 is too narrow
    for their squares.
    """
    if gradients.dtype in (torch.float16, torch.bfloat16):
        products = _in_pieces(gradients, torch.float32)
    elif gradients.device.type == "cpu":
        rows = gradients.numpy()
        # numpy, unlike torch, computes only one half of a product with its own transpose.
        with np.errstate(over="ignore", invalid="ignore"):
            products = torch.from_numpy(rows @ rows.T)
    else:
        products = (gradients @ gradients.T).cpu()
    squares = products.diagonal()
    narrow = products.dtype is torch.float32 and len(products) > 0
    if narrow and bool(((squares < 1e-30) | (squares > 1e30)).any()):
        return _in_pieces(gradients, torch.float64)
    return products


def _in_pieces(gradients: Tensor, dtype: torch.dtype) -> Tensor:
    count = max(1, len(gradients))
    products = torch.zeros(count, count, dtype=dtype, device=gradients.device)
    width = max(1, COLUMNS // count)
    for begin in range(0, gradients.shape[1], width):
        converted = gradients[:, begin : begin + width].to(dtype)
        products.addmm_(converted, converted.T)
    return products.cpu()


def ridge_of(gramian: Tensor) -> float:
    """What is added to cosines of 1: above the rounding of the type the products were summed in."""
    return 1e-8 if gramian.dtype is torch.float64 else 1e-6


def weigh_directions(gramian: Tensor, solve: Solver) -> Tensor:
    """The weights [task] that `solve` gives the tasks whose gradient is not 0.

    A task without a gradient has no direction to be weighed: its weight, which acts on its head
    alone, is the mean of the others'. Where a product is not finite all weights are NaN.
    """
    products = gramian.detach().to("cpu", torch.float64).numpy()
    if not np.isfinite(products).all():
        return torch.full((len(products),), torch.nan, dtype=torch.float64)
    norms = np.sqrt(np.maximum(products.diagonal(), 0.0))
    moving = norms > 0
    if not moving.any():
        return torch.ones(len(products), dtype=torch.float64)
    # Lengths that differ by more than this are beyond what any float type can add up.
    norms = np.maximum(norms[moving], 1e-18 * norms.max())
    weights = np.empty(len(products))
    weights[moving] = solve(norms, cosines(products[np.ix_(moving, moving)], ridge_of(gramian)))
    weights[~moving] = np.abs(weights[moving]).mean()
    return torch.from_numpy(weights)


def cosines(products: Matrix, ridge: float) -> Matrix:
    """Cosines [task, task] between gradients that are not 0, with the ridge on the diagonal."""
    norms = np.sqrt(products.diagonal())
    between = products / norms[:, None] / norms[None, :]
    between = np.clip((between + between.T) / 2, -1.0, 1.0)
    np.fill_diagonal(between, 1.0 + ridge)
    try:
        np.linalg.cholesky(between)
    except np.linalg.LinAlgError:  # rounding has taken more than the ridge gives
        values, vectors = np.linalg.eigh(between)
        between = (vectors * np.maximum(values, ridge)) @ vectors.T
    return np.asarray(between)
