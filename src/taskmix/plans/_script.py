"""The final run of a plan as a script, and what of a run a promise holds for.

Sources, architectures and optimisers are frozen dataclasses, so the Python that makes one is its class
with the options that are not the default. What is no such thing (a module of one's own, tasks in
memory) has no words, and then there is no script.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass, replace
from pathlib import Path, PurePath
from typing import Any

import taskmix.engine as engine
import taskmix.models as models
import taskmix.tasks as encodings
from taskmix.engine import FolderSource, Run, from_spec
from taskmix.errors import InputError
from taskmix.models import tuning_of
from taskmix.plans._plan import Plan
from taskmix.policies import HardProgress
from taskmix.records import describe

# Of a run, in the order of the script; seeds, tasks and the division come from the plan.
_OPTIONS = (
    "source",
    "architecture",
    "optimization",
    "reward",
    "steps",
    "batch_size",
    "evaluate_every",
    "checkpoint_every",
    "clip_norm",
    "precision",
)
_DEFAULTS = {each.name: each for each in fields(Run)}


def settings_of(run: Run) -> dict[str, Any]:
    """What two trainings by one plan should have in common for their scores to be compared.

    >>> from taskmix.engine import DigitsSource, Run
    >>> from taskmix.models import Perceptron
    >>> run = Run(label="", source=DigitsSource(), architecture=Perceptron(), steps=9, seed=0)
    >>> settings_of(run)["optimization"]["learning_rate"]
    0.001
    """
    return {
        "tuning": tuning_of(run.architecture),
        "architecture": describe(run.architecture),
        "optimization": describe(run.optimization),
        "clip_norm": run.clip_norm,
    }


def promised_run(plan: Plan) -> Run | None:
    """The template for which a plan promises its scores, on the tasks of `FOLDER`; None without one.

    Of what a plan says, which may be a stranger's, only options of ours count, with values they take.

    >>> from taskmix.plans import Part, Plan, Shares
    >>> part = Part(tasks=("a",), scored=("a",), share=1.0, division=Shares.equal(1))
    >>> promised_run(Plan(parts=(part,), evidence={"settings": "rm -r ."})) is None
    True
    """
    settings, length = plan.evidence.get("settings"), plan.length
    if length is None or not isinstance(settings, Mapping):
        return None
    tenth = max(length.batches // 10, 1)  # as `taskmix train` has it
    try:
        architecture = from_spec(settings["architecture"], models, encodings)
        if getattr(architecture, "vectors", None) is not None:  # JSON has no paths
            architecture = replace(architecture, vectors=Path(architecture.vectors))
        return Run(
            label="plan",
            source=FolderSource(path="FOLDER"),
            architecture=architecture,
            optimization=from_spec(settings["optimization"], engine),
            reward=HardProgress(),
            steps=length.batches,
            batch_size=length.batch_size,
            evaluate_every=tenth,
            checkpoint_every=tenth,
            clip_norm=settings.get("clip_norm"),
            seed=0,
        )
    except (InputError, LookupError, TypeError, AttributeError):
        return None


def training_script(
    run: Run,  # the template of the plan's runs, with the steps of the whole plan
    *,
    plan: Path | str,
    study: Path | str = "study",
    seeds: Sequence[int] = (0,),
) -> str | None:
    """A script that trains by a plan with the settings of a run; None where they have no words.

    >>> from taskmix.engine import DigitsSource, Run
    >>> from taskmix.models import Perceptron
    >>> run = Run(label="", source=DigitsSource(), architecture=Perceptron(), steps=9, seed=0)
    >>> print(training_script(run, plan="plan.json").splitlines()[-2].strip())
    for done in Here().run(Plan.load('plan.json').runs(run, seeds=[0]), study):
    """
    names = {("taskmix.engine", name) for name in ("Here", "Run", "choose_device", "open_study")}
    names.add(("taskmix.plans", "Plan"))
    options = []
    for name in _OPTIONS:
        value = getattr(run, name)
        if not _is_default(_DEFAULTS[name], value):
            words = _expression(value, names)
            if words is None:
                return None
            options.append(f"        {name}={words},")
    paths = any("Path(" in line for line in options)
    loads = f"Plan.load({str(plan)!r}).runs(run, seeds={list(seeds)})"
    modules = sorted({module for module, _ in names})
    lines = [
        *(["from pathlib import Path", ""] if paths else []),
        *(
            f"from {module} import {', '.join(sorted(n for m, n in names if m == module))}"
            for module in modules
        ),
        "",
        'if __name__ == "__main__":',
        "    run = Run(",
        '        label="plan",',
        *options,
        '        device=choose_device("auto"),',
        f"        seed={seeds[0]},",
        "    )",
        f"    study = open_study({str(study)!r}, run.load(), run.source)",
        f"    for done in Here().run({loads}, study):",
        "        print(done.outcome, *(done.summary.scores if done.summary else [done.error]))",
    ]
    return "\n".join(lines)


def _expression(value: object, names: set[tuple[str, str]]) -> str | None:
    """The Python that makes a value, and in `names` what it has to import; None where there is none."""
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    if isinstance(value, PurePath):
        return f"Path({str(value)!r})"
    if isinstance(value, tuple):
        parts = [_expression(each, names) for each in value]
        if any(part is None for part in parts):
            return None
        return f"({', '.join(map(str, parts))}{',' if len(parts) == 1 else ''})"
    kind = type(value)
    module = ".".join(kind.__module__.split(".")[:2])
    if not is_dataclass(value) or not module.startswith("taskmix."):
        return None
    if kind.__name__ not in getattr(importlib.import_module(module), "__all__", ()):
        return None
    names.add((module, kind.__name__))
    options = []
    for each in fields(value):
        given = getattr(value, each.name)
        if not each.init or each.name.startswith("_") or _is_default(each, given):
            continue
        words = _expression(given, names)
        if words is None:
            return None
        options.append(f"{each.name}={words}")
    return f"{kind.__name__}({', '.join(options)})"


def _is_default(place: Any, value: object) -> bool:
    if place.default is not MISSING:
        return bool(place.default == value)
    return place.default_factory is not MISSING and bool(place.default_factory() == value)
