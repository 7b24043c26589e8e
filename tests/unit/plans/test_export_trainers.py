"""Exported plans as the trainers' own parsers read them; a trainer that is not installed is skipped.

datasets and TRL come with the tests. The others do not fit beside our pins; docs/plan-export.md says
which versions these tests were run with.
"""

from __future__ import annotations

import importlib
import json
import runpy
import sys
import types
from collections import Counter
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

import pytest

from taskmix.plans import Length, Part, Plan, Shares, Stage, Stages, export_plan

SHARES = (0.25, 0.75)
NAMES = ("a", "b")


def plan(stages: bool = False) -> Plan:
    division: Shares | Stages = Shares(probabilities=SHARES)
    if stages:
        first, then = (
            Stage(begin=0, probabilities=(0.5, 0.5)),
            Stage(begin=0.5, probabilities=SHARES),
        )
        division = Stages(stages=(first, then))
    part = Part(tasks=NAMES, scored=NAMES, share=1.0, division=division)
    return Plan(parts=(part,), length=Length(batches=100, batch_size=8))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    for name, rows in (("a", 60), ("b", 100)):
        (folder / name).mkdir(parents=True)
        lines = [json.dumps({"prompt": name, "completion": str(n)}) for n in range(rows)]
        (folder / name / "train.jsonl").write_text("\n".join(lines) + "\n")
        (folder / f"{name}_text_document.idx").touch()
    return folder


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = pytest.importorskip("datasets").config
    monkeypatch.setattr(config, "HF_DATASETS_CACHE", tmp_path / "cache")


