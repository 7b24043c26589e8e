"""What the adviser promises, with runs that are made up: what each candidate scores is known."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from html import escape
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from made_up_world import REAL, SHUFFLED, TASKS, Given, World, ask, classes, sound

from taskmix.adviser import Advised, AdviseOptions, Budget, News
from taskmix.engine import DigitsSource, Run
from taskmix.errors import InputError, OptionError, RecordError, RunError
from taskmix.models import Architecture, Merge, Perceptron, TextConvolution, Transformer
from taskmix.plans import Plan, load_advice, race_rows, save_advice
from taskmix.records import to_plain
from taskmix.tasks import Split, Task


@pytest.fixture(autouse=True, scope="module")
def quick() -> Iterator[None]:
    """Networks alone: shallow models are real, and know nothing of a world that is made up."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda descriptor: None)
        patch.setattr("taskmix.adviser._adviser.peer_members", lambda *a, **how: iter(()))
        yield


SHORT = "6000-steps"
SMALL = Given(classes("half", 200), classes("other", 300))


@pytest.fixture(scope="module")
def settled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Advised, list[News]]:
    """Advice in a world where `size` is the best by far, with a study of transfer."""
    heard: list[News] = []
    return ask(World(), tmp_path_factory.mktemp("settled"), hear=heard.append), heard


@pytest.fixture(scope="module")
def alike(tmp_path_factory: pytest.TempPathFactory) -> Advised:
    """Advice in a world where no candidate is better than another, and a run says little."""
    world = World(lambda run, task: sound(run, task) if task in SHUFFLED else 0.9, noise=0.02)
    return ask(world, tmp_path_factory.mktemp("alike"), SHORT)


def seeds(advised: Advised) -> dict[str, int]:
    """Of each candidate, those that count."""
    return {row["candidate"]: row["seeds"] for row in advised.rows()}


def all_words(advised: Advised) -> str:
    return " ".join((*advised.lines, *advised.document.notes))


def test_the_best_candidate_is_chosen_and_the_others_are_out(
    settled: tuple[Advised, list[News]],
) -> None:
    advised, heard = settled
    document = advised.document
    assert document.chosen == "size"
    assert [row["candidate"] for row in advised.rows() if row["open"]] == ["size"]
    for gain in (document.dev_gain["uniform"], document.test_gain["uniform"]):
        assert gain.low < 0.05 < gain.high
        assert gain.mean == pytest.approx(0.05, abs=0.01)
    assert document.settled
    assert "every other of 6 candidates is worse" in advised.lines[1]
    assert "The race is settled: size leads." in [each.words for each in heard]
    stages = [each.stage for each in heard]
    assert stages[0] == "look"
    assert stages.index("baselines") < stages.index("transfer") < stages.index("candidates")
    assert all(0 <= each.spent <= 1 for each in heard)


def test_tasks_that_nothing_is_learned_from_are_named_first_and_do_not_count(
    settled: tuple[Advised, list[News]],
) -> None:
    document = settled[0].document
    assert tuple(document.unlearned) == SHUFFLED
    assert set(document.judged) == set(REAL)
    assert document.lines[0].startswith("Nothing beat guessing on `shuffled_parity`.")


def test_the_plan_has_what_is_promised_and_is_in_the_study(
    settled: tuple[Advised, list[News]],
) -> None:
    advised, _ = settled
    plan = Plan.load(advised.study.path / "plan.json")
    assert plan == advised.plan()
    assert sum(plan.overall.values()) == pytest.approx(1)
    assert plan.length is not None
    assert plan.length.batches == advised.document.batches_of_a_run
    assert {each.task for each in plan.expected} == set(plan.targets)
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
    header, *rows = advised.table()
    assert header == ("candidate", "score", "behind", "seeds", "batches", "s", "standing")
    assert [row[-1] for row in rows][:2] == ["leads", "out"]
    assert rows[0][2] == "", "the leader is behind nobody"
    page = advised._repr_html_()
    assert all(f"<td>{escape(cell)}</td>" in page for row in rows for cell in row)
    assert len(race_rows(document)) == len(rows)
    plain = to_plain(document)
    for broken in ({**plain, "version": 99}, {**plain, "lines": 3}, {"version": 1}, [1]):
        (tmp_path / "advice.json").write_text(json.dumps(broken))
        with pytest.raises(InputError, match="`taskmix advise` wrote"):
            load_advice(tmp_path)
    save_advice(tmp_path, document)
    assert to_plain(load_advice(tmp_path)) == plain


