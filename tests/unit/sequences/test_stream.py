from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from synthetic_tasks import draw_tasks

from taskmix.errors import InputError
from taskmix.records import Study
from taskmix.sequences import (
    UNKNOWN,
    FitStoppedError,
    Markov,
    MixtureFolder,
    MixtureRecipe,
    RecordedFits,
    RowColumns,
    SequenceMixture,
    SequenceStream,
    StreamWork,
    load_mixture,
)
from taskmix.sequences._from_tasks._sample import SequenceSample
from taskmix.sequences._own import OwnChains

ROWS = [(f"task {n % 3}", list("abc"[: 1 + n % 3]) + ["d"] * (n % 2)) for n in range(60)]


def write_texts(folder: Path, ending: str = ".txt") -> Path:
    """A file for each task."""
    folder.mkdir()
    for task in dict.fromkeys(task for task, _ in ROWS):
        text = "".join(" ".join(words) + "\n" for owner, words in ROWS if owner == task)
        if ending.endswith(".gz"):
            (folder / f"{task}{ending}").write_bytes(gzip.compress(text.encode()))
        else:
            (folder / f"{task}{ending}").write_text(text)
    return folder


def everything(stream: SequenceStream, size: int) -> list[tuple[str, str]]:
    """All sequences of all batches, as pairs in order."""
    found = []
    for sequences, tasks in stream.batches(size):
        words = [" ".join(stream.symbols[code] for code in sequences[n]) for n in range(len(tasks))]
        found += list(zip(tasks, words, strict=True))
    return sorted(found)


def aside_words(stream: SequenceStream) -> set[str]:
    return {stream.symbols[code] for code in stream.set_aside()[0].values}


def write_own_habits(path: Path, each: int = 200) -> Path:
    """Six tasks that share one chain, and each have a pair of letters that is their own."""
    random = np.random.default_rng(0)
    lines = []
    for number in range(each * 6):
        letters = "".join(random.choice(list("abc"), 8))
        lines.append(f"task{number % 6}{letters.replace('a', f'a{number % 6}')}")
    text = "".join(f"{line[:5]} {' '.join(line[5:])}\n" for line in lines)
    path.write_text(text)
    return path


WANTED = sorted((task, " ".join(words)) for task, words in ROWS)


@pytest.mark.parametrize("ending", [".txt", ".txt.gz"])
def test_every_line_of_every_file_comes_once_in_every_pass(tmp_path: Path, ending: str) -> None:
    stream = SequenceStream(path=write_texts(tmp_path / "texts", ending), hold_out=0)
    assert stream.symbols[:4] == ("a", "b", "c", "d")
    assert len(stream) == len(ROWS)
    assert stream.observations == sum(len(words) for _, words in ROWS)
    for size in (1, 7, 1000):
        assert everything(stream, size) == WANTED
    assert max(len(part) for part, _ in stream.batches(7)) == 7


def test_tables_are_streamed_as_well(tmp_path: Path) -> None:
    lines = "".join(f"{task},{' '.join(words)}\n" for task, words in ROWS)
    (tmp_path / "rows.csv").write_text("user,commands\n" + lines)
    objects = [{"user": task, "commands": words} for task, words in ROWS]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(each) + "\n" for each in objects))
    pq.write_table(pa.Table.from_pylist(objects), tmp_path / "rows.parquet", row_group_size=7)
    for name in ("rows.csv", "rows.jsonl", "rows.parquet"):
        columns = RowColumns(sequence="commands", task="user")
        stream = SequenceStream(path=tmp_path / name, columns=columns, hold_out=0)
        assert everything(stream, 11) == WANTED
        with pytest.raises(InputError, match="sequence_column"):
            len(SequenceStream(path=tmp_path / name))


def test_sequences_that_are_held_out_are_never_learned_from(tmp_path: Path) -> None:
    path = tmp_path / "one.txt"
    path.write_text("".join(f"x word{n}\n" for n in range(500)))
    stream = SequenceStream(path=path, hold_out=10, first_symbol_is_task=True)
    held = {words[0] for words in stream.held_out.sequences}
    for size in (3, 100):
        learned = {words for _, words in everything(stream, size)}
        assert not held & learned
        assert held | learned | aside_words(stream) == {f"word{n}" for n in range(500)}
    kept = aside_words(stream)
    assert len(kept) == pytest.approx(len(held), abs=1)
    assert not kept & (held | learned)
    assert 40 <= len(held | kept) <= 60
    assert SequenceStream(path=path, hold_out=10).content != stream.content


def test_batches_mix_tasks_that_lie_one_after_the_other(tmp_path: Path) -> None:
    path = tmp_path / "sorted.txt"
    path.write_text("".join(f"task{n // 100:02} a b c\n" for n in range(1600)))
    stream = SequenceStream(path=path, first_symbol_is_task=True, hold_out=0)
    first = next(stream.batches(160))[1]
    assert len(set(first)) == 16


