"""Answers to prompts, learned by adapters: ours beside a plain loop over transformers.

Both train adapters of the same rank over the same causal model, from the same start, on the same rows in
the same order with the same optimiser. The plain loop shares no code with ours: it makes its own pieces
from the prompts, has the model of transformers compute the loss, takes the adapters of `peft` where that
is installed (otherwise a few lines of its own), and finds exact matches by `generate`.

    TASKMIX_DATA=... python benchmarks/generation.py --model PATH [--device cuda] [--steps 300] [--json]
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from _common import row
from _prompts import Prompts
from taskmix.models import Adapters, HardSharing, Transformer
from taskmix.tasks import EncodedTasks, TaskSet, load_pretrained
from taskmix.training import StepEvent, evaluate, task_loss, train

IGNORED = -100  # transformers' label of a piece that is only read
AT_ONCE = 16  # rows of the plain loop's evaluation


@dataclass(frozen=True)
class Options:
    model: str
    device: torch.device
    steps: int
    batch_size: int
    rank: int
    learning_rate: float
    max_length: int
    seed: int


class Watched:
    """Inputs that note which rows were asked for."""

    def __init__(self, inputs: Any) -> None:
        self._inputs = inputs
        self.rows: list[list[int]] = []

    def __len__(self) -> int:
        return len(self._inputs)

    def batch(self, rows: Tensor) -> Any:
        self.rows.append(rows.tolist())
        return self._inputs.batch(rows)

    def to(self, device: torch.device) -> Watched:
        return self  # they are there already


@dataclass
class Trained:
    """What came of a loop."""

    losses: list[float]
    seconds: float
    scores: dict[str, tuple[float, float]]  # by task, the test loss of a piece and the exact match


def train_ours(options: Options, tasks: TaskSet) -> tuple[Trained, dict[str, Tensor], list[Any]]:
    """Ours; also where the adapters began, and the task and rows of every step."""
    architecture = Transformer(
        path=options.model,
        max_length=options.max_length,
        tune="adapters",
        adapters=Adapters(rank=options.rank),
    )
    encoded = architecture.encoding.encode(tasks).to(options.device)
    torch.manual_seed(options.seed)
    model = architecture.build(encoded).to(options.device)
    begun = {name: value.detach().clone() for name, value in model.named_parameters()}
    watched = [Watched(task.splits["train"].inputs) for task in encoded]
    noting = replace(
        encoded,
        tasks=tuple(
            replace(
                task,
                splits={
                    **task.splits,
                    "train": replace(task.splits["train"], inputs=each),  # type: ignore[arg-type]
                },
            )
            for task, each in zip(encoded, watched, strict=True)
        ),
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.learning_rate)
    events = train(
        model,
        noting,
        steps=options.steps,
        optimizer=optimizer,
        generator=np.random.default_rng(options.seed),
        batch_size=options.batch_size,
        final_splits=(),
    )
    losses, order = [], []
    begin = time.monotonic()
    seconds = 0.0
    for event in events:
        if isinstance(event, StepEvent):
            (place,) = event.tasks
            losses.append(float(event.losses[0]))
            order.append((place, watched[place].rows[-1]))
            seconds = time.monotonic() - begin
    return Trained(losses, seconds, scores_of(model, encoded)), begun, order


def scores_of(model: HardSharing, encoded: EncodedTasks) -> dict[str, tuple[float, float]]:
    found = evaluate(model, encoded, "test", losses=[task_loss(task) for task in encoded])
    values = {(score.task, score.metric): score.value for score in found}
    return {name: (values[name, "loss"], values[name, "exact_match"]) for name in encoded.names}


class PlainLoop:
    """What anyone would write with transformers."""

    def __init__(self, options: Options, tasks: TaskSet, begun: dict[str, Tensor]) -> None:
        self.options = options
        self.tokenizer = load_pretrained("AutoTokenizer", options.model)
        self.model = load_pretrained("AutoModelForCausalLM", options.model).to(options.device)
        self.model.requires_grad_(False)
        self.parameters = self._adapt(begun)
        self.rows = {
            split: [self._pieces(task.splits[split].inputs) for task in tasks]
            for split in ("train", "test")
        }
        self.names = tasks.names

    def _adapt(self, begun: dict[str, Tensor]) -> list[nn.Parameter]:
        starts = {
            name.removeprefix("encoder.adapters.").removesuffix(".lora_A").replace("-", "."): value
            for name, value in begun.items()
            if name.endswith(".lora_A")
        }
        if importlib.util.find_spec("peft") is None:
            return [
                parameter
                for name, start in starts.items()
                for parameter in put_adapter(self.model.base_model, name, start, scale=2.0)
            ]
        import peft

        config = peft.LoraConfig(
            r=self.options.rank,
            lora_alpha=2 * self.options.rank,
            lora_dropout=0.0,
            target_modules=sorted({name.rpartition(".")[2] for name in starts}),
        )
        self.model = peft.get_peft_model(self.model, config)
        for name, module in self.model.named_modules():
            if hasattr(module, "lora_A"):
                start = next(value for end, value in starts.items() if name.endswith(end))
                module.lora_A["default"].weight.data.copy_(start)
        return [each for each in self.model.parameters() if each.requires_grad]

    def _pieces(self, table: Any) -> list[tuple[list[int], list[int]]]:
        """The prompt and the answer of each row."""
        rows = []
        for each in table.to_pylist():
            answer = self.tokenizer(each["answer"], add_special_tokens=False)["input_ids"]
            answer = [*answer, self.tokenizer.eos_token_id]
            if self.tokenizer.chat_template is None:
                prompt = self.tokenizer(each["prompt"] + "\n")["input_ids"]
            else:
                said = [{"role": "user", "content": each["prompt"]}]
                prompt = self.tokenizer.apply_chat_template(
                    said, add_generation_prompt=True, tokenize=True, return_dict=False
                )
            room = self.options.max_length + 1 - len(answer)
            if len(prompt) > room:
                first = int(prompt[0] == self.tokenizer.bos_token_id)
                prompt = prompt[:first] + prompt[len(prompt) - room + first :]
            rows.append((prompt, answer))
        return rows

    def _batch(self, rows: list[tuple[list[int], list[int]]]) -> dict[str, Tensor]:
        width = max(len(prompt) + len(answer) for prompt, answer in rows)
        ids = torch.zeros(len(rows), width, dtype=torch.long)
        labels = torch.full((len(rows), width), IGNORED)
        mask = torch.zeros_like(ids)
        for place, (prompt, answer) in enumerate(rows):
            whole = prompt + answer
            ids[place, : len(whole)] = torch.tensor(whole)
            mask[place, : len(whole)] = 1
            labels[place, len(prompt) : len(whole)] = torch.tensor(answer)
        found = {"input_ids": ids, "attention_mask": mask, "labels": labels}
        return {name: value.to(self.options.device) for name, value in found.items()}

    def train(self, order: list[Any]) -> Trained:
        optimizer = torch.optim.AdamW(self.parameters, lr=self.options.learning_rate)
        self.model.train()
        losses = []
        begin = time.monotonic()
        for place, rows in order:
            loss = self.model(**self._batch([self.rows["train"][place][r] for r in rows])).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(float(loss.detach()))
        seconds = time.monotonic() - begin
        self.model.eval()
        scores = {
            name: self._scores(self.rows["test"][place]) for place, name in enumerate(self.names)
        }
        return Trained(losses, seconds, scores)

    @torch.inference_mode()
    def _scores(self, rows: list[tuple[list[int], list[int]]]) -> tuple[float, float]:
        total, count, right = 0.0, 0, 0
        longest = max(len(answer) for _, answer in rows)
        for begin in range(0, len(rows), AT_ONCE):
            some = rows[begin : begin + AT_ONCE]
            pieces = sum(len(answer) for _, answer in some)
            total += float(self.model(**self._batch(some)).loss) * pieces
            count += pieces
            right += self._exact(some, longest)
        return total / count, right / len(rows)

    def _exact(self, rows: list[tuple[list[int], list[int]]], longest: int) -> int:
        width = max(len(prompt) for prompt, _ in rows)
        end = self.tokenizer.eos_token_id
        ids = torch.tensor([[end] * (width - len(prompt)) + prompt for prompt, _ in rows])
        mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p, _ in rows])
        found = self.model.generate(
            input_ids=ids.to(self.options.device),
            attention_mask=mask.to(self.options.device),
            do_sample=False,
            max_new_tokens=longest,
            pad_token_id=end,
            eos_token_id=end,
        )[:, width:].tolist()
        return sum(
            new[: len(answer)] == answer for new, (_, answer) in zip(found, rows, strict=True)
        )


def put_adapter(network: nn.Module, name: str, start: Tensor, scale: float) -> list[nn.Parameter]:
    """Adds B A x to what a linear module gives, and returns A and B."""
    module: Any = network.get_submodule(name)
    down = nn.Parameter(start.clone())
    up = nn.Parameter(torch.zeros(module.out_features, len(start), device=start.device))
    module.register_forward_hook(
        lambda _, inputs, output: output + scale * (inputs[0] @ down.T) @ up.T
    )
    return [down, up]


def measure(options: Options, rows: Prompts) -> list[dict[str, Any]]:
    tasks = rows.load()
    ours, begun, order = train_ours(options, tasks)
    loop = PlainLoop(options, tasks, begun)
    plain = loop.train(order)
    name = "peft" if importlib.util.find_spec("peft") is not None else "transformers"
    apart = np.abs(np.array(ours.losses) - np.array(plain.losses))
    found = [
        row("loss of the first step", ours.losses[0], plain.losses[0], name, "nats a piece"),
        row("loss of the last step", ours.losses[-1], plain.losses[-1], name, "nats a piece"),
        row("largest difference of a step's loss", float(apart.max()), None, name, "nats a piece"),
        row(
            "steps a second", options.steps / ours.seconds, options.steps / plain.seconds, name, ""
        ),
    ]
    for task in tasks.names:
        for place, (what, unit) in enumerate(
            (("test loss", "nats a piece"), ("exact match", "share"))
        ):
            values = ours.scores[task][place], plain.scores[task][place]
            found.append(row(f"{task}, {what}", *values, name, unit))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", required=True, help="a causal model: folder, GGUF file or name")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--learning-rate", type=float, default=5e-4)
    parser.add_argument("--max-length", type=int, default=128)
    parser.add_argument("--test-rows", type=int, default=200, help="of each task")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    options = Options(
        model=given.model,
        device=torch.device(given.device),
        steps=given.steps,
        batch_size=given.batch_size,
        rank=given.rank,
        learning_rate=given.learning_rate,
        max_length=given.max_length,
        seed=given.seed,
    )
    begin = time.monotonic()
    rows = measure(options, Prompts(dev=20, test=given.test_rows))
    if given.json:
        words = ["PATH" if word == given.model else word for word in sys.argv[1:]]
        command = "python benchmarks/generation.py " + " ".join(words)
        seconds = round(time.monotonic() - begin, 1)
        found = {"experiment": "generation", "command": command, "seconds": seconds, "rows": rows}
        print(json.dumps(found, indent=2))
        return
    for each in rows:
        peer = "-" if each["peer"] is None else f"{each['peer']:.5g}"
        said = f"{each['case']:40} ours {each['ours']:10.5g}"
        print(f"{said}  {each['peer_name']} {peer:>10} {each['unit']}")


if __name__ == "__main__":
    main()