def test_in_proportion_to_rows_is_no_candidate_of_its_own_where_all_have_as_many(
    tmp_path: Path,
) -> None:
    even = Given(classes("a", 200), classes("b", 200))
    assert "size" not in seeds(ask(World(), tmp_path / "even", "1200-steps", source=even))
    assert "size" in seeds(ask(World(), tmp_path / "other", "1200-steps", source=SMALL))


@pytest.mark.parametrize("seed", range(4))
def test_what_teaches_nothing_is_in_no_plan_that_hardly_differs_from_one_without(
    tmp_path: Path, seed: int
) -> None:
    world = World(lambda run, task: 0.5 if task in SHUFFLED else 0.9, noise=0.01)
    advised = ask(world, tmp_path, SHORT, seed=seed)
    assert advised.document.unlearned == SHUFFLED
    assert set(advised.plan().tasks) == set(REAL)


@pytest.mark.parametrize("kind", ["leak", "copy"])
def test_copies_and_tasks_that_tell_their_labels_are_named_and_left_out(
    tmp_path: Path, kind: str
) -> None:
    """Their scores are high, and those of what leaves them out must not suffer by that."""
    bad = classes("bad", 200, tells=True)
    if kind == "copy":
        bad = replace(classes("half", 200), name="bad")
    source = Given(classes("half", 200), classes("b", 200), classes("c", 200), bad)
    scores = {"bad": 0.99, "half": 0.99 if kind == "copy" else 0.9}
    world = World(lambda run, task: scores.get(task, 0.9))
    advised = ask(world, tmp_path, SHORT, source=source)
    assert "`bad`" in advised.lines[0]
    assert advised.document.judged == ("half", "b", "c")
    assert set(advised.plan().tasks) == {"half", "b", "c"}


def test_leaving_tasks_out_wins_where_the_rest_gains_by_it(tmp_path: Path) -> None:
    def scorer(run: Run, task: str) -> float:
        names = run.tasks or TASKS
        clean = not set(SHUFFLED) & set(names) and len(names) > 1
        return sound(run, task) if task in SHUFFLED else 0.97 if clean else 0.9

    advised = ask(World(scorer), tmp_path)
    assert set(advised.plan().tasks) == set(REAL)
    assert {each.task for each in advised.plan().expected} == set(REAL)
    assert not {"uniform", "single"} & {row["candidate"] for row in advised.rows() if row["open"]}


def test_a_candidate_of_many_models_does_not_profit_from_choosing_its_moment(
    tmp_path: Path,
) -> None:
    """By the best of eight evaluations, each model's own, `single` would lead by 0.01."""

    def noisy(run: Run, task: str, batches: float) -> float:
        key = [run.seed, round(batches), *map(ord, task + run.label), len(run.tasks or TASKS)]
        if run.label == "single":
            return 0.89 + np.random.default_rng(key).normal(0, 0.015)
        common = np.random.default_rng([*key[:2], *map(ord, run.label)]).normal(0, 0.002)
        return 0.9 + common

    source = DigitsSource(tasks=REAL)
    advised = ask(World(noise=0.0, curve=noisy), tmp_path, SHORT, source=source)
    entries = advised.advice.entries
    best = {
        name: np.mean(
            [
                max(scores[task] for scores in entry.curve)
                for entry in entries[name]
                for task in REAL
            ]
        )
        for name in ("single", "uniform")
    }
    assert best["single"] > best["uniform"] + 0.005, "which the race must not go by"
    found = {row["candidate"]: row["score"] for row in advised.rows()}
    assert found["uniform"] > found["single"]
    assert advised.document.chosen != "single"
    fair = [np.mean([entry.dev[task] for task in REAL]) for entry in entries["single"]]
    assert np.mean(fair) == pytest.approx(0.89, abs=0.01)


def test_where_candidates_are_not_told_apart_it_says_so_and_takes_a_simple_one(
    alike: Advised,
) -> None:
    assert sum(row["open"] for row in alike.rows()) > 1
    assert not alike.document.settled
    assert alike.plan().evidence["settled"] is False
    assert alike.lines[1].startswith("How to divide is not settled")
    assert "More seeds would tell" in alike.lines[1], "no rows are known to lack"


def test_candidates_without_any_difference_are_told_as_alike_and_the_plainest_is_taken(
    tmp_path: Path,
) -> None:
    advised = ask(World(lambda run, task: 0.9, noise=0.0), tmp_path, source=SMALL)
    assert advised.document.chosen == "uniform"
    assert advised.document.settled
    assert advised.lines[1].startswith("How you divide hardly matters here")
    assert f"within {100 * advised.document.within:.1f} points (90 %)" in advised.lines[1]


