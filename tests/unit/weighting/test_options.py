"""Options that a method cannot have are refused in words."""

from __future__ import annotations

from typing import Any

import pytest

from taskmix import weighting
from taskmix.errors import OptionError

BAD: list[tuple[str, dict[str, Any]]] = [
    ("AlignedMTL", {"scale": "max"}),
    ("BanditMTL", {"radius": 0.0}),
    ("BanditMTL", {"step_size": -1.0}),
    ("BanditMTL", {"large_losses": "cut"}),
    ("BanditMTL", {"smoothing": 1.0}),
    ("CAGrad", {"closeness": -0.1}),
    ("DBMTL", {"memory": 1.0}),
    ("DynamicWeightAverage", {"temperature": 0.0}),
    ("DynamicWeightAverage", {"steps_per_epoch": 0}),
    ("ExcessMTL", {"warm_up": 0}),
    ("FAMO", {"decay": -1.0}),
    ("FairGrad", {"alpha": 0.0}),
    ("FixedWeights", {"weights": (0.0, 0.0)}),
    ("GradNorm", {"step_size": 0.0}),
    ("GradVac", {"rate": 2.0}),
    ("GroupDRO", {"step_size": 0.0}),
    ("IMTLL", {"step_size": -1.0}),
    ("MGDA", {"normalization": "norm"}),
    ("MGDAUB", {"normalization": "norm"}),
    ("SmoothTchebycheff", {"smoothness": 0.0}),
    ("Tchebycheff", {"weights": (1.0, 0.0)}),
    ("Uncertainty", {"forms": "ranking"}),
    ("Uncertainty", {"step_size": 0.0}),
]


@pytest.mark.parametrize(("method", "options"), BAD)
def test_an_option_that_cannot_be_is_refused(method: str, options: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match="should"):
        getattr(weighting, method)(**options)
