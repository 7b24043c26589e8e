from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from papers.glue import GlueOptions, reproduce_glue
from taskmix.engine import Here
from taskmix.records import Study

PAIRS = ("mnli", "mrpc", "qnli", "qqp", "rte", "stsb", "wnli")
WORDS = ("good", "bad", "one", "two", "three", "the")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Nine folders like GLUE's, with a few rows of six words."""
    generator = np.random.default_rng(0)
    for name in ("cola", "sst2", *PAIRS):
        (tmp_path / "glue" / name).mkdir(parents=True)
        for split in ("train", "dev"):
            lines = []
            for _ in range(24 if split == "train" else 12):
                label = int(generator.integers(3 if name == "mnli" else 2))
                words = [WORDS[label], *generator.choice(WORDS, 3)]
                row: dict[str, object] = {"text": " ".join(words), "label": label}
                if name in PAIRS:
                    row["text2"] = WORDS[label]
                if name == "stsb":
                    row["label"] = label + 0.5 * float(generator.random())
                lines.append(json.dumps(row))
            (tmp_path / "glue" / name / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path / "glue"


def test_all_policies_run_and_stand_beside_the_papers_figures(
    data: Path, encoder: Path, tmp_path: Path
) -> None:
    options = GlueOptions(
        data=data,
        encoder=str(encoder),
        steps=150,
        batch_size=2,
        learning_rate=1e-3,
        max_length=16,
        seeds=2,
        single_epochs=1.0,
    )
    study = Study(tmp_path / "study")
    executor = Here(workers=1)
    rows = {row.quantity: row for row in reproduce_glue(options, study, executor)}
    assert rows["glue/uniform/average"].paper == 79.1
    assert rows["glue/single/cola"].paper == 52.1
    assert rows["glue/majority/wnli"].paper == 65.1
    for label in ("uniform", "size", "tempered", "exp3s", "counterfactual", "single"):
        tasks = [row.ours for name, row in rows.items() if name.startswith(f"glue/{label}/")]
        assert len(tasks) == (9 if label == "uniform" else 10)  # the others minus uniform as well
    shares = [
        row.ours for name, row in rows.items() if name.startswith("glue/policy/counterfactual/")
    ]
    assert sum(shares) == pytest.approx(1)
    before = {folder.name for folder in study.runs()}
    again = {row.quantity: row for row in reproduce_glue(options, study, executor)}
    assert again == rows, "finished runs are not repeated, and the figures are the records'"
    assert {folder.name for folder in study.runs()} == before
