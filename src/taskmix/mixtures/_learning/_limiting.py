"""Limits of the answer that come from the table: domains that were never varied stay as they were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from taskmix.errors import InputError
from taskmix.mixtures._optimum import MixtureLimits

SLACK = 1e-9


def hold_fixed(
    limits: MixtureLimits, fixed: Mapping[str, float], domains: Sequence[str]
) -> MixtureLimits:
    """The same limits with the shares of `fixed` held; refuses those that ask for another share."""
    if not fixed:
        return limits
    lowest = _by_domain(limits.at_least, domains)
    highest = _by_domain(limits.at_most, domains)
    for name, share in fixed.items():
        low, high = lowest.get(name, 0.0), highest.get(name, 1.0)
        if not low - SLACK <= share <= high + SLACK:
            raise InputError(
                f"Limits should leave `{name}` where all runs had it, as nothing is known of other "
                f"shares. Found {share:.4g} in every run, and limits from {low:g} to {high:g}. Train "
                "runs that vary it, or take the limit away."
            )
        lowest[name] = highest[name] = share
    return replace(limits, at_least=lowest, at_most=highest)


def _by_domain(given: float | Mapping[str, float], domains: Sequence[str]) -> dict[str, float]:
    return dict(given) if isinstance(given, Mapping) else dict.fromkeys(domains, float(given))
