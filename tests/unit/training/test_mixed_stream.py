"""Streams mixed into one: what is drawn, who reads it, and that it goes on exactly."""

from __future__ import annotations

import io
import pickle
import tarfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from torch.utils.data import DataLoader, IterableDataset, default_collate

from taskmix.errors import InputError, OptionError, RunError
from taskmix.policies import Exp3S, Outcome, Scheduled, Tempered, Uniform
from taskmix.records import load_state, save_state
from taskmix.training import MixedStream, read_draws

SIZES = (30, 7, 19)
NAMES = ("large", "small", "three")


def rows_of(place: int) -> list[dict[str, int]]:
    return [{"task": place, "row": row} for row in range(SIZES[place])]


class Counted(IterableDataset[Any]):
    """A stream of one's own, which knows where it is."""

    def __init__(self, place: int) -> None:
        self._rows, self._place = rows_of(place), 0

    def __iter__(self) -> Iterator[Any]:
        for row in self._rows[self._place :]:
            self._place += 1
            yield row
        self._place = 0

    def state_dict(self) -> dict[str, int]:
        return {"place": self._place}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self._place = state["place"]


class Plain(IterableDataset[Any]):
    """A stream of one's own, which knows nothing."""

    def __init__(self, place: int) -> None:
        self._rows = rows_of(place)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._rows)


def generated(shards: list[int], place: int) -> Iterator[Any]:
    for shard in shards:
        yield from rows_of(place)[shard::4]


def hub_stream(place: int, shards: int = 4) -> Any:
    datasets = pytest.importorskip("datasets")
    if shards == 1:
        return datasets.Dataset.from_list(rows_of(place)).to_iterable_dataset()
    numbers = {"shards": list(range(shards)), "place": place}
    return datasets.IterableDataset.from_generator(generated, gen_kwargs=numbers)


KINDS: dict[str, Callable[[int], Any]] = {
    "numbered rows": rows_of,
    "an iterable": Plain,
    "one with a state": Counted,
    "a function": lambda place: lambda: iter(rows_of(place)),
    "Hugging Face, shards": hub_stream,
    "Hugging Face, one shard": lambda place: hub_stream(place, 1),
    "Hugging Face, shuffled shards": lambda place: hub_stream(place).shuffle(seed=3, buffer_size=1),
}


def make(kind: str = "numbered rows", **changes: Any) -> MixedStream:
    streams = {name: KINDS[kind](place) for place, name in enumerate(NAMES)}
    options: dict[str, Any] = {"shares": [0.5, 0.2, 0.3], "seed": 0}
    return MixedStream(streams, **(options | changes))


def pairs(rows: Any) -> list[tuple[int, int]]:
    return [(int(row["task"]), int(row["row"])) for row in rows]


def collated(rows: list[Any]) -> Any:
    """Rows of a batch one by one again, as the pairs that they are known by."""
    return [(int(row["task"]), int(row["row"]), row.get("draw")) for row in rows]


TOO_MANY = pytest.mark.filterwarnings("ignore:This DataLoader will create")  # for two processors

ALL = sorted((place, row) for place, size in enumerate(SIZES) for row in range(size))


# What is drawn.


def test_streams_are_drawn_as_often_as_their_shares_say() -> None:
    drawn = [task for task, _ in pairs(islice(make(), 4000))]
    assert chisquare(np.bincount(drawn), 4000 * np.array([0.5, 0.2, 0.3])).pvalue > 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_each_stream_is_read_once_a_pass_and_repeated(kind: str) -> None:
    read = pairs(islice(make(kind), 500))
    for place, size in enumerate(SIZES):
        own = [row for task, row in read if task == place]
        passes = [own[begin : begin + size] for begin in range(0, len(own) - size, size)]
        assert passes
        assert all(sorted(each) == list(range(size)) for each in passes)


