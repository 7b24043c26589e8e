"""What the league of laws compares ours with: each learns from columns and predicts other rows.

    people    a floor and a power of each input, E + sum A_i x_i^-a_i (Hoffmann et al., 2022, Eq. 10,
              with as many inputs as there are), exponents between 0.02 and 3, fitted by least squares
    pyoperon  its own choice on its front, with the symbols that scores need and at most 30 nodes
    gplearn   the settings of Bettgenhäuser, Hedderich and Klakow (2020), section 4, whose exponential is
              added to its functions; its target scaled to the spread of 10 that scores in hundredths
              have, for which its parsimony is made
    process   a Gaussian process, one length a column plus noise, on logarithms of the columns
    linear    the logarithm of the target on the logarithms of the columns, a straight line

Columns and targets without values above zero are taken as they are instead of their logarithm. Both
engines that search get what a user who knows them would give: every column over its median, and the
logarithm of that where it spans a decade or more (a power is then one `exp` away). They have a limit of
CPU seconds. pyoperon's own limit is of the clock, so a short run tells how many evaluations a CPU second
buys, and the run that counts has as many as remain.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from taskmix.laws import LawRegressor

Floats = NDArray[np.float64]
Columns = dict[str, Floats]
STARTS, SEED = 12, 0
MOST_GENERATIONS = 10_000
TRIED_EVALUATIONS = 20_000  # of pyoperon, to learn its speed: well below a second
GPLEARN_SPREAD = 10.0  # of its target: with a much smaller one its parsimony leaves constants only
DECADE = 10.0


def ours(rows: Columns, target: Floats, far: Columns, seconds: float) -> dict[str, Floats]:
    """Our choice with the 90 % interval of a measurement, and the stack, of one search."""
    model = LawRegressor().fit(rows, target)
    found = model.law_.predict(far, level=0.9, measurement=True)
    ends = {"low": found.low, "high": found.high}
    return {"choice": found.values, "stack": model.stack_.predict(far).values, **ends}


def people(rows: Columns, target: Floats, far: Columns, seconds: float) -> dict[str, Floats]:
    units = {name: float(np.median(column)) or 1.0 for name, column in rows.items()}
    varied = [name for name, column in rows.items() if np.min(column) > 0 and np.ptp(column) > 0]

    def powers(columns: Columns, exponents: Floats) -> Floats:
        parts = [
            (columns[name] / units[name]) ** -exponent
            for name, exponent in zip(varied, exponents, strict=True)
        ]
        return np.column_stack([np.ones(len(next(iter(columns.values())))), *parts])

    def fitted(logs: Floats) -> tuple[float, Floats]:
        design = powers(rows, np.exp(logs))
        factors = np.linalg.lstsq(design, target, rcond=None)[0]
        return float(np.mean((design @ factors - target) ** 2)), factors

    generator = np.random.default_rng(SEED)
    bounds = [(math.log(0.02), math.log(3.0))] * len(varied)
    found = [
        minimize(
            lambda logs: math.log(fitted(logs)[0] + 1e-300),
            [generator.uniform(*bound) for bound in bounds],
            method="Nelder-Mead",
            bounds=bounds,
        )
        for _ in range(STARTS)
    ]
    best = min(found, key=lambda each: float(each.fun)).x
    return {"people": powers(far, np.exp(best)) @ fitted(best)[1]}


def operon_model(evaluations: int, seed: int) -> Any:
    from pyoperon.sklearn import SymbolicRegressor

    return SymbolicRegressor(
        allowed_symbols="add,sub,mul,div,sqrt,log,exp,constant,variable",
        optimizer_iterations=5,
        max_length=30,
        max_evaluations=evaluations,
        generations=10**7,
        objectives=["r2", "length"],
        n_threads=1,
        random_state=seed,
    )


def gplearn_model(names: list[str], seed: int) -> Any:
    """To be fitted a generation at a time."""
    from gplearn.functions import make_function
    from gplearn.genetic import SymbolicRegressor

    exponential = make_function(function=_bounded_exponential, name="exp", arity=1, wrap=False)
    return SymbolicRegressor(
        population_size=1000,
        function_set=("add", "sub", "mul", "div", "log", "sqrt", "neg", exponential),
        p_crossover=0.7,
        p_subtree_mutation=0.1,
        p_hoist_mutation=0.1,
        p_point_mutation=0.1,
        parsimony_coefficient=0.2,
        const_range=(-1.0, 1.0),
        metric="mse",
        feature_names=names,
        random_state=seed,
        warm_start=True,
    )


def _bounded_exponential(values: Floats) -> Floats:
    return np.exp(np.clip(values, -100, 100))


def operon(rows: Columns, target: Floats, far: Columns, seconds: float) -> dict[str, Floats]:
    near, beyond = _scaled(rows, far)
    begin = time.process_time()

    model = operon_model(TRIED_EVALUATIONS, SEED).fit(near, target)
    spent = time.process_time() - begin
    if (more := int(TRIED_EVALUATIONS * (seconds - spent) / spent)) > TRIED_EVALUATIONS:
        model = operon_model(more, SEED).fit(near, target)
    return {"pyoperon": np.asarray(model.predict(beyond), dtype=np.float64)}


def gplearn(rows: Columns, target: Floats, far: Columns, seconds: float) -> dict[str, Floats]:
    near, beyond = _scaled(rows, far)
    scale = GPLEARN_SPREAD / float(np.std(target))
    model = gplearn_model(list(rows), SEED)
    begin = time.process_time()
    for generation in range(1, MOST_GENERATIONS):
        model.set_params(generations=generation)
        model.fit(near, target * scale)
        if time.process_time() - begin > seconds:
            break
    return {"gplearn": model.predict(beyond) / scale}


def process(rows: Columns, target: Floats, far: Columns, seconds: float) -> dict[str, Floats]:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    near, beyond = _logs(rows, far)
    kernel = ConstantKernel() * RBF(np.ones(near.shape[1])) + WhiteKernel(0.01)
    model = GaussianProcessRegressor(
        kernel, normalize_y=True, n_restarts_optimizer=1, random_state=0
    )
    return {"process": np.asarray(model.fit(near, target).predict(beyond))}


def linear(rows: Columns, target: Floats, far: Columns, seconds: float) -> dict[str, Floats]:
    near, beyond = (np.column_stack([np.ones(len(part)), part]) for part in _logs(rows, far))
    is_log = bool(np.min(target) > 0)
    factors = np.linalg.lstsq(near, np.log(target) if is_log else target, rcond=None)[0]
    said = beyond @ factors
    return {"linear": np.exp(said) if is_log else said}


def _scaled(rows: Columns, far: Columns) -> tuple[Floats, Floats]:
    """Over the median, in logarithms where a positive column spans a decade."""
    parts: list[tuple[Floats, Floats]] = []
    for name, near in rows.items():
        beyond, unit = far[name], float(np.median(np.abs(near))) or 1.0
        if min(np.min(near), np.min(beyond)) > 0 and np.max(near) >= DECADE * np.min(near):
            parts.append((np.log(near / unit), np.log(beyond / unit)))
        else:
            parts.append((near / unit, beyond / unit))
    return np.column_stack([near for near, _ in parts]), np.column_stack([far for _, far in parts])


def _logs(rows: Columns, far: Columns) -> tuple[Floats, Floats]:
    """Standardised, in logarithms where all values allow it."""
    parts: list[tuple[Floats, Floats]] = []
    for name, near in rows.items():
        beyond = far[name]
        if min(np.min(near), np.min(beyond)) > 0:
            near, beyond = np.log(near), np.log(beyond)
        scale = float(np.std(near)) or 1.0
        parts.append(((near - np.mean(near)) / scale, (beyond - np.mean(near)) / scale))
    return np.column_stack([near for near, _ in parts]), np.column_stack([far for _, far in parts])


Method = Callable[[Columns, Floats, Columns, float], dict[str, Floats]]
METHODS: dict[str, Method] = {
    each.__name__: each for each in (ours, people, operon, gplearn, process, linear)
}


def quietly(
    method: str, rows: Columns, target: Floats, far: Columns, seconds: float
) -> dict[str, Floats]:
    """What a method says of the far rows, without a word of warning."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return METHODS[method](rows, target, far, seconds)
