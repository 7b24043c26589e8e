"""The trainers that plans are written for, each with the shape of its files.

Most read YAML: a dictionary is written. Others read Python: a script with the plan's table in it. How
each was checked, and with which version, is in docs/plan-export.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import gcd, inf
from string import Template
from typing import Any

from taskmix.errors import InputError
from taskmix.extras import load
from taskmix.plans._export._mixture import Mixture, exact
from taskmix.plans._export._sources import PLACEHOLDER, DataSource

MARK = "# Written by `taskmix plan export`"  # how a file of ours is known again


@dataclass(frozen=True, kw_only=True)
class ExportTarget:
    """A trainer: how a mixture is written for it, and by which documentation."""

    word: str  # what is typed after `--to`
    trainer: str  # its name
    write: Callable[[Mixture], Mapping[str, str]]  # text by the name of its file
    usage: str  # how the trainer is given the files, in a sentence
    documentation: str  # an address
    says_stages: bool = False  # whether one file can have shares that change
    tokens: bool = False  # whether it reads token files made beforehand, and no rows
    packs: bool = False  # whether shares are of packed sequences and not of rows
    any_rows: bool = False  # whether rows may have any columns; otherwise texts or conversations
    has_comments: bool = True  # whether every file it reads can say who wrote it


def _yaml(trainer: str, mixture: Mixture, document: Mapping[str, Any], *words: str) -> str:
    yaml = load("yaml", purpose=f"A plan for {trainer}")
    unknown = [source.task for source in mixture.sources if source.form == "unknown"]
    lines = [f"{MARK} for {trainer}.", *(f"# {line}" for line in words)]
    lines.append(f"# Tasks, in this order: {json.dumps([s.task for s in mixture.sources])}")
    if unknown:
        lines.append(f"# {PLACEHOLDER}: say how the rows of {json.dumps(unknown)} are written.")
    written: str = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=inf)
    return "\n".join(lines) + "\n" + written


def _length(mixture: Mixture, *, steps: str, rows: str) -> dict[str, int]:
    """The plan's length under a trainer's own names."""
    pairs = ((steps, mixture.steps), (rows, mixture.batch_size))
    return {name: value for name, value in pairs if value is not None}


def _python(trainer: str, mixture: Mixture, script: str, **values: object) -> dict[str, str]:
    known = {"steps": mixture.steps, "batch_size": mixture.batch_size, **values}
    text = Template(script).substitute(known)
    return {mixture.file("mixture", "py"): f"{MARK} for {trainer}.\n{text}"}


def _table(mixture: Mixture) -> str:
    """Task: builder, file, share; the entries of a dictionary in Python."""
    pairs = zip(mixture.sources, mixture.shares, strict=True)
    return "".join(f"    {s.task!r}: ({s.builder!r}, {s.file!r}, {share}),\n" for s, share in pairs)


def _datasets(mixture: Mixture) -> dict[str, str]:
    # `all_exhausted` starts a source again that has ended: the shares hold until every row was seen.
    script = """\
# mixture() is the data to train on; cut it at STEPS batches.
from datasets import interleave_datasets, load_dataset

SOURCES = {  # task: builder, file, share of the batches
$sources}
STEPS = $steps  # batches that the plan has for it
BATCH_SIZE = $batch_size


def mixture(seed=0, streaming=False):
    options = {"seed": seed, "buffer_size": 10_000} if streaming else {"seed": seed}
    rows = [
        load_dataset(builder, data_files=file, split="train", streaming=streaming).shuffle(**options)
        for builder, file, _ in SOURCES.values()
    ]
    shares = [share for _, _, share in SOURCES.values()]
    return interleave_datasets(
        rows, probabilities=shares, seed=seed, stopping_strategy="all_exhausted"
    )