def test_it_stops_with_the_first_stream_that_ends() -> None:
    read = Counter(task for task, _ in pairs(make(when_exhausted="stop")))
    assert any(read[place] == size for place, size in enumerate(SIZES))
    assert sum(read.values()) < sum(SIZES)


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_that_ends_is_left_out_until_all_have_ended(kind: str) -> None:
    assert sorted(pairs(make(kind, when_exhausted="leave out"))) == ALL


def test_shares_that_are_set_hold_from_the_next_row_on() -> None:
    mixed = make()
    rows = iter(mixed)
    list(islice(rows, 10))
    mixed.shares = {"large": 0.0, "small": 1.0, "three": 0.0}
    assert {task for task, _ in pairs(islice(rows, 50))} == {1}
    assert mixed.shares == {"large": 0.0, "small": 1.0, "three": 0.0}


def test_workers_see_shares_that_are_set_while_they_read() -> None:
    mixed = make()
    loader = iter(DataLoader(mixed, batch_size=4, num_workers=2, prefetch_factor=2))
    assert {int(task) for _ in range(10) for task in next(loader)["task"]} == {0, 1, 2}
    mixed.shares = [0.0, 0.0, 1.0]
    for _ in range(8):  # what was read ahead
        next(loader)
    assert {int(task) for _ in range(10) for task in next(loader)["task"]} == {2}


def test_a_worker_that_is_started_anew_sees_the_same_shares() -> None:
    mixed = make(record=threading.Lock())  # which no worker can be given, like an open file
    next(iter(mixed))
    started: Any = pickle.loads(ForkingPickler.dumps(mixed))
    mixed.shares = [0.0, 1.0, 0.0]
    assert {task for task, _ in pairs(islice(started, 20))} == {1}


def test_every_epoch_has_an_order_of_its_own() -> None:
    mixed = make()
    first = pairs(islice(mixed, 40))
    assert pairs(islice(mixed, 40)) == first
    mixed.set_epoch(1)
    assert pairs(islice(mixed, 40)) != first


@pytest.mark.parametrize("readers", [1, 2])
def test_a_schedule_changes_at_the_draw_it_says(readers: int) -> None:
    schedule = Scheduled(((0, (0.9, 0.05, 0.05)), (25, (0.0001, 0.0001, 0.9998))))
    for reader in range(readers):
        mixed = make(shares=schedule, with_draws=True, processes=(reader, readers))
        for row in islice(mixed, 60):
            number, task, _, bits = row["draw"].tolist()
            probability = np.int64(bits).view(np.float64)
            shares = (0.9, 0.05, 0.05) if number < 25 else (0.0001, 0.0001, 0.9998)
            assert probability == pytest.approx(shares[task])
    assert mixed.shares["three"] == pytest.approx(0.9998)


# Who reads what.


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("workers", [2, pytest.param(3, marks=TOO_MANY)])
def test_workers_read_every_row_once_between_them(kind: str, workers: int) -> None:
    mixed = make(kind, when_exhausted="leave out")
    loader = DataLoader(mixed, batch_size=5, num_workers=workers, collate_fn=collated)
    assert sorted(pair[:2] for batch in loader for pair in batch) == ALL


@pytest.mark.parametrize("kind", KINDS)
def test_processes_read_every_row_once_between_them(kind: str) -> None:
    parts = [make(kind, when_exhausted="leave out", processes=(rank, 2)) for rank in range(2)]
    drawn = [pairs(part) for part in parts]
    assert sorted(drawn[0] + drawn[1]) == ALL
    assert [task for task, _ in drawn[0]][:20] != [task for task, _ in drawn[1]][:20]


def test_a_stream_with_fewer_rows_than_readers_is_read_whole_by_some() -> None:
    streams = {"one": [{"row": 0}], "many": [{"row": row} for row in range(50)]}
    for rank in range(3):
        mixed = MixedStream(streams, shares=[0.5, 0.5], seed=0, processes=(rank, 3))
        assert len(list(islice(mixed, 20))) == 20