def test_no_candidate_has_more_than_ten_seeds_and_what_is_left_is_not_spent(tmp_path: Path) -> None:
    even = World(lambda run, task: 0.9, noise=0.05)
    advised = ask(even, tmp_path, "30000-steps", source=SMALL, batches=50)
    assert max(seeds(advised).values()) == 10
    assert advised.document.batches_spent < 15_000


@pytest.mark.parametrize("noise", [0.002, 0.05])
def test_the_budget_is_kept(tmp_path: Path, noise: float) -> None:
    world = World(noise=noise)
    advised = ask(world, tmp_path, "9000-steps")
    full = [run for run in world.done if run.architecture == Perceptron()]
    assert sum(run.cost_of(run.steps) for run in full) <= 9000
    assert advised.document.batches_spent <= 9000


def test_a_budget_for_two_runs_still_gives_a_plan(tmp_path: Path) -> None:
    advised = ask(World(), tmp_path, "320-steps", batches=160)
    assert seeds(advised) == {"single": 1, "uniform": 1}
    assert set(advised.plan().tasks) == set(TASKS)
    gain = to_plain(advised.document)["dev_gain"]
    assert {each["low"] for each in gain.values()} == {None}, "one seed has no interval"


def test_a_second_seed_that_only_some_can_have_is_left_out(tmp_path: Path) -> None:
    advised = ask(World(), tmp_path, "900-steps", batches=150)
    assert set(seeds(advised).values()) == {1}


def test_a_budget_for_less_is_refused_where_no_shallow_model_reads_the_tasks(
    tmp_path: Path,
) -> None:
    with pytest.raises(OptionError, match="should pay for 2 candidates of 160 batches"):
        ask(World(), tmp_path / "study", "160-steps", batches=160)
    assert not (tmp_path / "study" / "plan.json").exists()


@pytest.mark.parametrize("seed", [0, 1])
def test_stopping_anywhere_and_going_on_gives_the_same_plan(tmp_path: Path, seed: int) -> None:
    whole = World(noise=0.02)
    expected = ask(whole, tmp_path / "whole", "8000-steps").plan()
    generator = np.random.default_rng(seed)
    trained, stops = list[Run](), 0
    for _ in range(100):
        stopped = World(noise=0.02, left=int(generator.integers(4, 40)))
        try:
            advised = ask(stopped, tmp_path / "parts", "8000-steps")
            break
        except RunError:
            stops += 1  # as a user would stop it; the same command goes on
        finally:
            trained += stopped.done
    assert stops > 0
    assert advised.plan() == expected
    assert len(trained) == len(whole.done), "nothing is trained twice"
    idle = World()
    assert ask(idle, tmp_path / "parts", "8000-steps").plan() == expected
    assert idle.done == []


def test_there_is_a_plan_after_every_stage(tmp_path: Path) -> None:
    found = {}

    def hear(news: News) -> None:
        if (tmp_path / "plan.json").exists():
            found[news.stage] = Plan.load(tmp_path / "plan.json")

    ask(World(), tmp_path, SHORT, hear=hear)
    assert {"candidates", "end"} <= set(found)
    for plan in found.values():
        assert {each.task for each in plan.expected} == set(plan.targets) <= set(TASKS)


@pytest.mark.parametrize(("failing", "expected"), [((0, 1), None), ((0,), None), ((1,), 1)])
def test_a_candidate_that_fails_does_not_end_the_race_of_the_others(
    tmp_path: Path, failing: tuple[int, ...], expected: int | None
) -> None:
    world = World(
        lambda run, task: 0.9,
        noise=0.03,
        fails=lambda run: run.label == "equal" and run.seed in failing,
    )
    advised = ask(world, tmp_path, "4000-steps", source=SMALL)
    found = seeds(advised)
    assert found.get("equal") == expected
    assert max(found.values()) > 2
    assert "the loss was not finite" in all_words(advised)


def test_one_target_is_advised_on_alone(tmp_path: Path) -> None:
    advised = ask(World(), tmp_path, "3000-steps", target="half")
    assert tuple(advised.document.targets) == ("half",)
    assert {each.task for each in advised.plan().expected} == {"half"}


def test_of_one_task_nothing_is_compared(tmp_path: Path) -> None:
    advised = ask(World(), tmp_path, "600-steps", source=Given(classes("half", 200)))
    assert "One task: there is nothing to train it with" in " ".join(advised.lines)
    assert "worse" not in " ".join(advised.lines)


