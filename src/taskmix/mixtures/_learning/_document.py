"""What was learned from a table of mixtures as one document: JSON for `--document` and `--json`.

NaN and the infinities are null there, which is read back as NaN.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from taskmix.errors import InputError
from taskmix.files import UnreadableError, has_keys, read_plain, write_bytes
from taskmix.records import LEFT_OUT_IF_NONE, from_plain, to_plain


@dataclass(frozen=True)
class ForecastValue:
    """A number with its 90 % interval: of the law for targets and gains, of a run for metrics."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class DomainRow:
    """What is advised for one domain, and how much that matters."""

    domain: str
    share: float  # advised
    low: float  # the range over mixtures that are as good, as far as can be told
    high: float
    seen_low: float  # over the runs
    seen_high: float
    effect: ForecastValue | None  # on the target, of one point (0.01) more taken from all others
    fixed: bool  # never varied
    passes: float | None = field(default=None, metadata=LEFT_OUT_IF_NONE)  # over its tokens


@dataclass(frozen=True, kw_only=True)
class ComparedMixture:
    """A mixture beside the advised one: what is expected of it."""

    name: str
    shares: Mapping[str, float]
    target: ForecastValue  # in units of the metric, where it is one
    gain: ForecastValue  # of the advised mixture over it; above 0 is better
    better: float  # how likely it is that the advised mixture is better
    metrics: Mapping[str, ForecastValue]


@dataclass(frozen=True, kw_only=True)
class LeftOutMetric:
    """A metric, or the target, as predicted for runs that the law had not seen."""

    name: str
    larger_is_better: bool
    runs: tuple[str, ...]
    predicted: tuple[float, ...]
    observed: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    rank_correlation: float
    r_squared: float
    coverage: float  # of the 90 % intervals; NaN where there are none
    error: float  # root mean square
    noise: float  # of a run around its law, by the forecast


@dataclass(frozen=True)
class LawWeight:
    """How much a law counts in the forecast of a metric."""

    metric: str
    law: str
    weight: float


@dataclass(frozen=True, kw_only=True)
class RunToDo:
    """A mixture to train next."""

    shares: Mapping[str, float]
    words: str  # what it is for


@dataclass(frozen=True, kw_only=True)
class RunsToDo:
    """What to train next, and what it is expected to bring."""

    runs: tuple[RunToDo, ...]
    regret: float  # expected now, in units of the target
    regret_after: float  # once these are done
    enough: bool
    words: str


@dataclass(frozen=True, kw_only=True)
class FrontPoint:
    """A mixture that is best at a trade of two metrics."""

    shares: Mapping[str, float]
    first: ForecastValue
    second: ForecastValue


@dataclass(frozen=True, kw_only=True)
class MixtureFront:
    """What one metric costs of another."""

    first: str
    second: str
    points: tuple[FrontPoint, ...]


@dataclass(frozen=True, kw_only=True)
class CarryRow:
    """How ranks of mixtures carry over from one size of model to another."""

    name: str
    small: float
    large: float
    correlation: float
    low: float
    high: float
    verdict: str
    words: str


@dataclass(frozen=True, kw_only=True)
class PredictedMixture:
    """A mixture that was asked about."""

    name: str
    shares: Mapping[str, float]
    target: ForecastValue
    metrics: Mapping[str, ForecastValue]


@dataclass(frozen=True, kw_only=True)
class MixtureReport:
    """What `learn_mixtures` found, in plain words and numbers; what was not asked for is None."""

    command: str  # that made it; nothing where it was made from Python
    mixtures: str  # in words: what was read
    target: str  # in words
    larger_is_better: bool  # of the target: then its values rise, and gains are still above 0
    runs: int
    sizes: tuple[float, ...]
    size: float | None  # of the model that the answer is for; None: the runs' own
    answer: str
    trust: tuple[str, ...]  # how far the answer can be trusted, a sentence each
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    domains: tuple[DomainRow, ...]
    compared: tuple[ComparedMixture, ...]  # the advised mixture first
    left_out: tuple[LeftOutMetric, ...]  # the target first
    extrapolated: bool
    distance: str  # of the advised mixture to the runs, in words
    regret: float  # expected: its target minus the lowest that there is
    spread: float  # of the target over the runs, a standard deviation
    laws: tuple[LawWeight, ...]
    next: RunsToDo | None = field(default=None, metadata=LEFT_OUT_IF_NONE)
    front: MixtureFront | None = field(default=None, metadata=LEFT_OUT_IF_NONE)
    carry: tuple[CarryRow, ...] | None = field(default=None, metadata=LEFT_OUT_IF_NONE)
    predictions: tuple[PredictedMixture, ...] | None = field(
        default=None, metadata=LEFT_OUT_IF_NONE
    )
    seconds: float

    def as_json(self) -> dict[str, Any]:
        """The document as JSON has it."""
        plain: dict[str, Any] = to_plain(self)
        return plain


def is_mixtures_document(begin: bytes) -> bool:
    """Whether a file is such a document, by its first bytes.

    >>> is_mixtures_document(b'{"command": "", "mixtures": "", "target": ""}')
    True
    >>> is_mixtures_document(b"web,code")
    False
    """
    return has_keys("command", "mixtures", "target")(begin)


def write_mixtures(document: MixtureReport, path: Path | str) -> Path:
    """Writes the document, whole or not at all.

    >>> shares = np.random.default_rng(0).dirichlet([1, 1], size=8)
    >>> columns = {"web": shares[:, 0], "code": shares[:, 1]}
    >>> lessons = learn_mixtures(read_mixtures(columns, {"loss": 3 - shares[:, 1]}))
    >>> read_mixtures_document(write_mixtures(lessons.document, "mix.json")).runs
    8
    """
    text = json.dumps(document.as_json(), indent=2, ensure_ascii=False) + "\n"
    write_bytes(Path(path), text.encode())
    return Path(path)


def read_mixtures_document(path: Path | str) -> MixtureReport:
    """What `write_mixtures` or `taskmix mix --document` wrote; see `write_mixtures` for an example.

    >>> read_mixtures_document("ratios.csv")
    Traceback (most recent call last):
    taskmix.errors.InputError: `ratios.csv` should be a JSON file that `taskmix mix --document` wrote...
    """
    try:
        return from_plain(MixtureReport, json.loads(read_plain(Path(path))))
    except TypeError as error:
        found = f"another kind of file ({error})"
    except UnreadableError as error:
        found = error.found
    except FileNotFoundError:
        found = "no such file"
    except (ValueError, RecursionError):
        found = "something that is no JSON"
    raise InputError(
        f"`{path}` should be a JSON file that `taskmix mix --document` wrote. Found {found}. Check the "
        "path, or run the command again."
    )
