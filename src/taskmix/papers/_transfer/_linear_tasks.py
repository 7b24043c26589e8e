r"""Linear tasks about one target, and the loss of least squares on any subset of them.

    Li, Nguyen and Zhang, "Identification of Negative Transfers in Multitask Learning Using
    Surrogate Models", TMLR 2023, the setting of Theorem 2: $y = x^\top \theta^{(i)} + \epsilon$ with
    $\theta^{(i)} = \theta^{(t)} + z$.

Least squares on the rows of several tasks together needs only the sums of their XᵀX and Xᵀy, so a
subset costs one small system, and thousands are solved at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

CHUNK = 2048  # subsets solved at once


@dataclass(frozen=True, kw_only=True)
class LinearTasks:
    """All tasks of one seed, as the sums that least squares needs; the target is the last."""

    grams: NDArray[np.float64]  # [task, dimension, dimension], XᵀX
    moments: NDArray[np.float64]  # [task, dimension], Xᵀy
    gram: NDArray[np.float64]  # [dimension, dimension], of a validation row, on average
    moment: NDArray[np.float64]  # [dimension]
    square: float  # the mean of y² over validation rows

    def losses(self, subsets: NDArray[np.bool_]) -> NDArray[np.float64]:
        """f(t; S) for every row of `subsets` [subset, source], which may be empty."""
        return np.concatenate(
            [
                self._losses(subsets[begin : begin + CHUNK])
                for begin in range(0, len(subsets), CHUNK)
            ]
        )

    def _losses(self, subsets: NDArray[np.bool_]) -> NDArray[np.float64]:
        members = np.column_stack([subsets, np.ones(len(subsets))])
        grams = np.tensordot(members, self.grams, axes=1)
        solved = np.linalg.solve(grams, (members @ self.moments)[..., None])[..., 0]
        fitted = ((solved @ self.gram) * solved).sum(axis=1)
        return np.asarray(fitted - 2 * solved @ self.moment + self.square)


def sample_tasks(
    spread: NDArray[np.float64],  # [source], the deviation of z in each coordinate
    *,
    dimension: int,
    rows: int,
    target_rows: int,
    validation_rows: int,
    noise: float,
    generator: np.random.Generator,
) -> LinearTasks:
    """Sources θ + z about the θ of a target, and the target's validation rows."""
    p = dimension
    centre = generator.normal(size=p)
    spread = np.append(spread, 0.0)
    vectors = centre + spread[:, None] * generator.normal(size=(len(spread), p))
    grams, moments = np.empty((len(spread), p, p)), np.empty((len(spread), p))
    for task, vector in enumerate(vectors):
        count = rows if task < len(spread) - 1 else target_rows
        inputs = generator.normal(size=(count, p))
        grams[task] = inputs.T @ inputs
        moments[task] = inputs.T @ (inputs @ vector + noise * generator.normal(size=count))
    inputs = generator.normal(size=(validation_rows, p))
    outputs = inputs @ centre + noise * generator.normal(size=len(inputs))
    return LinearTasks(
        grams=grams,
        moments=moments,
        gram=inputs.T @ inputs / len(inputs),
        moment=inputs.T @ outputs / len(inputs),
        square=float(outputs @ outputs) / len(inputs),
    )