def test_an_executor_that_keeps_no_models_leaves_the_race_as_it_is(
    settled: tuple[Advised, list[News]],
) -> None:
    advised, _ = settled
    assert advised.advice.delivered is None
    assert advised.document.delivered is None
    assert "no part of the blend" in all_words(advised)


@pytest.mark.parametrize(
    ("architecture", "inputs", "said", "unsaid"),
    [
        (Perceptron(), "table", "more rows to train on", "--model"),
        (TextConvolution(), "text", "a pretrained model (--model)", "--tune"),
    ],
)
def test_where_nothing_was_learned_no_candidate_is_advised(
    tmp_path: Path, architecture: Architecture, inputs: str, said: str, unsaid: str
) -> None:
    def task(name: str) -> Task:
        made = classes(name, 500)
        if inputs == "table":
            return made
        splits = {
            split: Split(
                pa.table({"text": [f"{name} {split} {row}" for row in range(500)]}), rows.targets
            )
            for split, rows in made.splits.items()
        }
        return replace(made, inputs="text", splits=splits)

    world = World(lambda run, name: 0.5, noise=0.001)
    source = Given(task("a"), task("b"))
    advised = ask(world, tmp_path, "1200-steps", source=source, architecture=architecture)
    text = " ".join(advised.lines)
    assert {each.answer for each in advised.document.learned} == {"no"}
    assert said in text
    for absent in ("Train together", "Train each task alone", "hardly matters", unsaid):
        assert absent not in text
    assert "not a recommendation" in advised.lines[-1]
    assert advised.plan().evidence["settled"] is False


def test_many_small_tasks_whose_mean_is_above_guessing_were_learned_of_together(
    tmp_path: Path,
) -> None:
    source = Given(*(classes(f"shop{n}", 60, 0.1, "auc") for n in range(12)))
    world = World(lambda run, task: 0.68, noise=0.01, metric="auc")
    document = ask(world, tmp_path / "some", SHORT, source=source).document
    assert "yes" not in {each.answer for each in document.learned}, "one by one nobody can tell"
    assert "not a recommendation" not in document.lines[-1]
    world = World(lambda run, task: 0.51, noise=0.01, metric="auc")
    none = ask(world, tmp_path / "none", SHORT, source=source).document
    assert "not a recommendation" in none.lines[-1]


def test_a_merged_model_that_is_best_is_the_plan(tmp_path: Path) -> None:
    def scorer(run: Run, task: str) -> float:
        return 0.97 if run.label == "merged" and sound(run, task) > 0.6 else sound(run, task)

    adapters = Transformer(path="nowhere", tune="adapters")
    with pytest.MonkeyPatch.context() as patch:  # of frozen features nothing is made up
        patch.setattr("taskmix.adviser._adviser.rung_below", lambda run, tasks: None)
        advised = ask(World(scorer), tmp_path, SHORT, architecture=adapters)
    plan = advised.plan()
    assert plan.merge == Merge()
    assert set(plan.tasks) == set(TASKS)
    assert "merge the models into one" in all_words(advised)


@pytest.mark.parametrize("architecture", [Perceptron(), Transformer(path="nowhere", tune="all")])
def test_models_from_scratch_and_copies_of_all_weights_are_not_merged(
    tmp_path: Path, architecture: Architecture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("taskmix.adviser._adviser.rung_below", lambda run, tasks: None)
    found = ask(World(), tmp_path, "1200-steps", source=SMALL, architecture=architecture)
    assert "merged" not in seeds(found)


def test_bad_input_is_told_in_words(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="should be one of the tasks"):
        ask(World(), tmp_path / "study", target="nonsense")
    for wrong in ({"level": 1.5}, {"batches": 0}):
        with pytest.raises(OptionError):
            AdviseOptions(budget=Budget(batches=5), **wrong)
    whole = classes("a", 9)
    without_dev = replace(whole, splits={"train": whole.splits["train"]})
    with pytest.raises(InputError, match="Every target should have dev rows"):
        ask(World(), tmp_path / "study", source=Given(without_dev))
    (tmp_path / "bad").mkdir()
    huge = {"version": 2, "asked": {}, "seconds": 10**400, "decisions": {}}
    for text in ("[1]", json.dumps(huge), json.dumps(huge | {"seconds": float("inf")})):
        (tmp_path / "bad" / "ledger.json").write_text(text)
        with pytest.raises(RecordError, match=r"`ledger\.json`"):
            ask(World(), tmp_path / "bad")
