"""Models that write text: trained in a study, kept in a folder, asked again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from fleet_toys import RUN, changed

from taskmix.engine import Fleet, FolderSource, Optimization, execute, load_model, save_models
from taskmix.errors import OptionError
from taskmix.models import Transformer, choose_architecture
from taskmix.records import Study

SaveModel = Callable[..., str]
ROWS = [("big?", "yes"), ("small?", "no"), ("red?", "yes"), ("blue?", "no")]
TEXTS = ["once upon a time", "there was a letter é", "the end"]


def written_tasks(folder: Path) -> Path:
    """Answers, scored by their words, and texts."""
    for name in ("ask", "books"):
        (folder / name).mkdir(parents=True)
    answers = "".join(json.dumps({"prompt": ask, "answer": say}) + "\n" for ask, say in ROWS)
    texts = "".join(json.dumps({"text": text}) + "\n" for text in TEXTS)
    for split in ("train", "dev", "test"):
        (folder / "ask" / f"{split}.jsonl").write_text(answers)
        (folder / "books" / f"{split}.jsonl").write_text(texts)
    (folder / "ask" / "task.toml").write_text('metric = "exact_match+word_f1"\n')
    (folder / "books" / "task.toml").write_text('kind = "language"\n')
    return folder


def test_a_kept_model_writes_what_was_scored_in_training(
    save_language_model: SaveModel, tmp_path: Path
) -> None:
    path = save_language_model()
    source = FolderSource(path=str(written_tasks(tmp_path / "tasks")))
    run = changed(RUN, Transformer(path=path, max_length=24), source=source)
    run = replace(run, optimization=Optimization(learning_rate=0.01), steps=60, batch_size=4)
    study = Study(tmp_path / "study")
    execute(run, study)
    save_models(tmp_path / "model", [(run, ("ask", "books"))], study)
    shutil.rmtree(path)  # the model needs nothing from outside
    summary = study.run(run.specification()).summary()
    assert summary is not None
    recorded = {s.task: s.value for s in summary.scores if s.split == "test" and s.metric != "loss"}
    model = load_model(tmp_path / "model")
    answers = model.predict([{"prompt": ask} for ask, _ in ROWS], "ask")
    assert all(sorted(each) == ["answer", "log_probability"] for each in answers)
    assert all(each["log_probability"] <= 0 for each in answers)
    same = [each["answer"] == say for each, (_, say) in zip(answers, ROWS, strict=True)]
    from taskmix.tasks import WrittenText, evaluate_written

    text = WrittenText(
        rows=len(ROWS),
        right_rows=sum(same),
        answers=tuple((a["answer"], say) for a, (_, say) in zip(answers, ROWS, strict=True)),
    )
    assert sum(same) > 0, "some answer is right"
    assert recorded["ask"] == pytest.approx(evaluate_written("exact_match+word_f1", text))
    rows = tmp_path / "new.jsonl"
    rows.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    bits = [each["bits_per_byte"] for each in model.predict(rows, "books")]
    assert len(bits) == len(TEXTS)
    assert all(each > 0 for each in bits)
    # A text of more pieces than fit into a row is one text still.
    (long,) = model.predict([{"text": "once upon a time " * 4}], "books")
    assert long["bits_per_byte"] > bits[0], "what comes again and again was never trained on"


def test_runs_that_write_text_are_trained_where_a_fleet_is_asked_for(
    save_language_model: SaveModel, tmp_path: Path
) -> None:
    tasks = written_tasks(tmp_path / "tasks")
    (tasks / "ask" / "task.toml").write_text('metric = "word_f1"\n')  # of what is written
    architecture = Transformer(path=save_language_model(), tune="adapters", max_length=24)
    run = changed(RUN, architecture, source=FolderSource(path=str(tasks)), steps=3, batch_size=2)
    runs = [replace(run, seed=seed) for seed in range(2)]
    found = Fleet(workers=1).run(runs, Study(tmp_path / "fleet"))
    alone = execute(run, Study(tmp_path / "alone"))
    assert [each.outcome for each in found] == ["finished"] * 2
    assert found[0].summary is not None
    assert alone.summary is not None
    for ours, theirs in zip(found[0].summary.scores, alone.summary.scores, strict=True):
        assert ours.value == pytest.approx(theirs.value, abs=1e-4)


def test_a_model_without_a_vocabulary_to_write_in_is_refused(tmp_path: Path) -> None:
    tasks = FolderSource(path=str(written_tasks(tmp_path / "tasks"))).load()
    with pytest.raises(
        OptionError, match=r"Answers should be written by a pretrained .*no `model`"
    ):
        choose_architecture("auto", tasks)
    with pytest.raises(OptionError, match=r"a causal language model.* `ask` .*`convolution`"):
        choose_architecture("convolution", tasks)