"""
    return _python("Hugging Face datasets", mixture, script, sources=_table(mixture))


def _trl(mixture: Mixture) -> dict[str, str]:
    # `fraction` is a share of the mixture. TRL keeps so many rows of every source that none is
    # repeated: the mixture is as large as the source that runs out first allows.
    document = {
        "datasets": [
            {"path": s.builder, "data_files": s.file, "split": "train", "fraction": share}
            for s, share in zip(mixture.sources, mixture.shares, strict=True)
        ],
        **_length(mixture, steps="max_steps", rows="per_device_train_batch_size"),
    }
    words = "Rows should have `messages`, or `prompt` and `completion`."
    return {mixture.file("mixture", "yaml"): _yaml("TRL", mixture, document, words)}


MOST_ENTRIES = 1000  # of a file that people read


def _axolotl(mixture: Mixture) -> dict[str, str]:
    # With the plan's length the epochs are the plan; without it, an epoch is as large as it can be
    # with no row listed twice.
    sizes = [_rows(source) for source in mixture.sources]
    most = min(size / share for size, share in zip(sizes, mixture.shares, strict=True))
    wanted, epochs = most, 1
    if mixture.steps is not None and mixture.batch_size is not None:
        wanted = mixture.steps * mixture.batch_size
        epochs = max(int(wanted / most), 1)  # whole passes that every task takes
    counts = [max(round(share * wanted / epochs), 1) for share in mixture.shares]
    if sum(count // size + 1 for count, size in zip(counts, sizes, strict=True)) > MOST_ENTRIES:
        raise InputError(
            "A plan should repeat its smallest task a few hundred times at most to be written for "
            "Axolotl, which has no weights. Found more. Export to another trainer, or fewer `--steps`."
        )
    kinds: dict[str, dict[str, Any]] = {
        "messages": {"type": "chat_template", "field_messages": "messages"},
        "text": {"type": "completion", "field": "text"},
        "unknown": {"type": "alpaca"},
    }

    def kind(source: DataSource) -> dict[str, Any]:
        if source.form != "prompt":
            return kinds[source.form]
        formats = dict.fromkeys(("format", "no_input_format"), "{instruction}")
        columns = {"field_instruction": source.prompt, "field_output": source.answer}
        return {"type": {**columns, **formats}}

    document = {
        "datasets": [
            {"path": source.file, "ds_type": source.builder, "split": split, **kind(source)}
            for source, size, count in zip(mixture.sources, sizes, counts, strict=True)
            for split in _splits(count, size)
        ],
        "shuffle_merged_datasets": True,
        "num_epochs": epochs,
        **_length(mixture, steps="max_steps", rows="micro_batch_size"),
    }
    words = (
        "Axolotl has no weights, so a task's share is that of its rows: a file is listed as often",
        "as the plan draws it. Leave `dataset_exact_deduplication` off, which would undo that.",
    )
    return {mixture.file("mixture", "yaml"): _yaml("Axolotl", mixture, document, *words)}


def _rows(source: DataSource) -> int:
    if source.rows is None:
        raise InputError(
            "Axolotl has no weights, so a plan's shares are written as numbers of rows, and the files "
            f"should be at hand. Found none for `{source.task}`. Give the folder with `--data`."
        )
    if not source.rows:
        raise InputError(f"`{source.file}` should have rows. Found none.")
    return source.rows


def _splits(count: int, size: int) -> Iterator[str]:
    """The whole file as often as it goes, and a slice of it for the rest."""
    yield from ["train"] * (count // size)
    if count % size:
        yield f"train[:{count % size}]"


def _llamafactory(mixture: Mixture) -> dict[str, str]:
    # `interleave_over` starts a data set again that has ended, as `all_exhausted` above.
    document = {
        "dataset": ",".join(source.plain for source in mixture.sources),
        # LLaMA-Factory reads `dataset_info.json` of a folder and knows no other name.
        "dataset_dir": mixture.label or ".",
        "mix_strategy": "interleave_over",
        "interleave_probs": ",".join(map(str, mixture.shares)),
        **_length(mixture, steps="max_steps", rows="per_device_train_batch_size"),
    }
    tags = {"role_tag": "role", "content_tag": "content", "user_tag": "user"}
    tags |= {"assistant_tag": "assistant", "system_tag": "system"}

    def entry(source: DataSource) -> dict[str, Any]:
        forms: dict[str, dict[str, Any]] = {
            "messages": {
                "formatting": "sharegpt",
                "columns": {"messages": "messages"},
                "tags": tags,
            },
            "prompt": {"columns": {"prompt": source.prompt, "response": source.answer}},
            "text": {"columns": {"prompt": "text"}},
            "unknown": {},  # alpaca's columns, which LLaMA-Factory expects unless told
        }
        return {"file_name": source.file, **forms[source.form]}

    information = {source.plain: entry(source) for source in mixture.sources}
    folder = f"{mixture.label}/" if mixture.label else ""
    words = "Add it to the options of your training; `dataset_dir` is from where you start."
    return {
        mixture.file("mixture", "yaml"): _yaml("LLaMA-Factory", mixture, document, words),
        f"{folder}dataset_info.json": json.dumps(information, indent=2, ensure_ascii=False) + "\n",
    }


def _torchtitan(mixture: Mixture) -> dict[str, str]:
    script = '''\
# Give your `Trainer.Config` the loader: dataloader=dataloader().
from torchtitan.hf_datasets.text_datasets import ChatDataSource, InterleavedChatDataLoader

SOURCES = {  # task: builder, file, share
$sources}
PROMPT, ANSWER = $columns
STEPS = $steps  # batches that the plan has for it: training.steps
BATCH_SIZE = $batch_size  # over all devices: training.global_batch_size


def messages_of(row):
    """How a row becomes a conversation; change it where your columns are others."""
    if "messages" in row:
        return row["messages"]
    said = [{"role": "user", "content": row[PROMPT]}]
    return [*said, {"role": "assistant", "content": row[ANSWER]}]


def dataloader():
    return InterleavedChatDataLoader.Config(
        sources=[
            ChatDataSource(
                dataset_path=builder,
                load_dataset_kwargs={"data_files": file, "split": "train"},
                sample_processor=messages_of,
                weight=share,
            )
            for builder, file, share in SOURCES.values()
        ],
    )
'''
    # The columns of the first task that has some, or the names that most files have.
    prompts = (source.prompt for source in mixture.sources)
    answers = (source.answer for source in mixture.sources)
    columns = (next(filter(None, prompts), "prompt"), next(filter(None, answers), "answer"))
    return _python("TorchTitan", mixture, script, sources=_table(mixture), columns=repr(columns))


def _blend(mixture: Mixture) -> list[tuple[str, str]]:
    """Weights and prefixes as Megatron and NeMo read them: files of `tools/preprocess_data.py`."""
    for source in mixture.sources:
        if len(source.prefix.split()) != 1:
            raise InputError(
                "A path should have no blanks for Megatron, which splits its list there. Found "
                f"`{source.prefix}`. Rename the folder, or give a link with `--path`."
            )
    pairs = zip(mixture.sources, mixture.shares, strict=True)
    return [(str(share), source.prefix) for source, share in pairs]


def _megatron(mixture: Mixture) -> dict[str, str]:
    # Split at white space: no comment can stand in it.
    words = (word for pair in _blend(mixture) for word in pair)
    return {mixture.file("blend", "txt"): " ".join(words) + "\n"}


def _nemo(mixture: Mixture) -> dict[str, str]:
    # NeMo's language models have moved to Megatron Bridge, so the file serves both.
    script = '''\
# Weights and prefixes of token files, as of Megatron's preprocess_data.py.
PATHS = [
$paths]
STEPS = $steps  # batches that the plan has for it
BATCH_SIZE = $batch_size  # over all devices: global_batch_size


def blend():
    """For Megatron Bridge: GPTDatasetConfig(blend=blend(), ...)."""
    from megatron.bridge.data.loaders import get_blend_and_blend_per_split

    return get_blend_and_blend_per_split(data_paths=PATHS)[0]


def data_module(**options):
    """For NeMo 2."""
    from nemo.collections.llm import PreTrainingDataModule

    return PreTrainingDataModule(paths=PATHS, **options)
'''
    paths = "".join(f"    {weight!r}, {prefix!r},\n" for weight, prefix in _blend(mixture))
    return _python("NeMo", mixture, script, paths=paths)


BLOCK = 2048  # rows that are mixed alike, Levanter's own
BLOCKS_OF_A_RUN = 32  # at least: a begin is then rounded by a sixtieth of the run at most


def _levanter(mixture: Mixture) -> dict[str, str]:
    # A stage begins at a step, and with a block: so the block is small enough for the run.
    block = _block(mixture)
    names = [source.plain for source in mixture.sources]

    def weights(shares: tuple[float, ...]) -> dict[str, float]:
        return dict(zip(names, shares, strict=True))

    stages = (
        weights(mixture.shares)
        if len(mixture.stages) == 1
        else [[step, weights(shares)] for step, shares in _steps(mixture, block).items()]
    )
    components = {
        source.plain: {
            "source": {"type": "url", "train_urls": [source.file]},
            "format": _format(source),
        }
        for source in mixture.sources
    }
    data = {"components": components, "train_weights": stages, "mixture_block_size": block}
    trainer = _length(mixture, steps="num_train_steps", rows="train_batch_size")
    document = {"data": data, "trainer": trainer} if trainer else {"data": data}
    words = "Say your tokenizer and your model in the same file."
    return {mixture.file("mixture", "yaml"): _yaml("Levanter", mixture, document, words)}


def _block(mixture: Mixture) -> int:
    if mixture.steps is None or mixture.batch_size is None:
        if len(mixture.stages) > 1:
            raise InputError(
                "A plan whose shares change should say at which steps for Levanter. Found no length in "
                "it. Give `--steps` and `--batch-size`."
            )
        return BLOCK
    block = BLOCK
    while block > 16 and block * BLOCKS_OF_A_RUN > mixture.steps * mixture.batch_size:
        block //= 2
    return block


def _steps(mixture: Mixture, block: int) -> dict[int, tuple[float, ...]]:
    """When each stage begins; of stages that begin together the last is kept."""
    assert mixture.steps is not None
    assert mixture.batch_size is not None
    unit = block // gcd(block, mixture.batch_size)  # steps whose rows fill whole blocks
    return {
        round(stage.begin * mixture.steps / unit) * unit: exact(stage.probabilities)
        for stage in mixture.stages
    }


def _format(source: DataSource) -> dict[str, Any]:
    if source.form == "prompt":
        return {"type": "supervised", "input_key": source.prompt, "target_key": source.answer}
    return {"type": "chat" if source.form == "messages" else "text"}


_ALL = (
    ExportTarget(
        word="datasets",
        trainer="Hugging Face datasets",
        write=_datasets,
        usage="Import the file and train on `mixture()`; it ends when every row was seen, so say the "
        "steps.",
        documentation="https://huggingface.co/docs/datasets/process#interleave",
        any_rows=True,
    ),
    ExportTarget(
        word="trl",
        trainer="TRL",
        write=_trl,
        usage="trl sft --config mixture.yaml --model_name_or_path MODEL",
        documentation="https://huggingface.co/docs/trl/script_utils#trl.DatasetMixtureConfig",
    ),
    ExportTarget(
        word="axolotl",
        trainer="Axolotl",
        write=_axolotl,
        usage="axolotl train YOURS.yaml, with the lines of mixture.yaml in it",
        documentation="https://docs.axolotl.ai/docs/config-reference.html",
    ),
    ExportTarget(
        word="llamafactory",
        trainer="LLaMA-Factory",
        write=_llamafactory,
        usage="llamafactory-cli train YOURS.yaml, with the lines of mixture.yaml in it",
        documentation="https://llamafactory.readthedocs.io/en/latest/getting_started/"
        "data_preparation.html",
        has_comments=False,
    ),
    ExportTarget(
        word="torchtitan",
        trainer="TorchTitan",
        write=_torchtitan,
        usage="Put the file beside your config functions and give them dataloader=dataloader()",
        documentation="https://github.com/pytorch/torchtitan/blob/main/torchtitan/hf_datasets/"
        "text_datasets.py",
        packs=True,
    ),
    ExportTarget(
        word="megatron",
        trainer="Megatron-LM",
        write=_megatron,
        usage="pretrain_gpt.py ... --data-args-path blend.txt --split 99,1,0",
        documentation="https://github.com/NVIDIA/Megatron-LM/blob/main/megatron/training/"
        "arguments.py",
        tokens=True,
        packs=True,
        has_comments=False,
    ),
    ExportTarget(
        word="nemo",
        trainer="NeMo",
        write=_nemo,
        usage="Import the file: blend() for Megatron Bridge, data_module() for NeMo 2",
        documentation="https://docs.nvidia.com/nemo/megatron-bridge/latest/",
        tokens=True,
        packs=True,
    ),
    ExportTarget(
        word="levanter",
        trainer="Levanter",
        write=_levanter,
        usage="levanter.main.train_lm --config_path YOURS.yaml, with the lines of mixture.yaml in it",
        documentation="https://levanter.readthedocs.io/en/latest/reference/Data-Formats/",
        says_stages=True,
        packs=True,
    ),
)
TARGETS: Mapping[str, ExportTarget] = {target.word: target for target in _ALL}
