"""GLUE: one encoder fine-tuned on eight tasks, the budget divided by one policy after another.

    Glover and Hokamp, "Task Selection Policies for Multitask Learning", 2019, section 4.2, Tables 1
    to 3: uniform, size-proportional, Exp3.S with prediction gain, and the counterfactual policy
    learned from the uniform runs' logs (Eqs. 10 to 16); here a tempered policy and single-task
    fine-tuning of the same encoder stand beside them.

The score of a task is that of the last evaluation on dev, as in the paper, not of the best one. Table 2
of the paper is of the test server, whose labels are secret: its single-task figures stand beside our
dev scores. WNLI is not trained on; it gets its majority class, as there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np

from papers.rows import PaperRow, row, single, task_rows
from papers.runner import Cache, Desk, Device, Flag, Precision
from taskmix.counterfactual import improve_policy, log_of_runs
from taskmix.engine import Executor, FolderSource, Optimization, Run, finish
from taskmix.models import Transformer
from taskmix.numerics import paired_interval
from taskmix.policies import (
    Exp3S,
    Fixed,
    HardProgress,
    PredictionGain,
    QuantileScaled,
    SizeProportional,
    Tempered,
    Uniform,
)
from taskmix.records import Study
from taskmix.tasks import Task, load_tasks

SETTINGS = Path(__file__).with_name("glue.toml")

# Table 1 of the paper: dev scores of BERT-base, the mean over 3 seeds, and Table 3: the policy.
PAPER = {
    "uniform": [79.1, 48.2, 82.9, 88.8, 88.2, 86.9, 73.4, 92.1, 72.1],
    "size": [74.9, 18.5, 83.6, 86.1, 77.4, 88.6, 77.2, 90.6, 76.6],
    "exp3s": [78.9, 49.2, 83.6, 87.6, 87.3, 83.7, 74.5, 91.8, 73.8],
    "counterfactual": [80.5, 50.1, 83.8, 90.0, 88.0, 87.0, 77.5, 92.0, 75.6],
}
PAPER_POLICY = [0.089, 0.255, 0.086, 0.134, 0.154, 0.086, 0.094, 0.102]
# Table 2: single-task fine-tuning of BERT-base on the test server; two metrics are averaged.
PAPER_SINGLE = {
    "cola": 52.1,
    "mnli": 84.6,
    "mrpc": 86.85,
    "qnli": 90.5,
    "qqp": 80.2,
    "rte": 66.4,
    "sst2": 93.5,
    "stsb": 86.1,
}
PAPER_WNLI = 65.1
TASKS = ("cola", "mnli", "mrpc", "qnli", "qqp", "rte", "sst2", "stsb")


@dataclass(frozen=True, kw_only=True)
class GlueOptions:
    """The paper's settings; smaller ones make a run of minutes."""

    QUICK: ClassVar[dict[str, Any]] = {"steps": 20, "max_length": 32, "seeds": 1, "single": False}
    ENGINE: ClassVar[str] = "here"
    data: Annotated[Path, Flag("The folder of cola/, mnli/, mrpc/, ... wnli/.", is_argument=True)]
    encoder: Annotated[str, Flag("A Hugging Face encoder's path or name.")] = "bert-base-uncased"
    steps: Annotated[int, Flag()] = 200_000
    batch_size: Annotated[int, Flag()] = 16
    learning_rate: Annotated[float, Flag()] = 2e-5
    max_length: Annotated[int, Flag()] = 256
    seeds: Annotated[int, Flag()] = 3
    single_epochs: Annotated[float, Flag()] = 3.0
    single: Annotated[bool, Flag("Fine-tune on each task alone as well.")] = True
    device: Device = "cpu"
    precision: Precision = "float32"
    evaluations: int = 5
    cache: Cache = None


