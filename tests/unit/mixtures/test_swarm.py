"""A swarm: each member its own mixture, scored on every domain, gone on with where it was stopped."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from swarm_toys import domains, tiny

from taskmix.engine import Executed, Executor, Fleet, Here, Run, Until
from taskmix.errors import InputError, OptionError, RunError
from taskmix.mixtures import (
    MixtureTable,
    TrainedSwarm,
    check_swarm_time,
    domains_of_swarm,
    estimate_swarm,
    read_mixtures,
    swarm_runs,
    train_swarm,
    train_tokenizer,
    write_table_files,
)
from taskmix.models import CausalTransformer, Transformer
from taskmix.policies import MixtureShares
from taskmix.records import Study
from taskmix.tasks import Split, TaskSet

CORNERS = np.array(
    [[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0], [0.5, 0.5, 0], [0.2, 0.3, 0.5], [1, 0, 0]]
)
FLEET = Fleet(workers=1)


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def trained(folder: Path, executor: Executor = FLEET, **changes: Any) -> TrainedSwarm:
    mixtures = changes.pop("mixtures", None)
    options = tiny(**changes)
    return train_swarm(domains(), options, Study(folder), executor=executor, mixtures=mixtures)


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> MixtureTable:
    """The corners, all of them in a fleet."""
    return trained(tmp_path_factory.mktemp("fleet"), mixtures=CORNERS).table


def test_a_member_is_scored_on_domains_that_it_was_never_trained_on(together: MixtureTable) -> None:
    assert np.isfinite(together.values).all()
    np.testing.assert_array_equal(together.shares, CORNERS)
    for place in range(3):  # each knows the letters of its own domain best
        assert together.values[place].argmin() == place
        assert together.values[place, place] < together.values[:3, place].mean() - 1


def test_one_by_one_and_in_a_fleet_a_swarm_has_the_same_table(
    together: MixtureTable, tmp_path: Path
) -> None:
    alone = trained(tmp_path, Here(workers=1), mixtures=CORNERS).table
    assert together.runs == alone.runs
    np.testing.assert_allclose(together.values, alone.values, rtol=1e-4)


def after(calls: int) -> Callable[[], bool]:
    """A wish to stop that comes at a later call."""
    left = [calls]

    def is_over() -> bool:
        left[0] -= 1
        return left[0] < 0

    return is_over


def test_a_swarm_that_was_stopped_goes_on_to_the_same_table(tmp_path: Path) -> None:
    whole = trained(tmp_path / "whole", checkpoints=3)
    with pytest.raises(RunError, match="Run the same command again to go on"):
        trained(tmp_path / "parts", Until(FLEET, after(2)), checkpoints=3)
    steps = [summary.step for summary in Study(tmp_path / "parts").summaries()]
    assert all(0 < step < 20 for step in steps)
    assert len(steps) == 6
    rest = trained(tmp_path / "parts", checkpoints=3)
    np.testing.assert_array_equal(rest.table.values, whole.table.values)
    np.testing.assert_array_equal(rest.table.shares, whole.table.shares)
    assert rest.speed.member_steps == whole.speed.member_steps - sum(steps)
    assert trained(tmp_path / "parts", checkpoints=3).speed.member_steps == 0


def test_no_name_is_a_formula_in_the_table_and_it_is_read_as_it_was(tmp_path: Path) -> None:
    domains, runs = ("=1+1", "+x", "-x", "@now", "web"), tuple(f"@{run}" for run in range(2))
    shares = np.array([[0.25, 0.25, 0.25, 0.125, 0.125], [0.0, 0.0, 0.0, 0.0, 1.0]])
    metrics = tuple(f"{domain}/bits" for domain in domains)
    table = MixtureTable(domains=domains, metrics=metrics, runs=runs, shares=shares, values=shares)
    ratios, values = write_table_files(table, tmp_path)
    for path in (ratios, values):
        cells = [cell for row in csv.reader(path.open()) for cell in (*row[:1], *row[1:])]
        assert not any(cell.startswith(("=", "+", "-", "@")) for cell in cells)
    again = read_mixtures(ratios, values)
    assert (again.domains, again.metrics, again.runs) == (domains, metrics, runs)
    np.testing.assert_array_equal(again.shares, shares)


def test_a_second_swarm_is_told_so_and_the_first_goes_on(tmp_path: Path) -> None:
    others: list[str] = []

    class Watched(Fleet):
        def run(self, runs: Sequence[Run], study: Study) -> list[Executed]:
            with pytest.raises(RunError) as caught:
                trained(tmp_path)
            others.append(str(caught.value))
            return super().run(runs, study)

    table = trained(tmp_path, Watched(workers=1), mixtures=CORNERS).table
    assert len(table) == len(CORNERS)
    assert others[0].startswith(f"One `swarm` at a time should work on `{tmp_path}`. Found that ")
    assert trained(tmp_path, mixtures=CORNERS).speed.member_steps == 0


def test_a_file_of_somebody_else_is_not_written_over(tmp_path: Path) -> None:
    trained(tmp_path)
    (tmp_path / "metrics.csv").write_text("my notes\n")
    with pytest.raises(InputError, match="over one that taskmix wrote"):
        trained(tmp_path)
    assert (tmp_path / "metrics.csv").read_text() == "my notes\n"


def test_replicates_have_the_mixture_of_another_and_a_seed_of_their_own() -> None:
    runs = swarm_runs(domains(), tiny(members=8, replicates=3))
    mixtures = [run.policy for run in runs]
    assert len(set(mixtures)) == 5
    assert len({run.seed for run in runs}) == 8
    assert all(isinstance(each, MixtureShares) for each in mixtures)


def test_bounds_and_natural_shares_shape_the_mixtures() -> None:
    runs = swarm_runs(domains(), tiny(members=12, bounds=(("tail", 0.1, 0.3),)))
    shares = np.array([np.asarray(run.policy.shares) for run in runs])  # type: ignore[union-attr]
    assert shares[:, 2].min() >= 0.1 - 1e-9
    assert shares[:, 2].max() <= 0.3 + 1e-9
    with pytest.raises(InputError, match="`tale` should be one of the tasks"):
        swarm_runs(domains(), tiny(bounds=(("tale", 0.1, 0.3),)))


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"tokens": 2560}, "tokens"),
        ({"members": 7}, "members"),
        ({"seed": 1}, "seed"),
        ({"width": 32}, "width"),
    ],
)
def test_a_changed_option_is_refused_by_name(
    tmp_path: Path, changes: dict[str, Any], name: str
) -> None:
    stopped = Until(FLEET, lambda: True)
    with pytest.raises(RunError):
        trained(tmp_path, stopped)
    with pytest.raises(OptionError, match=f"^`{name}` should be as when the swarm"):
        trained(tmp_path, stopped, **changes)


def test_dev_sets_are_parts_of_many_passages_always_the_same_ones() -> None:
    few = domains_of_swarm(domains(), dev_bytes=100)
    again = domains_of_swarm(domains(), dev_bytes=100)
    assert few.content == again.content
    for task in few:
        assert set(task.splits) == {"train", "dev"}
        assert sum(len(text) for text in task.splits["dev"].inputs["text"].to_pylist()) == 100
    cut = domains_of_swarm(few, dev_bytes=100)
    assert cut.content == few.content


def test_a_cut_through_a_character_leaves_it_out() -> None:
    text = Split(pa.table({"text": ["日本語" * 50]}), np.empty(0))
    first, *others = domains()
    japanese = replace(first, splits={"train": text, "dev": text})
    few = domains_of_swarm(TaskSet((japanese, *others)), dev_bytes=100)
    (kept,) = few[0].splits["dev"].inputs["text"].to_pylist()
    assert len(kept.encode()) == 99


def without(tasks: TaskSet, split: str) -> TaskSet:
    first, *others = tasks
    splits = {name: each for name, each in first.splits.items() if name != split}
    return TaskSet((replace(first, splits=splits), *others))


def test_domains_without_texts_to_train_on_or_to_be_scored_on_are_refused() -> None:
    for split in ("train", "dev"):
        with pytest.raises(InputError, match=f"Found no text in `{split}` of `vowels`"):
            domains_of_swarm(without(domains(), split), dev_bytes=100)
    with pytest.raises(InputError, match="two domains or more"):
        domains_of_swarm(domains(("tail",)), dev_bytes=100)


def test_too_few_members_too_few_tokens_and_unknown_sizes_are_refused() -> None:
    with pytest.raises(InputError, match="at least one mixture for each of its 3 domains"):
        swarm_runs(domains(), tiny(members=3, replicates=1))
    with pytest.raises(OptionError, match="`tokens` should be enough for one step"):
        tiny(tokens=63)
    for size in ("huge", "0M", "5G", "3", "900M"):
        with pytest.raises(OptionError, match="`parameters` should be"):
            tiny(parameters=size, layers=None, width=None)
    with pytest.raises(OptionError, match="`replicates` should be"):
        tiny(replicates=6)


@pytest.mark.parametrize("size", ["20k", "100k", "300k", "1M", "2.5M", "5M", "20M", "60M"])
def test_a_size_is_met_by_about_a_third(size: str) -> None:
    made = tiny(parameters=size, layers=None, width=None).architecture()
    assert isinstance(made, CausalTransformer)
    small = replace(made, context=8)
    with torch.device("meta"):
        encoded = small.encoding.encode(domains())
        model = small.build(encoded)
    wanted = float(size[:-1]) * {"k": 1e3, "M": 1e6}[size[-1]]
    found = sum(parameter.numel() for parameter in model.parameters())
    assert wanted / 1.35 < found < wanted * 1.35


def test_an_estimate_comes_before_and_days_are_refused(tmp_path: Path) -> None:
    study = Study(tmp_path)
    seconds = estimate_swarm(domains(), tiny(), study)
    assert seconds is not None
    longer = estimate_swarm(domains(), tiny(tokens=128_000_000), study)
    assert longer is not None
    assert longer > 100 * seconds
    assert not list(tmp_path.iterdir())
    with pytest.raises(OptionError, match="Give fewer `members` or `tokens`"):
        check_swarm_time(1e6, tiny(), device="cpu")


def test_a_tokenizer_is_learned_once_and_bits_stay_those_of_bytes(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers", reason="the extra `text` is not installed")
    folder = train_tokenizer(domains(), tmp_path / "tokenizer", size=300)
    written = (folder / "tokenizer.json").stat().st_mtime_ns
    assert train_tokenizer(domains(), folder, size=300) == folder
    assert (folder / "tokenizer.json").stat().st_mtime_ns == written
    table = trained(tmp_path / "study", tokenizer=str(folder), mixtures=CORNERS).table
    # By chance a piece of 300 takes 8.2 bits, and most pieces here spell more than one byte.
    assert (table.values < 8.2).all()
    assert table.values[0].argmin() == 0
    with pytest.raises(OptionError, match="`tokenizer` should have from 300"):
        train_tokenizer(domains(), tmp_path / "small", size=100)


def test_members_may_be_adapters_on_a_pretrained_model(
    tmp_path: Path, save_language_model: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKMIX_CACHE", str(tmp_path / "cache"))
    model = save_language_model()
    options = tiny(model=model, layers=None, width=None, rank=2, members=4, replicates=0)
    assert isinstance(options.architecture(), Transformer)
    mixtures = CORNERS[:4]
    table = train_swarm(
        domains(), options, Study(tmp_path / "study"), executor=FLEET, mixtures=mixtures
    ).table
    assert np.isfinite(table.values).all()
    for place in range(3):
        assert table.values[:, place].argmin() in (place, 3)
