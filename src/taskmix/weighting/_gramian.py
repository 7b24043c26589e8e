"""Inner products of the tasks' gradients, and how the solvers see them.

A Gramian of float32 gradients is a few millionths off, and those of real models are close to
singular as soon as two tasks agree. So the solvers get directions and lengths apart: the cosines
between the gradients, with a small ridge, and the norms. The ridge is relative to each task's own
gradient: one task whose gradient is a million times larger changes nothing for the others. It
makes every solution unique, hence symmetric: tasks with the same gradients get the same weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
# norms [task], cosines [task, task], preference [task] of mean 1 -> weights [task]
Solver = Callable[[Vector, Matrix, Vector], Vector]

NUMBERS_AT_ONCE = (
    1 << 22
)  # converted, where gradients have a type of few bits; bounds the copy's memory


def inner_products(rows: Tensor) -> Tensor:
    """Inner products [task, task] of the rows [task, number], in float32 or better."""
    if rows.dtype in (torch.float16, torch.bfloat16):
        return _in_pieces(rows, torch.float32)
    if rows.device.type == "cpu" and len(rows) >= 8:
        array = rows.numpy()
        # numpy, unlike torch, computes only one half of a product with its own transpose.
        with np.errstate(over="ignore", invalid="ignore"):
            return torch.from_numpy(array @ array.T)
    return rows @ rows.T


def wide_inner_products(rows: Tensor) -> Tensor:
    """The same in float64, for gradients whose squares are no float32."""
    return _in_pieces(rows, torch.float64)


def out_of_range(products: Tensor) -> bool:
    """Whether a square is so small or so large that float32 may have lost some of its parts."""
    squares = products.diagonal().tolist()
    return not all(1e-30 < square < 1e30 for square in squares)


def _in_pieces(rows: Tensor, dtype: torch.dtype) -> Tensor:
    count = max(1, len(rows))
    products = torch.zeros(count, count, dtype=dtype, device=rows.device)
    width = max(1, NUMBERS_AT_ONCE // count)
    for begin in range(0, rows.shape[1], width):
        converted = rows[:, begin : begin + width].to(dtype)
        products.addmm_(converted, converted.T)
    return products


def ridge_of(gramian: Tensor) -> float:
    """What is added to cosines of 1: above the rounding of the type the products were summed in."""
    return 1e-8 if gramian.dtype is torch.float64 else 1e-6


def weigh_directions(gramian: Tensor, solve: Solver, preference: Sequence[float]) -> Tensor:
    """The weights [task] that `solve` gives the tasks whose gradient is not 0.

    A task without a gradient has no direction to be weighed: its weight, which acts on its head
    alone, is the mean of the others'. Where a product is not finite all weights are NaN.
    """
    products = gramian.detach().to("cpu", torch.float64).numpy()
    if not np.isfinite(products).all():
        return torch.full((len(products),), torch.nan, dtype=torch.float64)
    norms = np.sqrt(np.maximum(products.diagonal(), 0.0))
    moving = norms > 0
    if moving.all():
        between = cosines(products, ridge_of(gramian))
        weights = solve(_within_reach(norms), between, np.array(preference))
    elif moving.any():
        some = cosines(products[np.ix_(moving, moving)], ridge_of(gramian))
        weights = np.empty(len(products))
        wanted = np.array(preference)[moving]
        weights[moving] = solve(_within_reach(norms[moving]), some, wanted / wanted.mean())
        weights[~moving] = np.abs(weights[moving]).mean()
    else:
        weights = np.ones(len(products))
    return torch.from_numpy(weights)


def _within_reach(norms: Vector) -> Vector:
    """Lengths that differ by more than this are beyond what any float type can add up."""
    return np.asarray(np.maximum(norms, 1e-18 * norms.max()))


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