def test_more_files_than_can_be_open_at_once_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(300):
        (folder / f"t{number}.txt").write_text("a b\nb\n")
    assert len(SequenceStream(path=folder, hold_out=0)) == 600


def test_a_stream_is_fitted_like_the_same_sequences_in_memory(tmp_path: Path) -> None:
    stream = SequenceStream(path=write_texts(tmp_path / "texts"), hold_out=0)
    batch = list(stream.batches(1000))
    assert len(batch) == 1
    sequences, tasks = batch[0]
    options: dict[str, Any] = {"max_iter": 6, "own": False, "random_state": 0}
    ours = SequenceMixture(Markov(), 2, batch_size=1000, tol=-np.inf, **options).fit(stream)
    held = SequenceMixture(
        Markov(), 2, batch_size=1000, tol=-np.inf, symbols=stream.symbols, **options
    )
    held.fit([[stream.symbols[c] for c in sequences[n]] for n in range(len(tasks))], tasks)
    # One batch is all of it, whatever its order: only the start is drawn otherwise.
    assert ours.bounds_[-1] == pytest.approx(held.bounds_[-1], rel=0.02)
    assert ours.complete("", "task 0")[0] == held.complete("", "task 0")[0]


@pytest.mark.parametrize("hold_out", [0, 4])
def test_a_fit_of_a_stream_goes_on_with_the_same_bits(tmp_path: Path, hold_out: int) -> None:
    path = write_texts(tmp_path / "texts")
    stream = SequenceStream(path=path, hold_out=hold_out)

    def model() -> SequenceMixture:
        return SequenceMixture(Markov(), 2, batch_size=16, max_iter=4, tol=-np.inf, random_state=0)

    whole = model().fit(stream)
    assert (whole.own_ is None) == (hold_out == 0)
    for stop_after in (2, 5, 9):
        stream = SequenceStream(path=path, hold_out=hold_out)  # read again, as by another process
        asked = iter(range(1000))
        fits = RecordedFits(
            study=Study(tmp_path / f"fits {stop_after}"),
            data=stream.content,
            should_stop=lambda asked=asked, last=stop_after: next(asked) >= last,  # type: ignore[misc]
        )
        with pytest.raises(FitStoppedError):
            fits("it", model(), stream, stream.tasks, lambda: None)
        again = model()
        more = RecordedFits(study=Study(tmp_path / f"fits {stop_after}"), data=stream.content)
        more("it", again, stream, stream.tasks, lambda: None)
        np.testing.assert_array_equal(again.gamma_, whole.gamma_)
        assert again.bounds_ == whole.bounds_
        row = [["a", "b", "d"]]
        assert again.task_log_likelihood(row).tolist() == whole.task_log_likelihood(row).tolist()


def test_a_sample_is_bounded_and_even_and_holds_small_tasks_whole() -> None:
    found = []
    for seed in range(300):
        sample = SequenceSample(30, np.random.default_rng(seed))
        for number in range(50):  # twenty sequences of `many` and, once, three of `few`
            tasks = ["many"] * 2 + (["few"] * 3 if number == 40 else [])
            words = [[f"m{2 * number}"] * 2, [f"m{2 * number + 1}"] * 2] + [["f"] * 2] * 3
            sample.add(tasks, pa.array(words[: len(tasks)], pa.list_(pa.string())))
        sample.cut()
        assert sample.size <= 30
        names = (*sorted(sample.codes), UNKNOWN)
        sequences, owners = sample.sequences(names)
        assert owners.count("few") == 3
        assert owners.count("many") == 12
        found += [int(names[sequences[row][0]][1:]) for row in range(12)]
    # Every sequence of the hundred is held equally often: 36 times, with a standard error of 6.
    times = np.bincount(found, minlength=100)
    assert times.sum() == 3600
    assert times.min() > 12
    assert times.max() < 62
    assert abs(times[:50].sum() - 1800) < 170


def test_tasks_of_a_stream_have_something_of_their_own_where_it_pays(tmp_path: Path) -> None:
    path = write_own_habits(tmp_path / "habits.txt")

    def fitted(**options: Any) -> tuple[float, SequenceMixture]:
        stream = SequenceStream(path=path, first_symbol_is_task=True, hold_out=6, **options)
        model = SequenceMixture(Markov(), 1, batch_size=100, max_iter=4, random_state=0)
        model.fit(stream)
        held = SequenceStream(path=path, first_symbol_is_task=True, hold_out=6).held_out
        return model.score(held.sequences, held.tasks), model

    plain, model = fitted(sampled=0)
    assert model.own_ is None
    level, model = fitted()
    assert level > plain + 2  # log 6 for each of the 8/3 a's
    few, model = fitted(sampled=1000)
    assert plain < few < level
    assert isinstance(model.own_, OwnChains)
    assert model.own_.chains.levels[0].counts.sum() < 1200  # 1000 symbols, and the ends
    # Where tasks are alike, nothing of their own foresees better than what they share, or next to it.
    path.write_text("".join(f"task{n % 6} {' '.join('abcab'[: 2 + n % 4])}\n" for n in range(1200)))
    plain, _ = fitted(sampled=0)
    level, model = fitted()
    assert level > plain - 0.02