def without_packages(name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module of a trainer without what its packages import first, which may want a GPU."""
    parts = name.split(".")
    path: list[str] | None = None
    for end in range(1, len(parts)):
        package = ".".join(parts[:end])
        spec = PathFinder.find_spec(package, path)
        if spec is None or spec.submodule_search_locations is None:
            pytest.skip(f"{parts[0]} is not installed")
        bare = types.ModuleType(package)
        path = bare.__path__ = list(spec.submodule_search_locations)
        monkeypatch.setitem(sys.modules, package, bare)
    try:
        return importlib.import_module(name)
    except ImportError as error:
        pytest.skip(f"{name} cannot be imported: {error}")


def read_yaml(path: Path) -> Any:
    return pytest.importorskip("yaml").safe_load(path.read_text())


def test_datasets_interleaves_in_the_plans_shares(data: Path, tmp_path: Path) -> None:
    (script,) = export_plan(plan(), "datasets", tmp_path / "mixture.py", data=data).files
    for streaming in (False, True):
        rows = list(runpy.run_path(str(script))["mixture"](seed=1, streaming=streaming))
        drawn = Counter(row["prompt"] for row in rows)
        assert drawn["b"] / len(rows) == pytest.approx(0.75, abs=0.08)
        assert len({row["completion"] for row in rows if row["prompt"] == "b"}) == 100


def test_trl_reads_the_mixture_and_keeps_the_shares(data: Path, tmp_path: Path) -> None:
    scripts = pytest.importorskip("trl.scripts.utils")
    done = export_plan(plan(), "trl", tmp_path / "mixture.yaml", data=data)
    parser = scripts.TrlParser([scripts.DatasetMixtureConfig])
    config, rest = parser.parse_args_and_config(
        ["--config", str(done.files[0])], return_remaining_strings=True
    )
    assert rest == ["--max_steps", "100", "--per_device_train_batch_size", "8"]
    rows = scripts.get_dataset(config)["train"]
    assert Counter(rows["prompt"]) == {"a": 33, "b": 100}


def test_llamafactory_reads_the_shares_and_the_files(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = without_packages("llamafactory.hparams.data_args", monkeypatch)
    parser = without_packages("llamafactory.data.parser", monkeypatch)
    export_plan(plan(), "llamafactory", tmp_path / "out", data=data)
    options = read_yaml(tmp_path / "out" / "mixture.yaml")
    options = {key: value for key, value in options.items() if key not in ("max_steps",)}
    options.pop("per_device_train_batch_size")
    read = arguments.DataArguments(**options)
    assert read.dataset == list(NAMES)
    assert read.interleave_probs == list(SHARES)
    found = parser.get_dataset_list(read.dataset, str(tmp_path / "out"))
    assert [each.dataset_name for each in found] == [
        str(data / name / "train.jsonl") for name in NAMES
    ]
    assert (found[0].prompt, found[0].response) == ("prompt", "completion")


def test_axolotl_takes_every_entry(data: Path, tmp_path: Path) -> None:
    schema = pytest.importorskip("axolotl.utils.schemas.datasets")
    datasets = pytest.importorskip("datasets")
    (file,) = export_plan(plan(), "axolotl", tmp_path / "mixture.yaml", data=data).files
    entries = [schema.SFTDataset(**each) for each in read_yaml(file)["datasets"]]
    rows = [
        len(datasets.load_dataset(each.ds_type, data_files=each.path, split=each.split))
        for each in entries
    ]
    assert rows == [33, 100]
    assert {each.type.field_output for each in entries} == {"completion"}


def test_megatron_reads_weights_and_prefixes(data: Path, tmp_path: Path) -> None:
    utilities = pytest.importorskip("megatron.core.datasets.utils")
    export_plan(plan(), "megatron", tmp_path / "out", data=data)
    words = (tmp_path / "out" / "blend.txt").read_text().split()
    prefixes, weights = utilities.get_blend_from_list(words)
    assert prefixes == [str(data / f"{name}_text_document") for name in NAMES]
    assert weights == list(SHARES)


def test_megatron_bridge_reads_the_blend_of_nemo(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("megatron.core.datasets.utils")
    without_packages("megatron.bridge.data.loaders", monkeypatch)
    (script,) = export_plan(plan(), "nemo", tmp_path / "mixture.py", data=data).files
    prefixes, weights = runpy.run_path(str(script))["blend"]()
    assert prefixes == [str(data / f"{name}_text_document") for name in NAMES]
    assert weights == list(SHARES)


def test_torchtitan_takes_the_configuration(data: Path, tmp_path: Path) -> None:
    loaders = pytest.importorskip("torchtitan.hf_datasets.text_datasets")
    (script,) = export_plan(plan(), "torchtitan", tmp_path / "mixture.py", data=data).files
    names = runpy.run_path(str(script))
    config = names["dataloader"]()
    assert isinstance(config, loaders.InterleavedChatDataLoader.Config)
    assert [source.weight for source in config.sources] == list(SHARES)
    rows = loaders.load_dataset(
        config.sources[0].dataset_path, **config.sources[0].load_dataset_kwargs
    )
    said = names["messages_of"](rows[0])
    assert [each["role"] for each in said] == ["user", "assistant"]
    assert said[0]["content"] == "a"


@pytest.mark.parametrize("stages", [False, True])
def test_levanter_reads_components_and_weights(stages: bool, data: Path, tmp_path: Path) -> None:
    text = pytest.importorskip("levanter.data.text")
    draccus = pytest.importorskip("draccus")
    mixture = importlib.import_module("levanter.data.mixture")
    schedule = importlib.import_module("levanter.schedule")
    (file,) = export_plan(plan(stages), "levanter", tmp_path / "mixture.yaml", data=data).files
    document = read_yaml(file)
    config = draccus.decode(text.LmDataConfig, document["data"])
    assert set(config.components) == set(NAMES)
    assert config.components["a"].format.target_key == "completion"
    weights = config.train_weights
    if stages:
        batches = schedule.BatchSchedule(document["trainer"]["train_batch_size"])
        weights = mixture.rescale_mixture_schedule_for_batch_schedule(weights, batches)
        assert [begin for begin, _ in weights] == [0, 400]
    mixed = mixture.MixtureDataset(dict.fromkeys(NAMES), weights, config.mixture_block_size, key=0)
    assert mixed.weight_stages[-1][1] == dict(zip(NAMES, SHARES, strict=True))