def test_a_web_dataset_that_shares_itself_out_is_not_shared_out_again(tmp_path: Path) -> None:
    web = pytest.importorskip("webdataset")
    for shard in range(4):
        with tarfile.open(tmp_path / f"{shard}.tar", "w") as archive:
            for row in range(5):
                text = str(shard * 5 + row).encode()
                member = tarfile.TarInfo(f"{shard * 5 + row}.txt")
                member.size = len(text)
                archive.addfile(member, io.BytesIO(text))
    stream = web.WebDataset(
        [str(tmp_path / f"{shard}.tar") for shard in range(4)], shardshuffle=False
    )
    mixed = MixedStream({"web": stream}, shares=[1.0], seed=0, when_exhausted="leave out")
    loader = DataLoader(mixed, batch_size=None, num_workers=2)
    assert sorted(int(row["txt"]) for row in loader) == list(range(20))


# Going on.


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("readers", [1, 3])
@pytest.mark.parametrize("when_exhausted", ["repeat", "leave out"])
def test_it_goes_on_from_its_state_exactly(
    tmp_path: Path, kind: str, readers: int, when_exhausted: str
) -> None:
    options: dict[str, Any] = {
        "processes": (readers - 1, readers),
        "when_exhausted": when_exhausted,
    }
    whole = pairs(islice(make(kind, **options), 90))
    for stopped in (0, 1, 13, min(40, len(whole) - 2)):
        mixed = make(kind, **options)
        rows = iter(mixed)
        list(islice(rows, stopped))
        save_state(tmp_path / "state.safetensors", mixed.state_dict())
        later = make(kind, **options)
        for more in (1, 5):  # and again from where that stopped
            later.load_state_dict(load_state(tmp_path / "state.safetensors"))
            assert pairs(islice(later, more)) == whole[stopped : stopped + more]
            save_state(tmp_path / "state.safetensors", later.state_dict())
            stopped += more
        later.load_state_dict(load_state(tmp_path / "state.safetensors"))
        assert pairs(islice(later, 90 - stopped)) == whole[stopped:]


def test_whole_batches_and_set_shares_go_on_exactly() -> None:
    def read(mixed: MixedStream, count: int) -> Any:
        return [pairs(batch) for batch in islice(mixed, count)]

    mixed = make("an iterable", batch_size=4)
    rows = iter(mixed)
    list(islice(rows, 11))
    mixed.shares = [0.1, 0.8, 0.1]
    list(islice(rows, 6))
    state = mixed.state_dict()
    later = make("an iterable", batch_size=4)
    later.load_state_dict(state)
    assert read(later, 30) == [pairs(batch) for batch in islice(rows, 30)]


@pytest.mark.parametrize("kind", ["numbered rows", "an iterable", "Hugging Face, shards"])
def test_a_plain_loader_with_workers_goes_on_from_the_rows_that_arrived(kind: str) -> None:
    def read(mixed: MixedStream, count: int) -> list[list[tuple[int, int]]]:
        batches = []
        for batch in islice(
            DataLoader(mixed, batch_size=3, num_workers=2, collate_fn=collated), count
        ):
            mixed.saw([draw for *_, draw in batch])
            batches.append([pair[:2] for pair in batch])
        return batches

    whole = read(make(kind, with_draws=True), 40)
    state, done = None, 0
    for count in (1, 16, 23):  # the first and the third begin with the second worker's batch
        mixed = make(kind, with_draws=True)
        if state is not None:
            mixed.load_state_dict(state)
        assert read(mixed, count) == whole[done : done + count]
        state, done = mixed.state_dict(), done + count


def test_a_stateful_data_loader_goes_on_exactly() -> None:
    stateful = pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader
    loader = stateful(make("Hugging Face, shards"), batch_size=4, num_workers=2)
    rows = iter(loader)
    list(islice(rows, 5))
    state = loader.state_dict()
    expected = [batch["row"].tolist() for batch in islice(rows, 10)]
    later = stateful(make("Hugging Face, shards"), batch_size=4, num_workers=2)
    later.load_state_dict(state)
    assert [batch["row"].tolist() for batch in islice(later, 10)] == expected


# Learning.


