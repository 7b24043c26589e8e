"""Adapters of many models over one frozen base against the usual loop, one model at a time.

Ours is the executor `Fleet` on runs that each draw a task a step: rows of each member's own, tiles, the
optimiser, losses fetched for the record. The seconds are those in the records, so evaluation and the
writing of records are apart, and so is the first half of the steps, with the compiler and a graph made
in it; the fleet compiles here whatever the length of the runs, as it does for long ones. The usual loop
has the same network of transformers in bfloat16 (on the CPU float32) with low-rank adapters put into its
linear modules, the fused AdamW, and batches that lie on the device. Weights are random, in the shapes of
the models named: speed does not depend on them. All texts have the length named, so nothing is padding.

    python benchmarks/adapters.py [--device cuda] [--only minilm,smollm,heads] [--quick] [--json]
"""

from __future__ import annotations

import os
import random
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch
from torch import nn

from _common import report, row
from _fleet_peers import loop_seconds, usual_loop
from taskmix.engine import Fleet, GivenTasks, Optimization, Run
from taskmix.models import Perceptron, Transformer, outline_of
from taskmix.records import Study
from taskmix.tasks import TaskSet, tables_as_tasks

WORDS = [f"w{number}" for number in range(500)]
TASKS = ("a", "b", "c", "d")
SIZES = {"train": 512, "dev": 8, "test": 8}
LONGEST = 130  # words of a text, more than any model here reads
FEATURES = 384  # of vectors as a frozen encoder gives them
PEAK = 989e12  # operations a second of an H200 in bfloat16, dense


def texts() -> TaskSet:
    chance = random.Random(0)

    def table(rows: int) -> pa.Table:
        found = [" ".join(chance.choices(WORDS, k=LONGEST)) for _ in range(rows)]
        return pa.table({"text": found, "label": chance.choices(["no", "yes"], k=rows)})

    return tables_as_tasks({name: {s: table(n) for s, n in SIZES.items()} for name in TASKS})


def vectors() -> TaskSet:
    generator = torch.Generator().manual_seed(0)

    def table(rows: int) -> pa.Table:
        values = torch.randn(rows, FEATURES, generator=generator).numpy()
        labels = ["yes" if value > 0 else "no" for value in values[:, 0]]
        return pa.table({f"x{n}": column for n, column in enumerate(values.T)} | {"label": labels})

    return tables_as_tasks({name: {s: table(n) for s, n in SIZES.items()} for name in TASKS})


