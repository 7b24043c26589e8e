"""The written form of an exported plan, whichever trainers are installed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from taskmix.errors import InputError
from taskmix.plans import (
    TARGETS,
    Length,
    Part,
    Plan,
    Shares,
    Stage,
    Stages,
    Weighted,
    export_plan,
)
from taskmix.weighting import Equal

THIRDS = Shares(probabilities=(0.25, 0.75))
STAGES = Stages(
    stages=(
        Stage(begin=0, probabilities=(0.5, 0.5)),
        Stage(begin=0.5, probabilities=(0.1, 0.9)),
    )
)
WORDS = tuple(TARGETS)


def one_model(division: Shares | Stages | Weighted = THIRDS, **more: object) -> Plan:
    part = Part(tasks=("a", "b"), scored=("a", "b"), share=1.0, division=division)
    return Plan(parts=(part,), length=Length(batches=100, batch_size=8), **more)  # type: ignore[arg-type]


def read_yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Prompts and answers of two tasks, 40 rows and 100, and token files of the same names."""
    folder = tmp_path / "data"
    for name, rows in (("a", 40), ("b", 100)):
        (folder / name).mkdir(parents=True)
        lines = [json.dumps({"prompt": f"{name}{n}", "completion": str(n)}) for n in range(rows)]
        (folder / name / "train.jsonl").write_text("\n".join(lines) + "\n")
        (folder / f"{name}_text_document.idx").touch()
    return folder


