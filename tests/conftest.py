"""Hypothesis looks at the same examples in every run, so that a change alone can break a test.

`HYPOTHESIS_PROFILE=explore` looks at new ones.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# A machine that is busy with something else is no fault of a test.
settings.register_profile(
    "steady", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))


@pytest.fixture(autouse=True, scope="session")
def _cache_of_the_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Vectors of pretrained encoders are kept for a user; those of tests for nobody."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TASKMIX_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield
