"""Adapters of many models over one frozen base against the usual loop, one model at a time.

Ours is the executor `Fleet` on runs that each draw a task a step: rows of each member's own, tiles, the
optimiser, losses fetched for the record. The seconds are those in the records, so evaluation and the
writing of records are apart, and so is the first half of the steps, with the compiler and a graph made
in it; the fleet compiles here whatever the length of the runs, as it does for long ones. The usual loop
has the same network of transformers in bfloat16 (on the CPU float32) with low-rank adapters put into its
linear modules, the fused AdamW, and batches that lie on the device. Weights are random, in the shapes of
the models named: speed does not depend on them. All texts have the length named, so nothing is padding.

    python benchmarks/adapters.py [--device cuda] [--only minilm,smollm,swarm,heads] [--quick] [--json]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch
from torch import nn
from torch.nn import functional

from _common import row
from taskmix.engine import Fleet, Optimization, Run
from taskmix.models import Architecture, Perceptron, Transformer
from taskmix.records import Study
from taskmix.tasks import TaskSet, tables_as_tasks

WORDS = [f"w{number}" for number in range(500)]
TASKS = ("a", "b", "c", "d")
PEAK = 989e12  # operations a second of an H200 in bfloat16, dense


@dataclass(frozen=True)
class Texts:
    """Tasks of texts that are longer than any model here reads."""

    rows: int = 512
    longest: int = 130
    kind: str = "text"

    def load(self) -> TaskSet:
        chance = random.Random(0)

        def text() -> str:
            return " ".join(chance.choices(WORDS, k=self.longest))

        def table(count: int) -> pa.Table:
            texts = [text() for _ in range(count)]
            labels = [chance.choice(["no", "yes"]) for _ in range(count)]
            return pa.table({"text": texts, "label": labels})

        return tables_as_tasks(
            {name: {"train": table(self.rows), "dev": table(8), "test": table(8)} for name in TASKS}
        )


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


def usual_seconds(path: str, run: Run, steps: int) -> float:
    """Of one model's step in the usual loop."""
    import transformers

    device = torch.device(run.device)
    dtype = torch.bfloat16 if run.precision == "bfloat16" else torch.float32
    network = transformers.AutoModel.from_pretrained(path, dtype=dtype).to(device)
    network.requires_grad_(False)
    for name, module in list(network.named_modules()):
        if name.rpartition(".")[2] in ("query", "value", "q_proj", "v_proj"):
            parent, _, last = name.rpartition(".")
            setattr(network.get_submodule(parent), last, LowRank(module))
    architecture: Any = run.architecture
    tasks = architecture.encoding.encode(run.load()).to(device)
    heads = nn.ModuleList(nn.Linear(network.config.hidden_size, 2) for _ in tasks).to(device)
    trained = [p for p in network.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW([*trained, *heads.parameters()], lr=5e-4, fused=True)
    chance = random.Random(0)
    network.train()

    def step() -> torch.Tensor:
        place = chance.randrange(len(tasks))
        split = tasks[place].splits["train"]
        rows = torch.randint(len(split), (run.batch_size,), device=device)
        batch = split.inputs.batch(rows)
        states = network(**batch).last_hidden_state
        loss = functional.cross_entropy(
            heads[place](states.mean(dim=1).float()), split.targets[rows]
        )
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(5):
        step()
    return timed(lambda: [step() for _ in range(steps)][-1].item(), device) / steps


def timed(work: Callable[[], Any], device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize()
    begin = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - begin


def fleet_seconds(run: Run, members: int, steps: int) -> float:
    """Of one model's step inside a fleet, by the records; the steps before the first graph apart."""
    from dataclasses import replace

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
    from taskmix.models import outline_of

    network = outline_of(architecture.path).network
    weights = sum(m.weight.numel() for m in network.modules() if isinstance(m, nn.Linear))
    return 4.0 * weights * batch * architecture.max_length


def template(architecture: Architecture, device: str, batch: int, rate: float) -> Run:
    return Run(
        label="benchmark",
        source=Texts(),
        architecture=architecture,
        optimization=Optimization(optimizer="adamw", learning_rate=rate),
        batch_size=batch,
        steps=1,
        seed=0,
        device=device,
        precision="bfloat16" if device == "cuda" else "float32",
    )


def adapters(
    name: str, path: str, device: str, batch: int, length: int, members: tuple[int, ...], steps: int
) -> list[dict[str, Any]]:
    architecture = Transformer(path=path, max_length=length, tune="adapters", head_dropout=0.0)
    run = template(architecture, device, batch, 5e-4)
    usual = usual_seconds(path, run, 60 if device == "cuda" else 6)
    rows = []
    for count in members:
        seconds = fleet_seconds(run, count, steps)
        found = row(
            f"{name}, {batch} x {length}, {count} members",
            1 / seconds,
            1 / usual,
            "usual loop",
            "steps/s",
        )
        share = operations(architecture, batch) / seconds / PEAK
        rows.append(found | {"share_of_bf16_peak": share if device == "cuda" else None})
        print(
            f"{found['case']}: {found['ours']:.0f} steps/s, x {found['ratio']:.1f}", file=sys.stderr
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description="Adapters as a fleet against the usual loop.")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", default="minilm,smollm,swarm,heads")
    parser.add_argument("--members", default=None, help="such as 16,128")
    parser.add_argument("--steps", type=int, default=None)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    os.environ.setdefault("TASKMIX_COMPILE", "always" if options.device != "cpu" else "0")
    begin, rows = time.monotonic(), []
    gpu = options.device != "cpu"
    given = options.members and tuple(map(int, options.members.split(",")))
    steps = options.steps or (60 if gpu else 4)
    wanted = options.only.split(",")
    with tempfile.TemporaryDirectory() as folder:
        if "minilm" in wanted:
            path = make_model(Path(folder) / "minilm", minilm())
            counts = given or ((1, 16, 128) if gpu else (2,))
            rows += adapters("MiniLM-L6", path, options.device, 32, 64, counts, steps)
        if "smollm" in wanted and (gpu or not options.quick):
            path = make_model(Path(folder) / "smollm", smollm())
            counts = given or ((1, 16, 32) if gpu else (2,))
            rows += adapters("SmolLM2-135M", path, options.device, 8, 128, counts, steps)
        if "swarm" in wanted:  # whole models, every weight of which is trained
            import swarm

            rows += swarm.measure(options.quick, options.device)
        if "heads" in wanted:
            rows += heads(options.device, given or (64,), options.steps or 300)
    if options.json:
        command = "python benchmarks/adapters.py " + " ".join(sys.argv[1:])
        found = {
            "experiment": "adapters",
            "command": command.strip(),
            "seconds": round(time.monotonic() - begin, 1),
            "rows": rows,
        }
        print(json.dumps(found, indent=2))
        return
    for each in rows:
        share = each.get("share_of_bf16_peak")
        words = "" if share is None else f"  {share:.1%} of the bfloat16 limit"
        beside = "" if not each["peer"] else f", {each['peer_name']} {each['peer']:.1f}"
        ratio = "" if not each["ratio"] else f": x {each['ratio']:.1f}"
        print(f"{each['case']:40} {each['ours']:9.1f} {each['unit']}{beside}{ratio}{words}")


@dataclass(frozen=True)
class Vectors:
    """Tasks of vectors as a frozen encoder gives them."""

    features: int = 384
    rows: int = 1000

    def load(self) -> TaskSet:
        generator = torch.Generator().manual_seed(0)

        def table(count: int) -> pa.Table:
            values = torch.randn(count, self.features, generator=generator).numpy()
            columns = {f"x{place}": values[:, place] for place in range(self.features)}
            labels = ["yes" if value > 0 else "no" for value in values[:, 0]]
            return pa.table(columns | {"label": labels})

        return tables_as_tasks(
            {name: {"train": table(self.rows), "dev": table(8), "test": table(8)} for name in TASKS}
        )


def heads(device: str, members: tuple[int, ...], steps: int) -> list[dict[str, Any]]:
    """Perceptrons on vectors that are there: the loop of one model after another does the same."""
    from dataclasses import replace

    architecture = Perceptron(hidden=(64,))
    run = replace(template(architecture, device, 32, 1e-3), source=Vectors(), precision="float32")
    usual = usual_head_seconds(run, 1000)
    rows = []
    for count in members:
        seconds = fleet_seconds(run, count, steps)
        found = row(
            f"heads on 384 features, batch 32, {count} members",
            1 / seconds,
            1 / usual,
            "usual loop",
            "steps/s",
        )
        rows.append(found)
    return rows


def usual_head_seconds(run: Run, steps: int) -> float:
    device = torch.device(run.device)
    tasks = run.architecture.encoding.encode(run.load()).to(device)
    shared = nn.Sequential(nn.Linear(384, 64), nn.ReLU()).to(device)
    outputs = nn.ModuleList(nn.Linear(64, 2) for _ in tasks).to(device)
    both = [*shared.parameters(), *outputs.parameters()]
    chance = random.Random(0)
    best = math.inf
    for fused in (False, True):
        optimizer = torch.optim.AdamW(both, lr=1e-3, fused=fused)

        def step(optimizer: torch.optim.Optimizer = optimizer) -> torch.Tensor:
            place = chance.randrange(len(tasks))
            split = tasks[place].splits["train"]
            rows = torch.randint(len(split), (run.batch_size,), device=device)
            answers = outputs[place](shared(split.inputs.batch(rows)))
            loss = functional.cross_entropy(answers, split.targets[rows])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            return loss

        for _ in range(20):
            step()
        best = min(best, timed(lambda: [step() for _ in range(steps)][-1].item(), device) / steps)
    return best


if __name__ == "__main__":
    main()