@pytest.mark.parametrize("word", WORDS)
def test_every_trainer_is_told_the_files_and_says_where_its_format_is_described(
    word: str, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    done = export_plan(one_model(), word, out, data=data)
    assert (out / "README.md").read_text().startswith("# Written by `taskmix plan export`")
    assert TARGETS[word].documentation.startswith("https://")
    everything = "".join(path.read_text() for path in done.files)
    named = "a_text_document" if TARGETS[word].tokens else "a/train.jsonl"
    assert str(data / named) in everything
    assert "REPLACE-ME" not in everything
    assert not any("Nobody said" in note for note in done.notes)


@pytest.mark.parametrize("word", [word for word in WORDS if word != "axolotl"])
def test_without_files_placeholders_stand_for_them_and_are_spoken_of(
    word: str, tmp_path: Path
) -> None:
    done = export_plan(one_model(), word, tmp_path / "out")
    assert any("REPLACE-ME" in path.read_text() for path in done.files if path.stem != "README")
    assert "a, b" in done.notes[0]


def test_shares_are_numbers_that_sum_to_one(tmp_path: Path) -> None:
    small = Shares(probabilities=(0.00001, 0.9999903))  # as a plan may be off by a millionth
    done = export_plan(one_model(small), "trl", tmp_path / "mixture.yaml")
    found = [each["fraction"] for each in read_yaml(done.files[0])["datasets"]]
    assert found[0] == pytest.approx(0.00001, rel=1e-5)
    assert sum(found) == pytest.approx(1, abs=1e-15)


def test_axolotl_lists_as_many_rows_of_each_task_as_the_plan_draws(
    data: Path, tmp_path: Path
) -> None:
    done = export_plan(one_model(), "axolotl", tmp_path / "mixture.yaml", data=data)
    found = read_yaml(done.files[0])
    # 100 batches of 8 rows are 800: 200 of a, which has 40, and 600 of b, which has 100. The largest
    # mixture that repeats nothing has 100 / 0.75 = 133 rows, so there are 6 epochs of 133: 33 and 100.
    assert found["num_epochs"] == 6
    splits = [(Path(each["path"]).parent.name, each["split"]) for each in found["datasets"]]
    assert splits == [("a", "train[:33]"), ("b", "train")]


def test_axolotl_needs_to_know_how_many_rows_there_are(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no weights.*`a`.*--data"):
        export_plan(one_model(), "axolotl", tmp_path / "mixture.yaml")


@pytest.mark.parametrize("word", [word for word in WORDS if word != "levanter"])
def test_stages_are_a_file_each_where_a_trainer_cannot_be_told_of_them(
    word: str, data: Path, tmp_path: Path
) -> None:
    done = export_plan(one_model(STAGES), word, tmp_path / "out", data=data)
    names = " ".join(str(path.relative_to(tmp_path)) for path in done.files)
    assert "stage-1" in names
    assert "stage-2" in names
    assert any("one after the other" in note for note in done.notes)


def test_levanter_has_the_stages_in_one_file_at_steps_that_begin_a_block(tmp_path: Path) -> None:
    done = export_plan(one_model(STAGES), "levanter", tmp_path / "mixture.yaml", steps=101)
    found = read_yaml(done.files[0])["data"]
    block = found["mixture_block_size"]
    steps = [step for step, _ in found["train_weights"]]
    assert steps[0] == 0
    assert steps[1] * 8 % block == 0
    assert abs(steps[1] - 50) <= 3


@pytest.mark.parametrize("word", [word for word in WORDS if word != "axolotl"])
@pytest.mark.parametrize(
    "names", [("a b", "a_b"), ("A", "a"), ("x" * 3000, "x" * 2999), ("no",)], ids=len
)
def test_tasks_of_odd_and_of_like_names_have_a_placeholder_each(
    word: str, names: tuple[str, ...], tmp_path: Path
) -> None:
    part = Part(tasks=names, scored=names, share=1.0, division=Shares.equal(len(names)))
    done = export_plan(Plan(parts=(part,)), word, tmp_path / "out")
    (file, *_) = [path for path in done.files if path.stem in ("mixture", "blend")]
    found = re.findall(r"REPLACE-ME/([\w.-]+)", "".join(path.read_text() for path in done.files))
    places = {each for each in found if each.endswith((".jsonl", "_text_document"))}
    assert len({each.lower() for each in places}) == len(names)
    assert max(map(len, places)) < 100
    if file.suffix == ".yaml":
        assert isinstance(read_yaml(file).get("dataset", ""), str)


def test_levanter_wants_a_length_where_shares_change(tmp_path: Path) -> None:
    part = Part(tasks=("a", "b"), scored=("a", "b"), share=1.0, division=STAGES)
    with pytest.raises(InputError, match=r"--steps.*--batch-size"):
        export_plan(Plan(parts=(part,)), "levanter", tmp_path / "mixture.yaml")


def test_every_model_of_a_plan_gets_files_of_its_own(data: Path, tmp_path: Path) -> None:
    parts = tuple(
        Part(tasks=(name,), scored=(name,), share=share, division=Shares.equal(1))
        for name, share in (("a", 0.25), ("b", 0.75))
    )
    plan = Plan(parts=parts, length=Length(batches=100, batch_size=8))
    for word in WORDS:
        done = export_plan(plan, word, tmp_path / word, data=data)
        names = " ".join(str(path.relative_to(tmp_path)) for path in done.files)
        assert "model-1" in names
        assert "model-2" in names
    text = (tmp_path / "trl" / "mixture-model-2.yaml").read_text()
    assert "max_steps: 75" in text


def test_losses_that_are_weighted_are_no_shares(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"weighted by Equal.*taskmix train --plan"):
        export_plan(one_model(Weighted(method=Equal())), "trl", tmp_path / "mixture.yaml")
    alone = Part(tasks=("a",), scored=("a",), share=1.0, division=Weighted(method=Equal()))
    assert export_plan(Plan(parts=(alone,)), "trl", tmp_path / "alone.yaml").files


def test_a_file_that_is_not_ours_is_left_as_it_is(tmp_path: Path) -> None:
    mine = tmp_path / "mixture.yaml"
    mine.write_text("datasets: [my own]\n")
    with pytest.raises(InputError, match="another file"):
        export_plan(one_model(), "trl", mine)
    assert mine.read_text() == "datasets: [my own]\n"
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "dataset_info.json").write_text("{}")
    with pytest.raises(InputError, match="other files"):
        export_plan(one_model(), "llamafactory", folder)
    assert (folder / "dataset_info.json").read_text() == "{}"


@pytest.mark.parametrize("word", ["trl", "llamafactory"])
def test_an_export_is_written_again_over_its_own_files_only(word: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    export_plan(one_model(), word, out)
    export_plan(one_model(), word, out)  # nothing changes
    export_plan(one_model(Shares.equal(2)), word, out, overwrite=True)
    assert "0.5" in (out / "mixture.yaml").read_text()
    (out / "notes.txt").touch()
    with pytest.raises(InputError, match="other files"):
        export_plan(one_model(), word, out)


@pytest.mark.parametrize("out", ["out", "mixture.yaml"])
def test_a_file_that_was_edited_since_is_not_replaced_unasked(out: str, tmp_path: Path) -> None:
    (written, *_) = [
        path
        for path in export_plan(one_model(), "trl", tmp_path / out).files
        if path.suffix == ".yaml"
    ]
    edited = written.read_text().replace("REPLACE-ME", "mine")
    written.write_text(edited)
    with pytest.raises(InputError, match="was edited, or is of another plan"):
        export_plan(one_model(), "trl", tmp_path / out)
    assert written.read_text() == edited
    export_plan(one_model(), "trl", tmp_path / out, overwrite=True)
    assert "REPLACE-ME" in written.read_text()


def test_what_has_several_files_is_no_single_one(tmp_path: Path) -> None:
    for word in ("llamafactory", "megatron"):
        with pytest.raises(InputError, match="should be a folder"):
            export_plan(one_model(), word, tmp_path / "mixture.txt")


def test_a_folder_without_a_tasks_file_is_told_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("prompt,completion\nx,y\n")
    with pytest.raises(InputError, match=r"no file for `b`.*--path b=FILE"):
        export_plan(one_model(), "trl", tmp_path / "out", data=tmp_path)
    done = export_plan(
        one_model(), "trl", tmp_path / "m.yaml", data=tmp_path, paths={"b": "b.parquet"}
    )
    text = done.files[0].read_text()
    assert "path: csv" in text
    assert "path: parquet" in text
    with pytest.raises(InputError, match="`c`"):
        export_plan(one_model(), "trl", tmp_path / "m.yaml", paths={"c": "c.csv"})


def test_a_path_with_blanks_is_refused_where_the_list_is_split_at_them(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no blanks"):
        export_plan(one_model(), "megatron", tmp_path / "out", paths={"a": "my data/a"})


def test_a_tasks_name_cannot_leave_the_folder(tmp_path: Path) -> None:
    (tmp_path / "secret.jsonl").write_text('{"text": "x"}\n')
    (tmp_path / "data").mkdir()
    part = Part(tasks=("../secret",), scored=(), share=1.0, division=Shares.equal(1))
    with pytest.raises(InputError, match="no file for"):
        export_plan(Plan(parts=(part,)), "trl", tmp_path / "m.yaml", data=tmp_path / "data")


@pytest.mark.parametrize("word", [word for word in WORDS if word not in ("axolotl", "megatron")])
def test_names_that_look_like_code_stay_names(word: str, tmp_path: Path) -> None:
    odd = ('x"\n- y: 1 #', "b', __import__('os'), '", "c\u2028\x85: {")
    part = Part(tasks=odd, scored=odd, share=1.0, division=Shares.equal(3))
    done = export_plan(Plan(parts=(part,)), word, tmp_path / "out")
    for path in done.files:
        if path.suffix == ".py":
            compile(path.read_text(), path.name, "exec")
            assert "__import__('os')," not in re.sub(
                r"'[^'\n]*'|\"[^\"\n]*\"", "", path.read_text()
            )
        elif path.suffix == ".yaml":
            assert set(read_yaml(path)) <= {
                *("datasets", "data", "dataset", "dataset_dir", "mix_strategy", "interleave_probs")
            }
        elif path.suffix == ".json":
            assert len(json.loads(path.read_text())) == 3
