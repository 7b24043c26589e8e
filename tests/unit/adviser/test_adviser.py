"""What the adviser promises, with runs that are made up: what a way of training scores is known."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from made_up_world import REAL, SHUFFLED, TASKS, World, ask, sound

from taskmix.adviser import Advised, AdviseOptions, Budget, News
from taskmix.engine import DigitsSource, Run
from taskmix.errors import InputError, OptionError, RecordError, RunError
from taskmix.models import Architecture, Merge, Perceptron, TextConvolution, Transformer
from taskmix.plans import Plan, load_advice, race_rows, save_advice
from taskmix.records import Study, to_plain
from taskmix.tasks import Split, Task, TaskSet


@pytest.fixture(autouse=True, scope="module")
def quick() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        # Races here are decided by far, or not at all: few draws of an estimate will do.
        patch.setattr("taskmix.adviser._estimate.DRAWS", 200)
        patch.setattr("taskmix.adviser._estimate.WARM_UP", 50)
        yield


SHORT = "6000-steps"  # nothing is left for a study of which tasks help which


@pytest.fixture(scope="module")
def settled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Advised, list[News]]:
    """Advice in a world where `size` is the best by far, with a study of transfer."""
    heard: list[News] = []
    return ask(World(), tmp_path_factory.mktemp("settled"), hear=heard.append), heard


@pytest.fixture(scope="module")
def alike(tmp_path_factory: pytest.TempPathFactory) -> Advised:
    """Advice in a world where no way is better than another."""
    world = World(lambda run, task: 0.9, noise=0.02)
    return ask(world, tmp_path_factory.mktemp("alike"), SHORT)


def entries(advised: Advised) -> dict[str, int]:
    """Of each way the seeds that were trained."""
    return {row["way"]: row["seeds"] for row in advised.rows()}


def all_words(advised: Advised) -> str:
    return " ".join((*advised.lines, *advised.document.notes))


def test_the_best_way_of_training_is_chosen_and_the_others_are_out(
    settled: tuple[Advised, list[News]],
) -> None:
    advised, heard = settled
    document = advised.document
    assert document.chosen == "size"
    assert [row["way"] for row in advised.rows() if row["open"]] == ["size"]
    for gain in (document.dev_gain["uniform"], document.test_gain["uniform"]):
        assert 0 < gain.low < 0.05 < gain.high
        assert gain.mean == pytest.approx(0.05, abs=0.005)
    assert document.settled
    assert advised.lines[0].startswith("Train together: all tasks (90 %")
    assert "significantly worse (90 %): uniform" in advised.lines[-1]
    assert "The race is settled: size leads." in all_words(advised)
    assert [each.stage for each in heard][:3] == ["look", "baselines", "runs"]
    assert "transfer" in [each.stage for each in heard]
    assert all(0 <= each.spent <= 1 for each in heard)


def test_tasks_that_nothing_is_learned_from_are_named_and_do_not_count(
    settled: tuple[Advised, list[News]],
) -> None:
    advised, _ = settled
    assert tuple(advised.document.unlearned) == SHUFFLED
    assert set(advised.document.judged) == set(REAL)
    assert "nothing was learned from shuffled_parity" in all_words(advised)


def test_the_plan_has_what_is_promised_and_is_in_the_study(
    settled: tuple[Advised, list[News]],
) -> None:
    advised, _ = settled
    plan = Plan.load(advised.study.path / "plan.json")
    assert plan == advised.plan()
    assert set(plan.targets) == set(TASKS)
    assert sum(plan.overall.values()) == pytest.approx(1)
    assert plan.length is not None
    assert plan.length.batches == advised.document.batches_of_a_run
    assert {each.task for each in plan.expected} == set(TASKS)
    for each in plan.expected:
        assert 0 <= each.low <= each.value <= each.high <= 1
    assert plan.evidence["batches_spent"] <= 20_000
    assert plan.evidence["settled"] is True


def test_the_document_is_in_the_study_and_the_table_and_the_rows_say_the_same(
    settled: tuple[Advised, list[News]], tmp_path: Path
) -> None:
    advised, _ = settled
    document = load_advice(advised.study.path)
    assert document is not None
    assert to_plain(document) == to_plain(advised.document)
    assert [each.stage for each in document.milestones][:2] == ["baselines", "transfer"]
    assert all(row.out_after is not None for row in document.candidates if not row.open)
    header, *rows = advised.table()
    assert header == ("way of training", "score", "behind", "seeds", "batches", "s", "standing")
    assert [row[-1] for row in rows][:2] == ["leads", "out after baselines"]
    assert rows[0][2] == "", "the leader is behind nobody"
    page = advised._repr_html_()
    assert all(f"<td>{escape(cell)}</td>" in page for row in rows for cell in row)
    assert len(race_rows(document)) == len(rows)
    plain = to_plain(document)
    for broken in ({**plain, "version": 2}, {**plain, "lines": 3}, {"version": 1}, [1]):
        (tmp_path / "advice.json").write_text(json.dumps(broken))
        with pytest.raises(InputError, match="`taskmix advise` wrote"):
            load_advice(tmp_path)
    save_advice(tmp_path, document)
    assert to_plain(load_advice(tmp_path)) == plain


def test_in_proportion_to_rows_is_no_way_of_its_own_where_all_have_as_many(tmp_path: Path) -> None:
    alike = Given(classes("a", 200), classes("b", 200))
    other = Given(classes("a", 200), classes("b", 300))
    assert "size" not in entries(ask(World(), tmp_path / "alike", "1200-steps", source=alike))
    assert "size" in entries(ask(World(), tmp_path / "other", "1200-steps", source=other))


def test_leaving_tasks_out_wins_where_the_rest_gains_by_it(tmp_path: Path) -> None:
    def scorer(run: Run, task: str) -> float:
        names = run.tasks or TASKS
        clean = not set(SHUFFLED) & set(names) and len(names) > 1
        return sound(run, task) if task in SHUFFLED else 0.97 if clean else 0.9

    advised = ask(World(scorer), tmp_path)
    assert set(advised.plan().tasks) == set(REAL)
    assert {each.task for each in advised.plan().expected} == set(REAL)


def test_ways_that_are_alike_are_told_as_such_and_a_simple_one_is_kept(alike: Advised) -> None:
    assert sum(row["open"] for row in alike.rows()) > 1
    assert alike.lines[0].startswith("Cannot tell yet: any of ")
    assert "the simplest of them" in alike.lines[1]
    assert "settle it" in alike.lines[2] or "it is small" in alike.lines[2]
    assert not alike.document.settled
    assert alike.plan().evidence["settled"] is False


def test_of_ways_without_any_difference_a_simple_one_is_kept(tmp_path: Path) -> None:
    advised = ask(World(lambda run, task: 0.9, noise=0.0), tmp_path, "1500-steps")
    assert advised.document.chosen in ("uniform", "size", "equal", "single")
    assert "Until then" in advised.lines[1]


def test_the_end_says_why_it_came(tmp_path: Path, alike: Advised) -> None:
    assert "does not pay for one more seed" in all_words(alike)
    even = World(lambda run, task: 0.9, noise=0.02)
    source = DigitsSource(tasks=REAL[:2])
    long = ask(even, tmp_path, "60000-steps", source=source, batches=100)
    assert "after 10 seeds" in all_words(long)
    assert "of the budget is left" in all_words(long)


@pytest.mark.parametrize("noise", [0.002, 0.05])
def test_the_budget_is_kept(tmp_path: Path, noise: float) -> None:
    world = World(noise=noise)
    advised = ask(world, tmp_path, "12000-steps")
    full = [run for run in world.done if run.architecture == Perceptron()]
    assert sum(run.cost_of(run.steps) for run in full) <= 12_000
    assert advised.document.batches_spent <= 12_000


def test_a_budget_for_two_runs_still_gives_a_plan(tmp_path: Path) -> None:
    advised = ask(World(), tmp_path, "320-steps", batches=160)
    assert set(entries(advised)) == {"single", "uniform"}
    assert set(advised.plan().tasks) == set(TASKS)


def test_a_second_seed_that_only_some_can_have_is_left_out(tmp_path: Path) -> None:
    advised = ask(World(), tmp_path, "900-steps", batches=150)
    seeds = entries(advised)
    assert set(seeds.values()) == {1}
    assert "after one seed each" in advised.lines[0]
    assert "A second seed of each would take a budget of" in all_words(advised)
    document = to_plain(advised.document)
    assert document["dev_gain"]["single"]["low"] is None, "one seed has no interval"


@pytest.mark.parametrize("words", ["160-steps", "3s"])
def test_a_budget_for_less_is_refused_with_what_would_do(tmp_path: Path, words: str) -> None:
    with pytest.raises((OptionError, RunError), match=r"Give at least \d+"):
        ask(World(), tmp_path / "study", words, batches=160)
    assert not (tmp_path / "study" / "plan.json").exists()


def rising(label: str, task: str, batches: float) -> float:
    """Ways end elsewhere than they begin: uniform is behind until about 920 batches."""
    if task in SHUFFLED:
        return 0.5
    level, slope = {"size": (0.85, 10.0), "uniform": (0.97, 120.0)}.get(label, (0.75, 10.0))
    return level - slope / max(batches, 130.0)


def rising_world() -> World:
    def curve(run: Run, task: str, own: float) -> float:
        return rising(run.label, task, own * len(TASKS) / len(run.tasks or TASKS))

    return World(noise=0.001, curve=curve)


@pytest.mark.parametrize(("world", "seed"), [("plain", 0), ("plain", 1), ("rising", 2)])
def test_stopping_anywhere_and_going_on_gives_the_same_plan(
    tmp_path: Path, world: str, seed: int
) -> None:
    def again() -> World:
        return World(noise=0.02) if world == "plain" else rising_world()

    options = {} if world == "plain" else {"train_batches": 4000, "batches": 500}
    expected = ask(again(), tmp_path / "whole", "16000-steps", **options).plan()
    generator = np.random.default_rng(seed)
    stops = 0
    for _ in range(100):
        stopped = again()
        stopped.left = int(generator.integers(4, 40))
        try:
            advised = ask(stopped, tmp_path / "parts", "16000-steps", **options)
            break
        except RunError:
            stops += 1  # as a user would stop it; the same command goes on
    assert stops > 0
    assert advised.plan() == expected
    idle = World()
    assert ask(idle, tmp_path / "parts", "16000-steps", **options).plan() == expected
    assert idle.done == [], "nothing is trained again"


def test_there_is_a_plan_after_every_stage(tmp_path: Path) -> None:
    found = []

    def hear(news: News) -> None:
        if (tmp_path / "plan.json").exists():
            found.append((news.stage, Plan.load(tmp_path / "plan.json")))

    ask(World(), tmp_path, SHORT, hear=hear)
    assert {"candidates", "end"} <= {stage for stage, _ in found}
    for _, plan in found:
        assert {each.task for each in plan.expected} == set(plan.targets) <= set(TASKS)


@pytest.mark.parametrize(
    ("fails", "seeds"),
    [
        (lambda run: run.label == "equal", None),
        (lambda run: run.label == "equal" and run.seed == 0, None),
        (lambda run: run.label == "equal" and run.seed == 1, 1),
    ],
)
def test_a_way_that_fails_is_left_out_and_does_not_end_the_race_of_the_others(
    tmp_path: Path, fails: object, seeds: int | None
) -> None:
    def scorer(run: Run, task: str) -> float:
        return sound(run, task) if task in SHUFFLED else 0.9

    world = World(scorer, noise=0.05, fails=fails)  # type: ignore[arg-type]
    advised = ask(world, tmp_path, SHORT)
    found = entries(advised)
    assert found.get("equal") == seeds
    assert max(found.values()) > 2
    assert "the loss was not finite" in all_words(advised)


def test_one_target_is_advised_on_alone(tmp_path: Path) -> None:
    advised = ask(World(), tmp_path, SHORT, target="half")
    assert tuple(advised.document.targets) == ("half",)
    assert {each.task for each in advised.plan().expected} == {"half"}


def test_of_one_task_nothing_is_compared(tmp_path: Path) -> None:
    advised = ask(World(), tmp_path, "600-steps", source=Given(classes("half", 200)))
    text = all_words(advised)
    assert advised.lines[0].startswith("One task: there is nothing to train it with")
    assert "worse" not in " ".join(advised.lines)
    assert "Expect a mean dev score of" in text


def test_the_leaders_are_run_again_and_longer_where_longer_runs_may_change_places(
    tmp_path: Path,
) -> None:
    world = rising_world()
    advised = ask(world, tmp_path, batches=500, train_batches=4000)
    long = [run for run in world.done if run.cost_of(run.steps) >= 1000]
    assert {run.label for run in long} >= {"size", "uniform"}
    assert all(run.cost_of(run.steps) <= 4000 for run in long)
    assert advised.document.batches_spent <= 20_000
    assert advised.document.chosen == "uniform", "which is behind in the runs that all ways have"
    early = {row["way"]: row["score"] for row in advised.rows()}
    assert early["uniform"] < early["size"]
    plan = advised.plan()
    assert plan.length is not None
    assert plan.length.batches == 4000
    expected = {each.task: each for each in plan.expected}["parity"]
    assert expected.low <= rising("uniform", "parity", 4000) <= expected.high
    assert "the training you named" in all_words(advised)
    assert advised.document.outlook is not None


def test_for_a_training_as_long_as_the_runs_who_leads_them_is_advised(tmp_path: Path) -> None:
    world = rising_world()
    advised = ask(world, tmp_path, batches=500, train_batches=500)
    assert advised.document.chosen == "size"
    assert not [run for run in world.done if run.cost_of(run.steps) >= 1000]


def test_without_a_length_it_is_until_the_curves_are_flat(tmp_path: Path) -> None:
    advised = ask(rising_world(), tmp_path, batches=500)
    assert "until the curves are flat" in all_words(advised)
    length = advised.plan().length
    assert length is not None
    assert length.batches > 500


@dataclass(frozen=True)
class Given:
    """A source of tasks that are there already."""

    tasks: tuple[Task, ...]

    def __init__(self, *tasks: Task) -> None:
        object.__setattr__(self, "tasks", tasks)

    def load(self) -> TaskSet:
        return TaskSet(self.tasks)


def classes(name: str, rows: int, share: float = 0.5, metric: str = "accuracy") -> Task:
    """Two classes, so many of the second."""
    targets = (np.arange(rows) < share * rows).astype(np.int64)
    inputs = np.random.default_rng(sum(map(ord, name))).normal(size=(3, rows))
    splits = {
        split: Split(pa.table({"x": values}), targets)
        for split, values in zip(("train", "dev", "test"), inputs, strict=True)
    }
    return Task(
        name=name,
        kind="classification",
        inputs="table",
        labels=("no", "yes"),
        metric=metric,
        source=name,
        splits=splits,
    )


def learned(tmp_path: Path, task: Task, score: float, *, noise: float = 0.0) -> Advised:
    world = World(lambda run, name: score, noise=noise)
    return ask(world, tmp_path, "1200-steps", source=Given(task, classes("other", 400)))


@pytest.mark.parametrize(
    ("metric", "share", "guess"),
    [("auc", 0.06, 0.5), ("average_precision", 0.06, 0.06), ("accuracy", 0.06, 0.94)],
)
def test_what_is_no_better_than_a_guess_of_its_metric_was_not_learned(
    tmp_path: Path, metric: str, share: float, guess: float
) -> None:
    found = learned(tmp_path, classes("task", 3000, share, metric), guess + 0.001).document
    verdict = {each.task: each for each in found.learned}["task"]
    assert verdict.guess == pytest.approx(guess, abs=0.002)
    assert verdict.answer == "no"


def test_with_too_few_dev_rows_nobody_can_tell_and_it_says_how_many_would_do(
    tmp_path: Path,
) -> None:
    few = learned(tmp_path / "few", classes("task", 40), 0.56)
    verdict = few.document.learned[0]
    assert verdict.answer == "cannot tell"
    assert verdict.rows_needed is not None
    assert f"about {verdict.rows_needed:,} dev rows would do" in verdict.words
    enough = learned(tmp_path / "enough", classes("task", verdict.rows_needed + 5), 0.51)
    assert enough.document.learned[0].answer == "no"
    good = learned(tmp_path / "good", classes("task", 400), 0.9)
    assert good.document.learned[0].answer == "yes"


@pytest.mark.parametrize(
    ("architecture", "inputs", "said", "unsaid"),
    [
        (Perceptron(), "table", "more rows to train on", "--model"),
        (TextConvolution(), "text", "a pretrained model (--model)", "--tune"),
    ],
)
def test_where_nothing_was_learned_no_way_of_training_is_advised(
    tmp_path: Path, architecture: Architecture, inputs: str, said: str, unsaid: str
) -> None:
    def task(name: str) -> Task:
        made = classes(name, 500)
        if inputs == "table":
            return made
        return Task(
            **{
                **{field: getattr(made, field) for field in ("name", "kind", "labels", "metric")},
                "inputs": "text",
                "source": name,
                "splits": {
                    split: Split(
                        pa.table({"text": [f"{name} {split} {row}" for row in range(500)]}),
                        rows.targets,
                    )
                    for split, rows in made.splits.items()
                },
            }
        )

    world = World(lambda run, name: 0.5, noise=0.001)
    source = Given(task("a"), task("b"))
    advised = ask(world, tmp_path, "1200-steps", source=source, architecture=architecture)
    text = " ".join(advised.lines)
    assert {each.answer for each in advised.document.learned} == {"no"}
    assert said in text
    for absent in ("Train together", "Train each task alone", "Not worth it", unsaid):
        assert absent not in text
    assert "no advice" in advised.lines[-1]
    assert advised.plan().evidence["settled"] is False


def test_a_merged_model_that_is_best_is_the_plan(tmp_path: Path) -> None:
    def scorer(run: Run, task: str) -> float:
        return 0.97 if run.label == "merged" and sound(run, task) > 0.6 else sound(run, task)

    adapters = Transformer(path="nowhere", tune="adapters")
    advised = ask(World(scorer), tmp_path, SHORT, architecture=adapters)
    plan = advised.plan()
    assert plan.merge == Merge()
    assert set(plan.tasks) == set(TASKS)
    assert "merge the models into one" in all_words(advised)


@pytest.mark.parametrize("architecture", [Perceptron(), Transformer(path="nowhere", tune="all")])
def test_models_from_scratch_and_copies_of_all_weights_are_not_merged(
    tmp_path: Path, architecture: Architecture
) -> None:
    assert "merged" not in entries(ask(World(), tmp_path, SHORT, architecture=architecture))


def test_bad_input_is_told_in_words(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="should be one of the tasks"):
        ask(World(), tmp_path / "study", target="nonsense")
    for wrong in ({"level": 1.5}, {"batches": 0}, {"train_batches": -1}, {"train_seconds": 9.0}):
        with pytest.raises(OptionError):
            AdviseOptions(budget=Budget(batches=5), **wrong)
    without_dev = Task(
        **{**vars(classes("a", 9)), "splits": {"train": classes("a", 9).splits["train"]}}
    )
    with pytest.raises(InputError, match="Every target should have dev rows"):
        ask(World(), tmp_path / "study", source=Given(without_dev))
    (tmp_path / "bad").mkdir()
    huge = {"version": 2, "asked": {}, "seconds": 10**400, "decisions": {}}
    for text in ("[1]", json.dumps(huge), json.dumps(huge | {"seconds": float("inf")})):
        (tmp_path / "bad" / "ledger.json").write_text(text)
        with pytest.raises(RecordError, match=r"`ledger\.json`"):
            ask(World(), tmp_path / "bad")


def test_a_study_shows_how_many_runs_it_has(settled: tuple[Advised, list[News]]) -> None:
    study = Study(settled[0].study.path)
    assert f"{len(list(study.runs()))} runs" in study._repr_html_()
