"""What is written of a mixture as JSON: its figures, and where the rest of it lies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from taskmix.sequences._comparing import HeldOutFigures


@dataclass(frozen=True)
class MixtureDocument:
    """`summary.json` of a mixture's folder, which `taskmix sequences --json` prints.

    >>> document = MixtureDocument(
    ...     generators=1, bound=-9.5, iterations=3, alpha=(0.5,), theta={"a": (1.0,)}, rows=(),
    ...     name="0123456789abcdef", command="", model="model.safetensors", page=None)
    >>> MixtureDocument.read(document.written()) == document
    True
    """

    generators: int
    bound: float  # the evidence lower bound with the log-priors of the generators
    iterations: int
    alpha: tuple[float, ...]  # [generator]
    theta: Mapping[str, tuple[float, ...]]  # of each task, its shares of the generators
    rows: tuple[HeldOutFigures, ...]  # none where nothing was compared
    name: str  # of what determines the mixture: a hash
    command: str
    model: str  # the file of the mixture
    page: str | None  # the file of the page, where there is one
    kind: str = ""  # of generators, with their options
    own: bool = False  # whether tasks have something of their own
    tried: tuple[Mapping[str, object], ...] = ()  # what the choice was from, `TriedMixture.to_json`

    def to_json(self) -> dict[str, object]:
        """The document as it is written and printed, in this order of its names."""
        return {
            "generators": self.generators,
            "bound": self.bound,
            "iterations": self.iterations,
            "alpha": list(self.alpha),
            "theta": {task: list(shares) for task, shares in self.theta.items()},
            "rows": [row.to_json() for row in self.rows],
            "name": self.name,
            "command": self.command,
            "model": self.model,
            "page": self.page,
            "kind": self.kind,
            "own": self.own,
            "tried": [dict(each) for each in self.tried],
        }

    def written(self) -> bytes:
        """The file."""
        text = json.dumps(self.to_json(), indent=2, ensure_ascii=False)
        return text.encode("utf-8", "replace")

    @classmethod
    def read(cls, data: bytes) -> Self:
        """The document of a file; a LookupError, TypeError or ValueError where it is no such file."""
        found: dict[str, Any] = json.loads(data)
        return cls(
            generators=int(found["generators"]),
            bound=float(found["bound"]),
            iterations=int(found["iterations"]),
            alpha=tuple(float(each) for each in found["alpha"]),
            theta={
                task: tuple(float(each) for each in shares)
                for task, shares in dict(found["theta"]).items()
            },
            rows=tuple(HeldOutFigures.from_json(row) for row in found["rows"]),
            name=str(found["name"]),
            command=str(found["command"]),
            model=str(found["model"]),
            page=None if found["page"] is None else str(found["page"]),
            kind=str(found["kind"]),
            own=bool(found["own"]),
            tried=tuple(dict(each) for each in found["tried"]),
        )
