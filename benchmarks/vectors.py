"""Are heads on vectors as good as logistic regression on the same vectors?

Asks for advice on a folder of texts with a pretrained encoder, and sets the test scores of the plan,
mean over its seeds, beside those of scikit-learn's logistic regression: on the same rows and the same
vectors, task by task, with the penalty that does best on the task's dev rows. Tasks other than
classification are left out of the comparison.

    python benchmarks/vectors.py FOLDER --model MODEL [--budget 2m] [--out DIR] [--json]
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

import taskmix
from taskmix.tasks import MISSING, EncodedTask, evaluate_outputs

PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)  # scikit-learn's C, for vectors of mean square 1


def regression_score(task: EncodedTask) -> float:
    """Of the logistic regression, on test."""
    splits: dict[str, Any] = {}
    for name, split in task.splits.items():
        inputs: Any = split.inputs
        known = (split.targets != MISSING).numpy()
        splits[name] = inputs.values.float().numpy()[known], split.targets.numpy()[known]

    def score(model: LogisticRegression, name: str) -> float:
        rows, targets = splits[name]
        outputs = np.full((len(rows), len(task.labels)), -1e9)
        outputs[:, model.classes_] = model.predict_log_proba(rows)
        return float(
            evaluate_outputs(task.metric, outputs=outputs, targets=targets, labels=task.labels)
        )

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one that has not converged is scored as it is
        models = [
            LogisticRegression(C=penalty, max_iter=500).fit(*splits["train"])
            for penalty in PENALTIES
        ]
    return score(max(models, key=lambda model: score(model, "dev")), "test")


def compare(given: argparse.Namespace, out: Path) -> dict[str, Any]:
    begin = time.monotonic()
    advised = taskmix.advise(
        given.folder,
        model=given.model,
        tune="heads",
        budget=given.budget,
        max_length=given.max_length,
        workers=given.workers,
        out=out,
        quiet=given.json,
    )
    seconds = time.monotonic() - begin
    entries = advised.advice.entries[advised.document.chosen]
    run = entries[0].runs[0]
    encoded = run.architecture.encoding.encode(advised.advice.tasks)
    rows = {}
    scored = set.intersection(*(set(entry.test) for entry in entries))  # a plan may leave tasks out
    for task in encoded:
        if task.name in scored and task.kind == "classification":
            ours = float(np.mean([entry.test[task.name] for entry in entries]))
            rows[task.name] = {
                "train_rows": task.size,
                "heads": ours,
                "logistic_regression": regression_score(task),
            }
    means = {
        name: float(np.mean([row[name] for row in rows.values()]))
        for name in ("heads", "logistic_regression")
    }
    return {
        "folder": Path(given.folder).name,
        "budget": given.budget,
        "seconds": seconds,
        "chosen": advised.document.chosen,
        "seeds": len(entries),
        "left_out": [name for name in encoded.names if name not in scored],
        "notes": [note for note in advised.document.notes if "encoder" in note],
        "tasks": rows,
        "means": means,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--model", required=True)
    parser.add_argument("--budget", default="2m")
    parser.add_argument("--max-length", type=int)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = compare(given, given.out or Path(folder) / "study")
    if given.json:
        print(json.dumps(found, indent=2))
        return
    for note in found["notes"]:
        print(note)
    print(f"{'task':24} {'rows':>6} {'heads':>8} {'logistic':>8}")
    for name, row in [*found["tasks"].items(), ("mean", {"train_rows": "", **found["means"]})]:
        print(
            f"{name:24} {row['train_rows']:>6} {row['heads']:8.4f} "
            f"{row['logistic_regression']:8.4f}"
        )
    print(f"{found['chosen']}, {found['seeds']} seeds, {found['seconds']:.0f} s.")


if __name__ == "__main__":
    main()
