"""TorchTitan: a Python file with the configuration of its interleaved loader of conversations."""

from __future__ import annotations

from taskmix.plans._export._mixture import Mixture
from taskmix.plans._export._sources import DataSource
from taskmix.plans._export._target import ExportTarget, header, plain_number, text


def _write(mixture: Mixture) -> dict[str, str]:
    lines = [
        *header("TorchTitan", "Give your `Trainer.Config` the loader: dataloader=dataloader()."),
        "from torchtitan.hf_datasets.text_datasets import ChatDataSource, InterleavedChatDataLoader",
        "",
        f"STEPS = {mixture.steps}  # batches that the plan has for it: training.steps",
        f"BATCH_SIZE = {mixture.batch_size}  # over all devices: training.global_batch_size",
        "",
        "",
        "def messages_of(row):",
        '    """How a row becomes a conversation; change it where your columns are others."""',
        '    if "messages" in row:',
        '        return row["messages"]',
        f"    prompt, answer = row[{_first(mixture, 'prompt')!r}], row[{_first(mixture, 'answer')!r}]",
        '    said = [{"role": "user", "content": prompt}]',
        '    return [*said, {"role": "assistant", "content": answer}]',
        "",
        "",
        "def dataloader():",
        "    return InterleavedChatDataLoader.Config(",
        "        sources=[",
    ]
    for source, share in zip(mixture.sources, mixture.shares, strict=True):
        lines += [
            f"            ChatDataSource(  # task {source.task!r}",
            f"                dataset_path={source.builder!r},",
            f'                load_dataset_kwargs={{"data_files": {source.file!r}, "split": "train"}},',
            "                sample_processor=messages_of,",
            f"                weight={plain_number(share)},",
            "            ),",
        ]
    lines += ["        ],", "    )"]
    return {mixture.file("mixture", "py"): text(lines)}


def _first(mixture: Mixture, what: str) -> str:
    """A column of the first task that has one, or the name that most files have."""
    columns = (_column(source, what) for source in mixture.sources)
    return next((name for name in columns if name), what)


def _column(source: DataSource, what: str) -> str | None:
    return source.prompt if what == "prompt" else source.answer


TORCHTITAN = ExportTarget(
    word="torchtitan",
    trainer="TorchTitan",
    write=_write,
    usage="Put the file beside your config functions and give them dataloader=dataloader()",
    documentation=(
        "https://github.com/pytorch/torchtitan/blob/main/torchtitan/hf_datasets/text_datasets.py"
    ),
    checked="TorchTitan 0.3.0, by its configuration classes",
    packs=True,
)
