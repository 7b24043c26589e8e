"""Which domain a metric measures, by its name: `loss/python` and `python_bpb` both measure python."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from taskmix.errors import InputError


def measured_domains(
    metrics: Sequence[str], domains: Sequence[str], given: Mapping[str, str] | None = None
) -> tuple[str | None, ...]:
    """[metric], the domain whose name it bears, the longest if there are several; None for no domain."""
    given = given or {}
    unknown = sorted(set(given) - set(metrics))
    if unknown:
        raise InputError(
            f"`measured` should name metrics of the table. Found {unknown[0]!r}; the metrics are "
            f"{', '.join(map(repr, metrics))}. Correct the name."
        )
    longest = sorted(domains, key=len, reverse=True)
    return tuple(
        given.get(metric) or next((name for name in longest if _bears(metric, name)), None)
        for metric in metrics
    )


def _bears(metric: str, domain: str) -> bool:
    apart = r"(?<![^\W_]){}(?![^\W_])"  # not inside a longer word
    return re.search(apart.format(re.escape(domain)), metric, re.IGNORECASE) is not None