class FavoursThree:
    needs_loss_after = False

    def init(self, task_count: int) -> None:
        return None

    def observe(self, state: None, outcome: Outcome, generator: Any) -> tuple[float, None]:
        return float(outcome.choice.task == 2), None


class Heard:
    def __init__(self) -> None:
        self.rows: list[tuple[int, float, float, float]] = []

    def add_step(
        self, step: int, task: int, *, probability: float, probabilities: Any, loss: float, **_: Any
    ) -> None:
        self.rows.append((task, probability, float(probabilities[task]), loss))


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("batch_size", [None, 4])
def test_a_policy_learns_from_the_losses_of_its_own_draws(
    workers: int, batch_size: int | None
) -> None:
    heard: Any = Heard()
    mixed = make(
        shares=Exp3S(eta=0.2),
        reward=FavoursThree(),
        with_draws=True,
        record=heard,
        batch_size=batch_size,
    )
    whole: dict[str, Any] = {"batch_size": None} if batch_size else {"batch_size": 4}
    loader = DataLoader(mixed, num_workers=workers, collate_fn=default_collate, **whole)
    for batch in islice(loader, 60):
        losses = batch["task"].float() + 1
        mixed.observe(losses if batch_size is None else losses.mean(), batch["draw"])
    assert mixed.shares["three"] > 0.6
    assert all(loss == task + 1 for task, _, _, loss in heard.rows)
    assert all(drawn == whole for _, drawn, whole, _ in heard.rows)
    assert len({drawn for _, drawn, _, _ in heard.rows}) > 10


def test_a_policy_that_learned_goes_on_exactly() -> None:
    def train(mixed: MixedStream, count: int) -> list[tuple[int, int]]:
        read = []
        for row in islice(mixed, count):
            mixed.observe(float(row["task"]), row["draw"])
            read += pairs([row])
        return read

    options: dict[str, Any] = {
        "shares": Exp3S(eta=0.2),
        "reward": FavoursThree(),
        "with_draws": True,
    }
    whole = train(make(**options), 80)
    mixed, later = make(**options), make(**options)
    assert train(mixed, 30) == whole[:30]
    later.load_state_dict(mixed.state_dict())
    assert train(later, 50) == whole[30:]


# The log.


def test_every_draw_is_logged_with_the_probability_it_was_drawn_with(tmp_path: Path) -> None:
    mixed = make(log=tmp_path)
    rows = iter(mixed)
    read = pairs(islice(rows, 30))
    mixed.shares = [0.25, 0.5, 0.25]
    read += pairs(islice(rows, 30))
    del rows  # which ends the reading
    table = read_draws(tmp_path)
    assert table["task"].to_pylist() == [NAMES[task] for task, _ in read]
    before, after = (0.5, 0.2, 0.3), (0.25, 0.5, 0.25)
    expected = [(before if n < 30 else after)[task] for n, (task, _) in enumerate(read)]
    assert table["probability"].to_pylist() == expected


def test_workers_and_epochs_have_logs_of_their_own(tmp_path: Path) -> None:
    mixed = make(log=tmp_path, when_exhausted="leave out")
    for epoch in range(2):
        mixed.set_epoch(epoch)
        list(DataLoader(mixed, batch_size=None, num_workers=2))
    table = read_draws(tmp_path)
    assert Counter(table["epoch"].to_pylist()) == {0: 56, 1: 56}
    assert Counter(table["task"].to_pylist()) == dict(zip(NAMES, (60, 14, 38), strict=True))


@pytest.mark.parametrize("seconds", [0.0, 10.0])
def test_what_workers_drew_is_logged_also_where_reading_is_broken_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    monkeypatch.setattr("taskmix.training._draws.SECONDS", seconds)
    loader = iter(DataLoader(make(log=tmp_path), batch_size=64, num_workers=2))
    for _ in range(12):
        next(loader)
    if seconds:
        del loader  # its workers end
    assert len(read_draws(tmp_path)) >= 512


