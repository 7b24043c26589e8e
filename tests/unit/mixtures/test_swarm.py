"""A swarm: each member its own mixture, scored on every domain, gone on with where it was stopped."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from swarm_toys import domains, tiny

from taskmix.engine import Fleet
from taskmix.mixtures import train_swarm
from taskmix.records import Study

CORNERS = np.array(
    [[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0], [0.5, 0.5, 0], [0.2, 0.3, 0.5], [1, 0, 0]]
)


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def test_a_member_is_scored_on_domains_that_it_was_never_trained_on(tmp_path: Path) -> None:
    study = Study(tmp_path / "study")
    swarm = train_swarm(domains(), tiny(), study, executor=Fleet(workers=1), mixtures=CORNERS)
    values = swarm.table.values
    assert np.isfinite(values).all()
    np.testing.assert_array_equal(swarm.table.shares, CORNERS)
    for place in range(3):  # each knows the letters of its own domain best
        assert values[place].argmin() == place
        assert values[place, place] < values[:3, place].mean() - 1
