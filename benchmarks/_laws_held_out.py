"""Laws of other fields, with designs of their own: what the search was not written for.

They were written down before the search was run on any of them: one to four inputs, 60 to 2,000 rows, no
noise to 5 %, inputs that do not matter, negative values, ranges from a factor of 2 to one of 1,000.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from _laws_known import Columns, Known
from taskmix.laws import evaluate_formula, parse_formula

FAR_ROWS = 2000


@dataclass(frozen=True)
class Span:
    """Where an input lies; drawn evenly, or evenly in its logarithm."""

    low: float
    high: float
    is_log: bool = True

    def draw(self, generator: np.random.Generator, rows: int) -> NDArray[np.float64]:
        if self.is_log:
            return np.exp(generator.uniform(np.log(self.low), np.log(self.high), rows))
        return generator.uniform(self.low, self.high, rows)

    def widened(self) -> Span:
        """Half its length more, on both sides or, where zero is its end, above."""
        if self.is_log:
            more = np.sqrt(self.high / self.low)
            return Span(self.low / more, self.high * more)
        more = (self.high - self.low) / 2
        return Span(self.low - more if self.low < 0 else self.low, self.high + more, is_log=False)


@dataclass(frozen=True)
class HeldOut:
    """A law, the design of its table, and the noise, a share of the value or of one size."""

    formula: str
    inputs: dict[str, Span]
    rows: int
    noise: float = 0.02
    absolute: bool = False

    def make(self, seed: int) -> Known:
        generator = np.random.default_rng(seed)
        columns = {name: span.draw(generator, self.rows) for name, span in self.inputs.items()}
        far: Columns = {
            name: span.widened().draw(generator, FAR_ROWS) for name, span in self.inputs.items()
        }
        expression = parse_formula(self.formula)
        values = evaluate_formula(expression, columns)
        size = 1.0 if self.absolute else np.abs(values)
        target = values + self.noise * size * generator.normal(size=self.rows)
        return Known(self.formula, columns, target, far, evaluate_formula(expression, far))


X, Z = Span(1, 50), Span(2, 30)
SHARE = Span(0.1, 1, is_log=False)
SIGNED = Span(-3, 3, is_log=False)

HELD_OUT = {
    "cobb-douglas": HeldOut("1.7*x^0.6*z^0.35", {"x": X, "z": Z}, 60, 0.05),
    "michaelis": HeldOut("12*s/(s + 4)", {"s": Span(0.5, 40)}, 80, 0.03),
    "inhibitor": HeldOut("9*s/(s + 2 + 0.7*i)", {"s": Span(0.5, 40), "i": Span(0.3, 30)}, 300),
    "gas": HeldOut("0.08*k*t/v", {"k": X, "t": Span(250, 500), "v": Span(0.5, 20)}, 200, 0.01),
    "two powers": HeldOut("3*x^0.5 + 0.2*z^1.5", {"x": X, "z": Z}, 400),
    "arch": HeldOut("4 - 1.5*x - 0.7*x^2", {"x": SIGNED}, 150, 0.1, absolute=True),
    "cooling": HeldOut("5 + 20*exp(-0.3*t)", {"t": Span(0, 15, is_log=False)}, 120, 0.01),
    "logistic": HeldOut("1/(1 + 11*exp(-0.8*x))", {"x": Span(0, 10, is_log=False)}, 400, 0.01),
    "interaction": HeldOut(
        "2 + 0.5*x*z - 0.3*x", {"x": SIGNED, "z": Span(0, 4, is_log=False)}, 300, 0.1, absolute=True
    ),
    "log ratio": HeldOut("3*log(x/z)", {"x": X, "z": Z}, 250, 0.05, absolute=True),
    "idle input": HeldOut("7*sqrt(x)/z", {"x": X, "z": Z, "w": Span(1, 9)}, 500),
    "four inputs": HeldOut(
        "0.5*sqrt(a)*b/((c + 2)*d^0.25)",
        {"a": X, "b": Z, "c": Span(0.2, 20), "d": Span(1, 1000)},
        2000,
        0.03,
    ),
    "hypotenuse": HeldOut("sqrt(x^2 + z^2)", {"x": X, "z": Z}, 200, 0.01),
    "offset approach": HeldOut(
        "0.2 + 0.7*(1 - exp(-n/4000))*ami", {"n": Span(500, 20000), "ami": SHARE}, 800
    ),
    "chinchilla": HeldOut(
        "1.69 + 406*p^-0.34 + 410*d^-0.28", {"p": Span(1e7, 1e10), "d": Span(1e9, 1e12)}, 250, 0.005
    ),
    "lens": HeldOut("1/z + 3/x", {"x": X, "z": Z}, 100, 0.0),
    "arrhenius": HeldOut(
        "1e5*exp(-3000/t)*c^1.5", {"t": Span(300, 800), "c": Span(0.1, 10)}, 300, 0.03
    ),
    "weber": HeldOut("10 + 4*log(1 + 0.2*x)", {"x": Span(0, 100, is_log=False)}, 200),
    "overfishing": HeldOut("2*x^0.75 - 0.5*x", {"x": Span(0.5, 60)}, 500, 0.01),
    "shifted roots": HeldOut("sqrt((x + 5)*(z + 2))", {"x": X, "z": Z}, 600),
    "log times square": HeldOut("0.3*log(n)*ami^2", {"n": Span(100, 1e5), "ami": SHARE}, 300),
    "mixture": HeldOut("(2*x + 7*z)/(x + z)", {"x": X, "z": Z}, 500, 0.01),
    "cubic": HeldOut("0.5*x^3 - 2*x", {"x": SIGNED}, 200, 0.1, absolute=True),
    "plane": HeldOut(
        "3*a - 2*b + 0.5*c + 1",
        {"a": SIGNED, "b": SIGNED, "c": SIGNED, "d": SIGNED},
        200,
        0.2,
        absolute=True,
    ),
    "sum under a power": HeldOut("4*(x + 2*z)^0.3", {"x": X, "z": Z}, 300),
    "growing saturation": HeldOut(
        "0.9*n^0.5/(n^0.5 + 20*T^-0.5)", {"n": Span(100, 20000), "T": Span(1, 15)}, 600
    ),
    "difference": HeldOut("5*x - 3*z", {"x": X, "z": Z}, 200, 0.5, absolute=True),
    "variable exponent": HeldOut("2*n^(0.3*ami)", {"n": Span(100, 20000), "ami": SHARE}, 500),
    "logistic factor": HeldOut("3*sqrt(x)/(1 + exp(4 - 8*ami))", {"x": X, "ami": SHARE}, 800),
    "distance to one": HeldOut(
        "0.9 - 2*(1 - ami)*n^-0.3", {"n": Span(100, 20000), "ami": SHARE}, 600
    ),
    "bell": HeldOut("6*exp(-(x - 1)^2/4)", {"x": SIGNED}, 300, 0.05, absolute=True),
    "ratio of logarithms": HeldOut(
        "log(n)/log(T + 2)", {"n": Span(100, 1e5), "T": Span(1, 40)}, 400
    ),
    "two saturations apart": HeldOut(
        "20 + 50*n/(n + 3000) - 12*T/(T + 4)", {"n": Span(500, 20000), "T": Span(1, 30)}, 700
    ),
    "effective samples": HeldOut(
        "0.95 - 4*(n_real + 0.3*n_other)^-0.3",
        {"n_real": Span(500, 20000), "n_other": Span(500, 60000)},
        900,
        0.01,
    ),
    "drag": HeldOut(
        "0.6*rho*v^2*area", {"rho": Span(0.5, 2), "v": X, "area": Span(0.1, 3)}, 100, 0.05
    ),
    "kepler": HeldOut("365*(a^3/m)^0.5", {"a": Span(0.3, 30), "m": Span(0.5, 3)}, 60, 0.01),
    "lensmaker": HeldOut("1/(1/x + 1/z)", {"x": X, "z": Z}, 150),
    "temperature and size": HeldOut(
        "8*m^0.75*exp(-0.6/(0.0862*t))*10^10",
        {"m": Span(0.01, 100), "t": Span(2.7, 3.2)},
        400,
        0.05,
    ),
    "amdahl": HeldOut("1/(0.05 + 0.95/p)", {"p": Span(1, 200)}, 60, 0.03),
    "learning curve of three": HeldOut(
        "0.1 + 5*n^-0.5 + 0.2*exp(-T/3) - 0.05*ami",
        {"n": Span(500, 20000), "T": Span(1, 15), "ami": SHARE},
        1500,
    ),
    "square root of a logarithm": HeldOut(
        "1.3*sqrt(log(n)/T)", {"n": Span(10, 1e5), "T": Span(1, 30)}, 300
    ),
    "inner shift": HeldOut("2*log(x + 3*z + 10)", {"x": X, "z": Z}, 500, 0.01),
    "product of lines": HeldOut(
        "(1 + 0.5*x)*(2 - z)", {"x": SIGNED, "z": SIGNED}, 300, 0.1, absolute=True
    ),
    "difference of squares": HeldOut(
        "x^2 - z^2", {"x": SIGNED, "z": SIGNED}, 200, 0.2, absolute=True
    ),
    "quotient with shift": HeldOut("(x - 4)/(z + 1)", {"x": X, "z": Z}, 300, 0.02, absolute=True),
}
