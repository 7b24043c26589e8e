"""Do shares fitted over the mixtures that were trained win, and does the adviser's answer gain by them?

    python benchmarks/fitted_mixtures.py FOLDER --old CHECKOUT --seeds 4 -- --budget 20000-steps

Under each seed this code and another checkout, which does not propose such shares, are asked with the
same budget. Then all mixtures of the race and both plans are trained at the length of its runs under
fresh seeds. Printed are the mean test scores, and, paired by seed, what the fitted shares gain over the
best other mixture by dev and what our plan gains over the other's.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from _advice_asking import Asked, ask, template
from _advice_training import FRESH, models_of, say, train
from taskmix.adviser import mean_comparable
from taskmix.engine import Run
from taskmix.mixtures import table_of_study
from taskmix.numerics import paired_interval
from taskmix.plans import Part, Plan, Shares

FITTED = "mixture"  # what the adviser calls the way


@dataclass(frozen=True, kw_only=True)
class Judge:
    """Trains plans under fresh seeds."""

    base: Run
    batches: int
    seeds: int
    study: Path
    targets: tuple[str, ...]  # whose scores count

    def scores(self, plans: Mapping[str, Plan]) -> dict[str, dict[str, list[float]]]:
        """Of each plan the mean score by split and seed."""
        tasks, fresh = self.base.load(), range(FRESH, FRESH + self.seeds)
        asked = {
            (name, self.batches, seed): models_of(plan, self.base, self.batches, seed)
            for name, plan in plans.items()
            for seed in fresh
        }
        found = train(asked, self.study, 1)
        return {
            name: {
                split: [
                    mean_comparable(tasks, found[name, self.batches, seed][split], self.targets)
                    for seed in fresh
                ]
                for split in ("dev", "test")
            }
            for name in plans
        }


def mixtures_of(asked: Asked, batches: int) -> dict[str, Plan]:
    """The mixtures of a race by their names: one model for all targets, a task a step."""
    table = table_of_study(asked.study)
    found = {}
    for run, shares in zip(table.runs, table.shares, strict=True):
        kept = {name: share for name, share in zip(table.domains, shares, strict=True) if share > 0}
        if len(kept) > 1:
            division = Shares(
                probabilities=tuple(np.array(list(kept.values())) / sum(kept.values()))
            )
            part = Part(tasks=tuple(kept), scored=tuple(kept), share=1.0, division=division)
            found[run.split(",")[0]] = Plan(name="mixture", parts=(part,))
    return found


def main() -> None:
    own, rest = list(sys.argv[1:]), list[str]()
    if "--" in own:
        place = own.index("--")
        own, rest = own[:place], own[place + 1 :]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--old", type=Path, required=True, help="a checkout without such shares")
    parser.add_argument("--seeds", type=int, default=4, help="of the adviser")
    parser.add_argument("--fresh", type=int, default=8, help="seeds that judge")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(own)
    with TemporaryDirectory() as temporary:
        out = options.out or Path(temporary)
        for seed in range(options.seeds):
            judge_seed(options.folder, [*rest, "--seed", str(seed)], options, out / str(seed))


def judge_seed(folder: str, words: Sequence[str], options: argparse.Namespace, out: Path) -> None:
    ours = ask(folder, out / "new", words)
    theirs = ask(folder, out / "old", words, code=options.old)
    batches = int(ours.advice["batches_of_a_run"])
    targets = tuple(name for name in ours.plan.targets if name in theirs.plan.targets)
    judge = Judge(
        base=template(folder, words),
        batches=batches,
        seeds=options.fresh,
        study=out / "fresh",
        targets=targets,
    )
    plans = {"our plan": ours.plan, "their plan": theirs.plan, **mixtures_of(ours, batches)}
    plans = {name: plan for name, plan in plans.items() if set(targets) <= set(plan.targets)}
    scores = judge.scores(plans)
    means = {name: float(np.mean(each["test"])) for name, each in scores.items()}
    shown = ", ".join(f"{name} {mean:.4f}" for name, mean in sorted(means.items()))
    print(f"{words[-1]}: chosen {ours.advice['chosen']} and {theirs.advice['chosen']}; {shown}")
    tell("  our plan minus theirs", scores["our plan"]["test"], scores["their plan"]["test"])
    others = [name for name in plans if name not in (FITTED, "our plan", "their plan")]
    if FITTED in scores:
        best = max(others, key=lambda name: float(np.mean(scores[name]["dev"])))
        tell(f"  fitted minus {best}", scores[FITTED]["test"], scores[best]["test"])
        tell("  fitted minus uniform", scores[FITTED]["test"], scores["uniform"]["test"])
    else:
        say("  no fitted mixture was proposed")


def tell(words: str, ours: Sequence[float], theirs: Sequence[float]) -> None:
    gain = paired_interval(ours, theirs, 0.9)
    print(f"{words}: {gain.mean:+.4f} ({gain.low:+.4f} to {gain.high:+.4f})", flush=True)


if __name__ == "__main__":
    main()