def test_a_stream_without_held_out_sequences_has_no_own_parts(tmp_path: Path) -> None:
    stream = SequenceStream(
        path=write_own_habits(tmp_path / "habits.txt"), first_symbol_is_task=True, hold_out=0
    )
    model = SequenceMixture(Markov(), 1, batch_size=100, max_iter=2, random_state=0).fit(stream)
    assert model.own_ is None


def test_the_likelihood_in_every_task_is_that_of_each_task_by_itself(tmp_path: Path) -> None:
    stream = SequenceStream(
        path=write_own_habits(tmp_path / "habits.txt"), first_symbol_is_task=True, hold_out=6
    )
    model = SequenceMixture(Markov(), 2, batch_size=100, max_iter=2, random_state=0).fit(stream)
    rows = stream.held_out.sequences[:20]
    every = [model.score_samples(rows, [task] * len(rows)) for task in model.tasks_]
    np.testing.assert_array_equal(model.task_log_likelihood(rows), np.column_stack(every))


def test_the_work_on_a_stream_keeps_a_calibrated_model(tmp_path: Path) -> None:
    path = tmp_path / "two.txt"
    sequences, tasks, _ = draw_tasks(2, 300, seed=2)
    path.write_text(
        "".join(f"{task.replace(' ', '')} {' '.join(map(str, row))}\n"
                for task, row in zip(tasks, sequences, strict=True))
    )  # fmt: skip
    stream = SequenceStream(path=path, first_symbol_is_task=True, hold_out=4)
    recipe = MixtureRecipe(generator=Markov(), generators=2, iterations=5, batch_size=100)
    work = StreamWork(recipe=recipe, stream=stream, folder=MixtureFolder(tmp_path / "out"))
    document = work.describe()
    assert document.rows[0].perplexity < 6
    assert [each.model for each in document.rows[1:]] == [
        "the same, without own parts"
    ] * document.own
    assert set(document.theta) == {"task0", "task1"}
    open_recipe = MixtureRecipe(generator=Markov(), budget=2, iterations=3, batch_size=100)
    other = StreamWork(recipe=open_recipe, stream=stream, folder=MixtureFolder(tmp_path / "other"))
    assert len(other.describe().tried) == 2
    model = load_mixture(tmp_path / "other")
    assert (model.own_ is not None) == other.describe().own
    assert model.reference_ is not None


def test_own_parts_of_a_stream_are_reported_and_can_be_left_out(tmp_path: Path) -> None:
    stream = SequenceStream(
        path=write_own_habits(tmp_path / "habits.txt"), first_symbol_is_task=True, hold_out=6
    )
    for own in (True, False):
        recipe = MixtureRecipe(
            generator=Markov(), generators=1, own=own, iterations=3, batch_size=100
        )
        folder = MixtureFolder(tmp_path / f"own {own}")
        document = StreamWork(recipe=recipe, stream=stream, folder=folder).describe()
        assert document.own == own
        assert (load_mixture(folder.path).own_ is not None) == own
        assert len(document.rows) == 1 + own
        if own:
            gain = document.rows[1].gain
            assert gain is not None
            assert gain.low > 0.1


def test_what_cannot_be_streamed_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Found none"):
        len(SequenceStream(path=tmp_path))
    (tmp_path / "odd.csv").write_text("task,sequence\na,b,c\n")
    with pytest.raises(InputError, match="2 cells"):
        len(SequenceStream(path=tmp_path / "odd.csv"))
    for text in ('{"sequence": "a"}\n{"seq\n', '{"sequence": "a"}\n{"sequence": 5}\n',
                 '{"sequence": null}\n', '{"sequence": ["a"]}\n{"sequence": "a"}\n'):  # fmt: skip
        (tmp_path / "odd.jsonl").write_text(text)
        with pytest.raises(InputError, match="Correct that"):
            len(SequenceStream(path=tmp_path / "odd.jsonl"))
    (tmp_path / "latin.txt").write_bytes("é\n".encode("latin-1") * 3)
    with pytest.raises(InputError, match="UTF-8"):
        len(SequenceStream(path=tmp_path / "latin.txt"))