def test_a_log_goes_on_from_the_state_and_has_no_draw_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("taskmix.training._draws.PART", 16)
    mixed = make(log=tmp_path)
    rows = iter(mixed)
    read = pairs(islice(rows, 21))
    state = mixed.state_dict()
    list(islice(rows, 60))  # what a run does that is then killed
    rows.close()  # type: ignore[attr-defined]
    later = make(log=tmp_path)
    later.load_state_dict(state)
    more = iter(later)
    read += pairs(islice(more, 20))
    more.close()  # type: ignore[attr-defined]
    table = read_draws(tmp_path)
    assert table["number"].to_pylist() == list(range(41))
    assert table["task"].to_pylist() == [NAMES[task] for task, _ in read]


# What cannot be is said.


def test_a_policy_that_goes_by_sizes_asks_for_them() -> None:
    with pytest.raises(OptionError, match="Give `sizes`"):
        make("an iterable", shares=Tempered())
    shares = make("an iterable", shares=Tempered(), sizes=SIZES).shares
    assert shares["large"] > shares["three"] > shares["small"]


def test_the_state_of_workers_nobody_told_of_is_refused() -> None:
    mixed = make()
    next(iter(DataLoader(mixed, batch_size=4, num_workers=1)))
    with pytest.raises(RunError, match="StatefulDataLoader"):
        mixed.state_dict()


def test_the_state_of_another_process_is_refused() -> None:
    mixed = make(processes=(0, 2))
    next(iter(mixed))
    other = make(processes=(1, 2))
    other.load_state_dict(mixed.state_dict())
    with pytest.raises(OptionError, match=r"reader 1 of 2.*Found reader 0 of 2"):
        next(iter(other))
    alone = make()
    alone.load_state_dict(mixed.state_dict())
    with pytest.raises(OptionError, match="as many processes and workers"):
        next(iter(alone))


def test_one_loss_for_rows_of_several_draws_is_refused() -> None:
    mixed = make(with_draws=True)
    batch = next(iter(DataLoader(mixed, batch_size=4)))
    with pytest.raises(RunError, match="reduction='none'"):
        mixed.observe(torch.tensor(1.0), batch["draw"])


def stream_of(**streams: Any) -> MixedStream:
    shares = [1 / max(len(streams), 1)] * len(streams)
    return MixedStream(streams, shares=shares, seed=0, with_draws=True)


def share(mixed: MixedStream, shares: Any) -> None:
    mixed.shares = shares


@pytest.mark.parametrize(
    ("make_it", "sentence"),
    [
        (lambda: make(shares=[0.5, 0.5]), "each of the 3 streams"),
        (lambda: make(shares=[0.5, 0.4, 0.2]), "should sum to one"),
        (lambda: make(when_exhausted="forever"), "'repeat', 'stop' or 'leave out'"),
        (lambda: make(batch_size=0), "1 or more"),
        (lambda: make(processes=(2, 2)), r"Found \(2, 2\)"),
        (lambda: make(record=object(), when_exhausted="leave out"), "streams are left out"),
        (lambda: make(sharded=["other"]), "should name some of the streams"),
        (lambda: make(sizes=[3]), "one number for each of the 3 streams"),
        (lambda: stream_of(a="rows.csv"), "The stream `a` should be a data set"),
        (lambda: stream_of(), "at least one stream"),
        (lambda: list(islice(stream_of(a=iter([{"row": 1}])), 2)), "more than once"),
        (lambda: next(iter(stream_of(none=lambda: iter(())))), "`none` should have rows"),
        (lambda: next(iter(stream_of(a=[{"draw": 1}]))), "no key `draw` of its own"),
        (lambda: share(make(shares=Uniform()), [0.1, 0.1, 0.8]), "Uniform, which decides them"),
        (lambda: share(make(), {"large": 1.0}), r"name the streams.*Found \['large'\]"),
    ],
)
def test_what_cannot_be_is_told_in_a_sentence(make_it: Callable[[], object], sentence: str) -> None:
    with pytest.raises((OptionError, InputError, RunError), match=sentence):
        make_it()