def make_model(folder: Path, config: Any) -> str:
    """A model with random weights and a tokenizer of words, as Hugging Face keeps them."""
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    torch.manual_seed(0)
    causal = config.model_type == "llama"
    kind = transformers.AutoModelForCausalLM if causal else transformers.AutoModel
    kind.from_config(config).save_pretrained(folder)
    vocabulary = {piece: place for place, piece in enumerate(["[PAD]", "[CLS]", "[SEP]", *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[SEP]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", eos_token="[SEP]", unk_token="[SEP]"
    ).save_pretrained(folder)
    return str(folder)


def minilm() -> Any:
    from transformers import BertConfig

    return BertConfig(
        vocab_size=30522,
        hidden_size=384,
        num_hidden_layers=6,
        num_attention_heads=12,
        intermediate_size=1536,
    )


def smollm() -> Any:
    from transformers import LlamaConfig

    return LlamaConfig(
        vocab_size=49152,
        hidden_size=576,
        num_hidden_layers=30,
        num_attention_heads=9,
        num_key_value_heads=3,
        intermediate_size=1536,
        tie_word_embeddings=True,
        max_position_embeddings=2048,
    )


class LowRank(nn.Module):
    """As PEFT writes it: the frozen module, and two thin ones in float32."""

    def __init__(self, base: nn.Linear, rank: int = 8, scale: float = 2.0) -> None:
        super().__init__()
        self.base, self.scale = base, scale
        self.lora_a = nn.Linear(base.in_features, rank, bias=False, device=base.weight.device)
        self.lora_b = nn.Linear(rank, base.out_features, bias=False, device=base.weight.device)
        nn.init.zeros_(self.lora_b.weight)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        low = self.lora_b(self.lora_a(inputs.to(self.lora_a.weight.dtype)))
        found: torch.Tensor = self.base(inputs)
        return found + (low * self.scale).to(found.dtype)


class Frozen(nn.Module):
    """A frozen network with adapters; gives one code for each text."""

    def __init__(self, path: str, precision: str) -> None:
        import transformers

        super().__init__()
        dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
        self.network = transformers.AutoModel.from_pretrained(path, dtype=dtype)
        self.network.requires_grad_(False)
        for name, module in list(self.network.named_modules()):
            if name.rpartition(".")[2] in ("query", "value", "q_proj", "v_proj"):
                parent, _, last = name.rpartition(".")
                setattr(self.network.get_submodule(parent), last, LowRank(module))

    def forward(self, batch: Any) -> torch.Tensor:
        states: torch.Tensor = self.network(**batch).last_hidden_state
        return states.mean(dim=1).float()


class WithHeads(nn.Module):
    """An encoder, and a linear head for each task."""

    def __init__(self, encoder: nn.Module, width: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.heads = nn.ModuleList(nn.Linear(width, 2) for _ in TASKS)

    def forward(self, batch: Any, task: int) -> torch.Tensor:
        found: torch.Tensor = self.heads[task](self.encoder(batch))
        return found


def fleet_seconds(run: Run, members: int, steps: int) -> float:
    """Of one model's step inside a fleet, by the records; the steps before the first graph apart."""
    runs = [replace(run, seed=seed, steps=steps) for seed in range(members)]
    with tempfile.TemporaryDirectory() as folder:
        study = Study(folder)
        results = Fleet(workers=1, chunk=members).run(runs, study)
        assert all(each.is_done for each in results), results[0].error
        seconds = [
            each.folder(study).steps(["seconds"]).column("seconds").to_numpy() for each in runs
        ]
    late = [each[steps // 2 :] for each in seconds]
    return float(sum(each.sum() for each in late)) / (members * len(late[0]))


def operations(architecture: Transformer, batch: int) -> float:
    """Of a step: the frozen linear modules, forward and back to their inputs."""
    network = outline_of(architecture.path).network
    weights = sum(m.weight.numel() for m in network.modules() if isinstance(m, nn.Linear))
    return 4.0 * weights * batch * architecture.max_length


def against_loop(
    case: str,
    run: Run,
    model: nn.Module,
    members: tuple[int, ...],
    *,
    steps: int,  # of ours
    usual: int,  # of the peer's
) -> list[dict[str, Any]]:
    tasks = run.architecture.encoding.encode(run.load())
    loop = usual_loop(run, tasks, model, partial(torch.optim.AdamW, fused=True))
    peer = 1 / loop_seconds(loop, usual, rounds=1, device=run.device)
    found = []
    for count in members:
        ours = 1 / fleet_seconds(run, count, steps)
        each = row(f"{case}, {count} members", ours, peer, "usual loop", "steps/s")
        if run.device != "cpu" and isinstance(run.architecture, Transformer):
            done = operations(run.architecture, run.batch_size) * ours
            each["share of the bfloat16 peak"] = done / PEAK
        found.append(each)
    return found


def adapters(name: str, config: Any, device: str, batch: int, length: int) -> list[dict[str, Any]]:
    gpu = device != "cpu"
    most = 128 if config.model_type == "bert" else 32
    with tempfile.TemporaryDirectory() as folder:
        path = make_model(Path(folder), config)
        run = Run(
            label="benchmark",
            source=GivenTasks.of(texts()),
            architecture=Transformer(
                path=path, max_length=length, tune="adapters", head_dropout=0.0
            ),
            optimization=Optimization(optimizer="adamw", learning_rate=5e-4),
            batch_size=batch,
            steps=1,
            seed=0,
            device=device,
            precision="bfloat16" if gpu else "float32",
        )
        model = WithHeads(Frozen(path, run.precision), config.hidden_size)
        members, steps, usual = ((1, 16, most), 60, 60) if gpu else ((2,), 4, 6)
        case = f"{name}, {batch} x {length}"
        return against_loop(case, run, model, members, steps=steps, usual=usual)


def heads(device: str) -> list[dict[str, Any]]:
    """Perceptrons on vectors that are there: the loop of one model after another does the same."""
    run = Run(
        label="benchmark",
        source=GivenTasks.of(vectors()),
        architecture=Perceptron(hidden=(64,)),
        optimization=Optimization(optimizer="adamw", learning_rate=1e-3),
        batch_size=32,
        steps=1,
        seed=0,
        device=device,
    )
    model = WithHeads(nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU()), 64)
    case = f"heads on {FEATURES} features, batch 32"
    return against_loop(case, run, model, (64,), steps=300, usual=1000)


def measure(quick: bool, device: str, only: str) -> list[dict[str, Any]]:
    os.environ.setdefault("TASKMIX_COMPILE", "always" if device != "cpu" else "0")
    wanted, rows = only.split(","), []
    if "minilm" in wanted:
        rows += adapters("MiniLM-L6", minilm(), device, 32, 64)
    if "smollm" in wanted and not (quick and device == "cpu"):
        rows += adapters("SmolLM2-135M", smollm(), device, 8, 128)
    if "heads" in wanted:
        rows += heads(device)
    return rows


if __name__ == "__main__":
    only = {"default": "minilm,smollm,heads", "help": "some of these"}
    report("adapters", measure, __doc__ or "", device=True, options={"--only": only})
