"""A driver that the fault tests kill, or whose workers: `python ray_driver.py STUDY` does all runs.

It prints a line of JSON with what became of each.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace

from taskmix.engine import DigitsSource, Ray, Run
from taskmix.models import Perceptron
from taskmix.policies import SizeProportional
from taskmix.records import Study

RUN = Run(
    label="killed",
    source=DigitsSource(),
    architecture=Perceptron(hidden=(16,), dropout=0.2),
    policy=SizeProportional(),
    steps=600,
    evaluate_every=200,
    checkpoint_every=50,
    seed=0,
)
RUNS = [replace(RUN, seed=seed, steps=RUN.steps if seed % 2 else 60) for seed in range(8)]


def main(study: str) -> None:
    results = Ray(workers=2).run(RUNS, Study(study))
    print(json.dumps([(result.outcome, result.error) for result in results]))  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1])
