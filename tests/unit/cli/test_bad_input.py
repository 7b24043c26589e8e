"""Bad input ends in one sentence and exit code 2, and nothing is written."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from .running import Program

REFUSED = {  # the beginning of a line, its ends, and what is said of each
    "train TEXTS --steps 3": [
        ("--policy greedy", "`--policy` should be"),
        ("--policy tempered:x", "`temperature` of `tempered` should be a number"),
        ("--policy tempered:2,limit=0", "whole number of rows, 1 or more"),
        ("--policy tempered:2,top=9", "should be followed by temperature=, limit="),
        ("--policy capped:2.5", "should be a whole number"),
        ("--policy capped:0", "whole number of rows, 1 or more"),
        ("--policy uniform:3", "should stand alone"),
        ("--policy fixed:0.5,0.3,0.2", "one number per task"),
        ("--policy scheduled:0=x", "should be numbers with commas between them"),
        ("--policy scheduled:5=0.5,0.5", "should start at step 0"),
        ("--policy exp3s:speed=2", "followed by eta=, epsilon=, propensity="),
        ("--policy exp3s:epsilon=2", "`epsilon` should lie above 0"),
        ("--reward fame", "`--reward` should be"),
        ("--reward hard/loud", "Found the mark /loud"),
        ("--reward hard --weighting equal", "should go with one task a step"),
        ("--plan nowhere.json", "should be a plan"),
        ("--policy uniform --weighting equal", "Found --policy and --weighting"),
        ("--weighting fixed:1,2,3", "one number for each task"),
        ("--only fruit,vegetable", "vegetable"),
        ("--learning-rate 0", "a number above 0"),
        ("--learning-rate -1", "a number above 0"),
        ("--learning-rate nan", "a number above 0"),
        ("--clip-norm 0", "above 0"),
        ("--clip-norm -1", "largest norm of a gradient"),
        ("--model no/such/encoder", "no/such/encoder"),
        ("--vectors nowhere.txt", "nowhere.txt"),
        ("--device toaster", "a device of PyTorch"),
        ("--model bilstm --max-length 9", "reads whole texts"),
    ],
    "train TEXTS": [
        ("--tune all", "should go with a pretrained model"),
        ("--rank 4", "should go with a pretrained model"),
        ("--adapter somewhere", "should go with a pretrained model"),
        ("--address somewhere", "`--address` should go with --engine ray"),
        ("--store somewhere", "`--store` should go with --engine ray"),
    ],
    "train digits --only parity,half --weighting": [
        ("bandits", "Did you mean `bandit`"),
        ("equal:1", "should stand alone"),
        ("fixed", "should be numbers"),
        ("fixed:1,x", "should be numbers"),
        ("bandit:radius=", "`radius` of `bandit` should be a number. Found ''"),
        ("bandit:radius=nan", "should be a number"),
        ("bandit:rho=1", "should be followed by radius=, step_size="),
        ("bandit:1,2", "Found '2'"),
        ("bandit:1,radius=2", "given once"),
        ("bandit:-1", "should be above 0"),
        ("mgda:l3", "l3"),
        ("stch:logarithm=yes", "true or false"),
        ("random:1.5", "a whole number"),
    ],
    "transfer TABLES --workers 1 --engine here --alone 1 --held-out 3": [
        ("--steps 1", "Either --target or --all should be given. Found neither"),
        ("--target a --all --steps 1", "Either --target or --all should be given. Found both"),
        (
            "--target none --steps 1",
            "The target should be one of the tasks a, b, c, d, e. Found `none`",
        ),
        ("--target a --only a,b,c --steps 1", "at least 3 source tasks. Found 2"),
        ("--target a --subsets 9 --standard-error 0.1 --steps 1", "Found both"),
        ("--target a --standard-error -1 --steps 1", "standard error above zero"),
        ("--target a --size 7 --steps 1", "between 1 and the number of sources"),
        ("--all --largest-group 1 --groups 2 --steps 1", "5 tasks should fit into 2 groups"),
        ("--target a --steps-of all-tasks --steps 2", "should have a batch of each"),
        ("--target a --subsets 1 --size 2 --steps 1", "Every source should be in a subset"),
        ("--all --subsets 2 --size 2 --steps 1", "Ask for more `--subsets`"),
        (
            "--target a --subsets 3 --size 3 --steps 1",
            "3 different ones would be trained, of rank 3. Ask for more `--subsets`, or pass "
            "`--shrink` or `--ridge`",
        ),
    ],
    "advise TEXTS": [
        ("--budget soon", "A budget should be a time"),
        ("--target nowhere", "should be one of the tasks"),
    ],
    "laws simulate TEXTS --out made": [
        ("--alpha 0.9", "or --real should name one"),
        ("--real fruit", "Either --alpha or --ami should be given"),
        ("--real fruit --alpha much", "`--alpha` should be a number"),
        ("--real fruit --alpha 0.9 --samples 2.5", "`--samples` should be whole"),
        ("--real other --alpha 0.9", "other"),
        ("--real fruit --alpha 0.9 --samples 100000", "samples"),
        ("--positives 0.06", "is gone"),
    ],
    "report none": [
        ("--live --json", "`--live` should come without `--page` and `--json`"),
        ("--live --page x.html", "`--live` should come without `--page` and `--json`"),
        ("--live", "Found no folder there"),
    ],
    "check": [
        ("nowhere/", "Found nothing in nowhere"),
        ("digits", "the demo's tasks, which are made and not read"),
    ],
}
LINES = [(f"{begin} {end}", said) for begin, ends in REFUSED.items() for end, said in ends]


@pytest.mark.parametrize(("line", "sentence"), LINES, ids=[line for line, _ in LINES])
def test_bad_input_is_one_sentence_and_nothing_is_written(
    line: str,
    sentence: str,
    folder: Path,
    tables: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cli: Program,
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.chdir(tmp_path)
    places = {"TEXTS": folder, "TABLES": tables}
    before = set(tmp_path.iterdir())
    assert sentence in cli.refused(*(places.get(word, word) for word in shlex.split(line)))
    # What only the run itself finds out leaves a study without a run that has begun.
    left = {tmp_path / "study"} if line.startswith("train TEXTS --steps 3") else set()
    assert set(tmp_path.iterdir()) - before <= left
    assert not list(tmp_path.glob("study/*/steps/*"))
