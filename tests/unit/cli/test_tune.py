"""`--tune` on a pretrained encoder of one small layer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from taskmix.records import Study

from .conftest import save_encoder
from .running import Program

WORDS = ("good", "fine", "bad", "awful", "film", "book", "the", "a")


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    transformers = pytest.importorskip("transformers", reason="the extra `text` is not installed")
    tokenizers = pytest.importorskip("tokenizers", reason="the extra `text` is not installed")
    pieces = {piece: place for place, piece in enumerate(["[PAD]", "[UNK]", *WORDS])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(pieces, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    folder = tmp_path_factory.mktemp("encoder")
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]"
    ).save_pretrained(folder)
    return save_encoder(folder, len(pieces))


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tasks")
    for task, thing in (("films", "film"), ("books", "book")):
        (folder / task).mkdir()
        for split in ("train", "dev", "test"):
            rows = [
                json.dumps({"text": f"{article} {word} {thing}", "label": label})
                for article in ("the", "a")
                for word, label in zip(WORDS[:4], ("yes", "yes", "no", "no"), strict=True)
            ]
            (folder / task / f"{split}.jsonl").write_text("\n".join(rows * 3) + "\n")
    return folder


@pytest.mark.parametrize(
    ("tune", "architecture", "rate"),
    [
        ("heads", "Perceptron", 1e-3),
        ("adapters", "Transformer", 5e-4),
        ("all", "Transformer", 2e-5),
    ],
)
def test_training_tunes_what_was_asked_for_at_its_usual_rate_and_says_so(
    encoder: Path,
    texts: Path,
    tmp_path: Path,
    tune: str,
    architecture: str,
    rate: float,
    cli: Program,
) -> None:
    words = (
        "train",
        texts,
        "--model",
        encoder,
        *["--device", "cpu", "--steps", "4", "--out"],
        tmp_path / "s",
    )
    assert f"Tuning: {tune}, " in cli.out(*words, "--tune", tune)
    (run,) = Study(tmp_path / "s").runs()
    summary = run.summary()
    assert summary is not None
    specification = summary.specification
    assert architecture in json.dumps(specification["architecture"])
    assert specification["optimization"]["learning_rate"] == rate


def test_heads_are_the_default_on_a_cpu_and_learn(
    encoder: Path, texts: Path, tmp_path: Path, cli: Program
) -> None:
    words = ("train", texts, "--model", encoder, "--device", "cpu", "--steps", "200", "--json")
    found = cli.json(*words, "--out", tmp_path / "s")
    means = {row["split"]: row["value"] for row in found["rows"] if row["task"] is None}
    assert means["test"] > 0.95


def test_a_plan_that_merges_models_is_carried_out_kept_and_answers(
    encoder: Path, texts: Path, tmp_path: Path, cli: Program
) -> None:
    plan = {
        "version": 2,
        "merge": {"kind": "Merge", "method": {"kind": "TaskArithmetic", "scales": [0.5, 1.0]}},
        "parts": [{"tasks": [name], "share": 0.5, "shares": [1.0]} for name in ("films", "books")],
    }
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    out, kept = tmp_path / "s", tmp_path / "model"
    words = ("train", texts, "--model", encoder, "--device", "cpu", "--steps", "80", "--out", out)
    words += ("--plan", tmp_path / "plan.json", "--keep", kept, "--workers", "1")
    assert cli(*words) == 0
    shown = cli.said()
    assert "Note: 2 models merged by TaskArithmetic at a scale of" in shown.err
    labels = sorted(summary.label for summary in Study(out).summaries())
    assert labels == ["plan", "single", "single"]
    assert json.loads((kept / "model.json").read_text())["models"][0]["answers"] == [
        "books",
        "films",
    ]
    rows = texts / "films" / "test.jsonl"
    assert cli("predict", kept, rows, "--task", "films") == 0


def test_ways_are_run_on_frozen_features_first_and_on_adapters_where_they_may_be_the_best(
    encoder: Path, texts: Path, tmp_path: Path, cli: Program
) -> None:
    words = ("advise", texts, "--model", encoder, "--device", "cpu", "--workers", "1")
    asked = ("--tune", "adapters", "--budget", "240-steps", "--steps", "12", "--max-length", "8")
    out = tmp_path / "study"
    assert cli(*words, *asked, "--out", out) == 0
    document = json.loads((out / "advice.json").read_text())
    assert document["rung"] == "frozen features"
    trained = {summary.specification["architecture"]["kind"] for summary in Study(out).summaries()}
    assert trained == {"Perceptron", "Transformer"}
    on_model = [row for row in document["candidates"] if row["seeds"]]
    assert document["chosen"] in {row["name"] for row in on_model}
    assert document["plan"]["tasks"] == ["books", "films"]