def glue_runs(options: GlueOptions) -> dict[str, list[Run]]:
    """The runs whose policy is known beforehand, by name."""
    source = FolderSource(path=str(options.data), settings=SETTINGS, cache=options.cache)
    base = Run(
        label="uniform",
        source=source,
        architecture=Transformer(
            path=options.encoder, max_length=options.max_length, pooling="first"
        ),
        policy=Uniform(),
        reward=HardProgress(),
        optimization=Optimization(
            optimizer="adamw",
            learning_rate=options.learning_rate,
            weight_decay=0.01,
            schedule="linear",
            warmup=0.1,
        ),
        steps=options.steps,
        batch_size=options.batch_size,
        evaluate_every=max(options.steps // options.evaluations, 1),
        checkpoint_every=max(options.steps // options.evaluations, 1),
        clip_norm=1.0,
        precision=options.precision,
        device=options.device,
        seed=0,
    )
    kinds = {
        "uniform": base,
        "size": replace(base, label="size", policy=SizeProportional()),
        "tempered": replace(base, label="tempered", policy=Tempered(temperature=2.0)),
        "exp3s": replace(
            base, label="exp3s", policy=Exp3S(), reward=QuantileScaled(reward=PredictionGain())
        ),
    }
    runs = {
        name: [replace(run, seed=seed) for seed in range(options.seeds)]
        for name, run in kinds.items()
    }
    if options.single:
        sizes = {task.name: task.size for task in source.load()}
        alone = []
        for seed in range(options.seeds):
            for name, size in sizes.items():
                steps = max(int(options.single_epochs * size / options.batch_size), 1)
                alone.append(
                    replace(
                        base,
                        label="single",
                        tasks=(name,),
                        steps=steps,
                        evaluate_every=steps,
                        seed=seed,
                    )
                )
        runs["single"] = alone
    return runs


def learned_runs(
    study: Study, uniform: Sequence[Run], entropy: float | str, label: str
) -> tuple[list[Run], list[float]]:
    """Runs of the counterfactual policy that the uniform runs' logs teach, and its probabilities."""
    log = log_of_runs([study.run(run.specification()) for run in uniform])
    improved = improve_policy(log, entropy=entropy, division="entropy")
    shares = [float(share) for share in improved.probabilities]
    return [replace(run, label=label, policy=Fixed(shares)) for run in uniform], shares


def run(options: GlueOptions, desk: Desk) -> list[PaperRow]:
    """Eight GLUE tasks on one encoder: uniform, size, tempered, Exp3.S and counterfactual policies.

    Defaults are the paper's. Stop it and run it again: finished runs are not repeated.

    Example: python -m papers glue glue/ --encoder minilm/ --steps 4000 --batch-size 32 --device cuda
    """
    with desk.working() as (study, executor):
        return reproduce_glue(options, study, executor)


def reproduce_glue(options: GlueOptions, study: Study, executor: Executor) -> list[PaperRow]:
    """Tables 1 and 3; runs that the study holds already cost nothing."""
    runs = glue_runs(options)
    # The long ones first, so that no core waits for one of them at the end.
    finish(
        executor, sorted((r for some in runs.values() for r in some), key=lambda r: -r.steps), study
    )
    policies = {}
    for label, entropy in (("counterfactual", "auto"), ("counterfactual_paper", 0.15)):
        runs[label], policies[label] = learned_runs(study, runs["uniform"], entropy, label)
    finish(executor, [run for label in policies for run in runs[label]], study)
    scores = {label: final_scores(study, some, options.seeds) for label, some in runs.items()}
    rows = glue_rows(scores, policies, options.seeds)
    if (options.data / "wnli").is_dir():
        share = majority_score(load_tasks(options.data / "wnli")[0])
        rows.append(row("glue/majority/wnli", PAPER_WNLI, single(share)))
    return rows


def majority_score(task: Task) -> float:
    """The accuracy in percent on dev of the class that most rows to train on have."""
    classes = np.bincount(task.splits["train"].targets)
    return float(100.0 * (task.splits["dev"].targets == classes.argmax()).mean())


def final_scores(study: Study, runs: Sequence[Run], seeds: int) -> np.ndarray[Any, Any]:
    """[seed, task], the dev scores of the last evaluation."""
    found = np.full((seeds, len(TASKS)), np.nan)
    for run in runs:
        table = study.run(run.specification()).scores()
        last = max(table["step"].to_pylist())
        for line in table.to_pylist():
            if line["step"] == last and line["split"] == "dev" and line["metric"] != "loss":
                found[run.seed, TASKS.index(line["task"])] = 100.0 * line["value"]
    return found


def glue_rows(
    scores: dict[str, np.ndarray[Any, Any]], policies: dict[str, list[float]], seeds: int
) -> list[PaperRow]:
    """The tables as rows, the paper's figures beside ours."""
    rows: list[PaperRow] = []
    for label, table in scores.items():
        paper = PAPER.get(label.removesuffix("_paper"), [None] * 9)
        if label == "single":
            alone = [PAPER_SINGLE[task] for task in TASKS]
            paper = [round(sum(alone) / len(alone), 1), *alone]
        rows += task_rows(f"glue/{label}", table, TASKS, paper)
    uniform = scores["uniform"].mean(axis=1)
    for label, table in scores.items():
        if label != "uniform":
            theirs = PAPER.get(label.removesuffix("_paper"), [None])[0]
            paper_gain = None if theirs is None else round(theirs - PAPER["uniform"][0], 1)
            gain = paired_interval(table.mean(axis=1), uniform)
            rows.append(row(f"glue/{label}/minus_uniform", paper_gain, gain))
    for label, shares in policies.items():
        for place, task in enumerate(TASKS):
            quantity, share = f"glue/policy/{label}/{task}", shares[place]
            rows.append(PaperRow(quantity, PAPER_POLICY[place], share, None, None, seeds))
    return rows
