"""Levanter: a YAML with `data.components` and `data.train_weights`, which may be a list of stages.

A stage begins at a step. Levanter mixes in blocks of rows that are all alike, and a stage has to begin
with a block: so the block is made small enough for the run, and begins are rounded to blocks.
"""

from __future__ import annotations

from math import gcd

from taskmix.errors import InputError
from taskmix.plans._export._mixture import Mixture, exact
from taskmix.plans._export._sources import DataSource
from taskmix.plans._export._target import ExportTarget, header, in_quotes, plain_number, text

BLOCK = 2048  # Levanter's own
BLOCKS_OF_A_RUN = 32  # at least: a begin is then rounded by a sixtieth of the run at most


def _write(mixture: Mixture) -> dict[str, str]:
    names = [source.plain for source in mixture.sources]
    block = _block(mixture)
    lines = [
        *header("Levanter", "Say your tokenizer and your model in the same file."),
        "data:",
        "  components:",
    ]
    for name, source in zip(names, mixture.sources, strict=True):
        lines += [
            f"    {in_quotes(name)}:",
            "      source:",
            "        type: url",
            f"        train_urls: [{in_quotes(source.file)}]",
            f"      format: {_format(source)}",
        ]
    if len(mixture.stages) == 1:
        lines += ["  train_weights:", *_weights(names, mixture.shares, "    ")]
    else:
        lines.append("  train_weights:")
        for step, shares in _steps(mixture, block).items():
            lines += [f"    - - {step}", *_weights(names, shares, "      - ", "        ")]
    lines.append(f"  mixture_block_size: {block}")
    if mixture.steps is not None or mixture.batch_size is not None:
        lines.append("trainer:")
    if mixture.batch_size is not None:
        lines.append(f"  train_batch_size: {mixture.batch_size}")
    if mixture.steps is not None:
        lines.append(f"  num_train_steps: {mixture.steps}")
    return {mixture.file("mixture", "yaml"): text(lines)}


def _weights(
    names: list[str], shares: tuple[float, ...], first: str, then: str | None = None
) -> list[str]:
    pairs = [
        f"{in_quotes(n)}: {plain_number(share)}" for n, share in zip(names, shares, strict=True)
    ]
    return [first + pairs[0], *((then or first) + pair for pair in pairs[1:])]


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


def _format(source: DataSource) -> str:
    match source.form:
        case "messages":
            return "{type: chat}"
        case "prompt":
            prompt, answer = in_quotes(source.prompt or ""), in_quotes(source.answer or "")
            return f"{{type: supervised, input_key: {prompt}, target_key: {answer}}}"
        case "text":
            return "{type: text}"
    return "{type: text}  # REPLACE-ME: say how these rows are written"


LEVANTER = ExportTarget(
    word="levanter",
    trainer="Levanter",
    write=_write,
    usage="levanter.main.train_lm --config_path YOURS.yaml, with the lines of mixture.yaml in it",
    documentation="https://levanter.readthedocs.io/en/latest/reference/Data-Formats/",
    checked="Levanter 0.2.20 (marin-levanter), by its `LmDataConfig`",
    says_stages=True,
    packs=True,
)
