"""What the Python on a page takes for granted: names, files, and shorter runs.

A page's blocks are one program. `SETUPS[page]` makes its beginning: it writes what the page reads into
the folder that it is given, and returns the names that the page does not define. Every block has these.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "report"))

Names = dict[str, Any]

# What a reader trains for minutes, a test trains for a moment.
SHORTER = {
    "range(10_000)": "range(30)",
    "steps=10_000": "steps=30",
    "steps=2000": "steps=4",
    "steps=1000": "steps=5",
    "max_steps=500": "max_steps=1",
    "number == 100": "number == 1",
    "number == 200": "number == 2",
    "SubsetDesign(count=60)": "SubsetDesign(count=8, alone=2, held_out=3)",
    "HiddenMarkov(states=10), n_generators=8": "HiddenMarkov(states=2), n_generators=2, max_iter=2",
    "Markov(order=2), generators=12": "Markov(order=1), generators=2",
    "counts=(1, 2, 4, 8, 16)": "counts=(1, 2)",
    "LawRegressor()": "LawRegressor(SearchOptions(rounds=1, beam=1, branches=2))",
    'budget="10m"': 'budget="200-steps"',
    'out="advice"': 'out="own"',  # the page has an `advice` that the command wrote
    "BanditOptions(": "BanditOptions(environments=1, seeds=1, steps=200, ",
}


def complaints() -> Any:
    """A frame of two tasks, with a column that says the category."""
    import pandas

    generator = np.random.default_rng(0)
    amount = generator.normal(size=240)
    return pandas.DataFrame(
        {
            "product": ["card", "loan"] * 120,
            "amount": amount,
            "channel": generator.choice(["web", "phone"], 240),
            "category": np.where(amount + generator.normal(size=240) > 0, "fraud", "other"),
        }
    )


def python(folder: Path) -> Names:
    return {"complaints": complaints()}


def quickstart(folder: Path) -> Names:
    return plan_of_advice(folder) | {"frame": complaints()}


def readme(folder: Path) -> Names:
    write_reviews(folder / "reviews")
    linear = torch.nn.Linear(4, 1)
    return {
        "torch": torch,
        "loaders": [SimpleNamespace(dataset=range(rows)) for rows in (300, 30)],
        "batches": [iter(lambda: torch.randn(8, 4), None) for _ in range(2)],
        "loss_of": lambda model, batch, task: model(batch).square().mean(),
        "model": linear,
        "optimizer": torch.optim.SGD(linear.parameters(), lr=0.1),
        "frame": complaints(),
    }


def weighting(folder: Path) -> Names:
    model = torch.nn.Module()
    model.encoder = torch.nn.Linear(4, 4)
    return {
        "model": model,
        "batches": [torch.randn(8, 4) for _ in range(3)],
        "topic_loss": lambda batch: model.encoder(batch).square().mean(),
        "sentiment_loss": lambda batch: (model.encoder(batch) - 1).square().mean(),
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.1),
    }


def plug_in(folder: Path) -> Names:
    write_plan(folder / "plan.json", parts=4)
    tables: Names = {name: range(100) for name in "abcdefgh"}
    try:
        from datasets import Dataset
    except ModuleNotFoundError:
        sys.modules["datasets"] = stand_in_for_datasets()
    else:
        tables = {name: Dataset.from_dict({"row": rows}) for name, rows in tables.items()}
    made = {
        "new_encoder": lambda: torch.nn.Linear(4, 4),
        "tables": tables,
        "topic_loader": [torch.randn(8, 4) for _ in range(3)],
        "sentiment_loader": [torch.randn(8, 4) for _ in range(2)],
    }
    return weighting(folder) | made | sampled()


def sampled() -> Names:
    """Rows of two tasks and what trains on them, for samplers, streams and the Trainer."""
    from accelerate import Accelerator

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(4, 1)

        def forward(self, values: torch.Tensor, targets: torch.Tensor) -> Any:
            return {"loss": (self.linear(values)[:, 0] - targets).square().mean()}

    rows = [
        [{"values": torch.randn(4), "targets": float(task)} for _ in range(40)] for task in range(2)
    ]
    return {
        "task_rows": rows,
        "train_on": lambda batch: batch["values"].square().mean(),
        "accelerator": Accelerator(cpu=True),
        "books": rows[0],
        "films": rows[1],
        "losses_of": lambda batch: batch["values"].square().mean(1),
        "network": Network(),
    }


def advise(folder: Path) -> Names:
    from taskmix.engine import FolderSource, Here, Run, save_models
    from taskmix.models import Perceptron, TextConvolution
    from taskmix.records import Study
    from taskmix.tasks import digits_tasks

    write_reviews(folder / "reviews")
    source = FolderSource(path=str(folder / "reviews"))
    architecture = TextConvolution(filters=4)
    run = Run(label="kept", source=source, architecture=architecture, steps=2, seed=0)
    study = Study(folder / "runs")
    Here(workers=1).run([run], study)
    save_models(folder / "advice" / "model", [(run, ("books", "kitchen"))], study)
    write_plan(folder / "advice" / "plan.json", parts=4)
    generator = np.random.default_rng(0)
    images = generator.normal(size=(60, 8)).astype(np.float32)
    digit, odd = (images[:, 0] > 0).astype(int), (images[:, 1] > 0).astype(int)
    parts = [slice(0, 40), slice(40, 50), slice(50, 60)]
    train, dev, test = ((images[part], digit[part]) for part in parts)
    train_odd, dev_odd, test_odd = ((images[part], odd[part]) for part in parts)
    perceptron = Perceptron(hidden=(4,))
    tasks = perceptron.encoding.encode(digits_tasks())
    model = perceptron.build(tasks)
    return {
        "train": train,
        "dev": dev,
        "test": test,
        "images": images,
        "tasks": tasks,
        "train_odd": train_odd,
        "dev_odd": dev_odd,
        "test_odd": test_odd,
        "encoder": torch.nn.Linear(8, 4),
        "generator": generator,
        "model": model,
        "optimizer": torch.optim.Adam(model.parameters()),
    }


def selection(folder: Path) -> Names:
    from torch.utils.data import TensorDataset

    from taskmix.engine import DigitsSource, Here, Run
    from taskmix.models import Perceptron
    from taskmix.policies import HardProgress, Uniform
    from taskmix.records import Study
    from taskmix.training import PolicyBatchSampler

    run = Run(
        label="uniform",
        source=DigitsSource(),
        architecture=Perceptron(hidden=(4,)),
        tasks=("parity", "half", "prime"),
        policy=Uniform(),
        reward=HardProgress(),
        steps=200,
        seed=0,
    )
    Here(workers=1).run([run], Study(folder / "study"))
    write_plan(folder / "plan.json", parts=1)
    return {
        "np": np,
        "HardProgress": HardProgress,
        "Uniform": Uniform,
        "PolicyBatchSampler": PolicyBatchSampler,
        "sizes": [40, 20],
        "tasks": [TensorDataset(torch.zeros(40, 2)), TensorDataset(torch.zeros(20, 2))],
        "writer": None,
        "loss": torch.tensor(0.5),
        "names": ["b", "a"],
    }


def laws(folder: Path) -> Names:
    import pandas

    from taskmix.laws import SearchOptions

    generator = np.random.default_rng(0)
    n, ami, count = generator.uniform((1000, 0.2, 2), (9000, 0.9, 9), (80, 3)).T
    score = np.sqrt(n * ami) / 100 + 0.001 * generator.normal(size=80)
    frame = pandas.DataFrame({"n": n, "ami": ami, "T": count, "f1": score})
    frame.to_csv(folder / "rows.csv", index=False)
    series = np.tile(["70M", "160M"], 40)
    loss = 2 + 3 * n**-0.3 + np.where(series == "70M", 0.5, 0.0) + 0.001 * generator.normal(size=80)
    return {
        "frame": frame,
        "SearchOptions": SearchOptions,
        "X": {"n": n},
        "loss": loss,
        "series": series,
    }


def sequences(folder: Path) -> Names:
    generator = np.random.default_rng(0)
    words = ["mac" + "".join(generator.choice(list("acmn"), size=3)) for _ in range(24)]
    tasks = ["Scottish", "Irish"] * 12
    for task in ("Scottish", "Irish"):
        own = [word for word, name in zip(words, tasks, strict=True) if name == task]
        (folder / "names" / task).mkdir(parents=True)
        (folder / "names" / task / "train.txt").write_text("\n".join(own), encoding="utf-8")
    return {
        "sequences": words,
        "tasks": tasks,
        "others": words[:4],
        "their_tasks": tasks[:4],
        "held_out": words[:4],
        "few": words[:2],
        "new_tasks": ["Welsh", "Welsh"],
        "loaded": SimpleNamespace(content="names"),
    }


def check(folder: Path) -> Names:
    rows = [
        f"the film number {n} was seen by us,{('books', 'music')[n % 2]},{n * 7 % 5}"
        for n in range(80)
    ]
    (folder / "reviews.csv").write_text("\n".join(["review,product,stars", *rows]) + "\n")
    return {}


def report(folder: Path) -> Names:
    from synthetic_advice import advice_document

    from taskmix.plans import save_advice

    document = advice_document(["books", "kitchen"], ["tempered", "uniform", "single"])
    save_advice(folder / "advice", document)
    return {}


def transfer_document_of_a_study(folder: Path) -> Names:
    from synthetic_transfer import transfer_document

    from taskmix.transfer import save_transfer

    save_transfer(folder / "study", transfer_document(["books", "kitchen", "music", "noise"]))
    return {}


def plan_of_advice(folder: Path) -> Names:
    write_plan(folder / "advice" / "plan.json", parts=4)
    return {}


def mixtures(folder: Path) -> Names:
    """The two files of the page: web and books for prose, code for python."""
    shares = np.random.default_rng(0).dirichlet(np.ones(3), size=16)
    losses = 2 + (0.1 + shares @ np.array([[1.0, 0.3], [0.1, 1.0], [0.6, 0.0]])) ** -0.5
    for name, columns, rows in (
        ("ratios", ("web", "code", "books"), shares),
        ("metrics", ("prose", "python"), losses),
    ):
        lines = [
            f"r{place},{','.join(f'{cell:.4f}' for cell in row)}" for place, row in enumerate(rows)
        ]
        text = "\n".join([f"run,{','.join(columns)}", *lines])
        (folder / f"{name}.csv").write_text(f"{text}\n")
    return {}


SETUPS: dict[str, Callable[[Path], Names]] = {
    "README.md": readme,
    "docs/advise.md": advise,
    "docs/laws.md": laws,
    "docs/mixtures.md": mixtures,
    "docs/plug-in.md": plug_in,
    "docs/questions/just-tell-me.md": plan_of_advice,
    "docs/check.md": check,
    "docs/python.md": python,
    "docs/quickstart.md": quickstart,
    "docs/report.md": report,
    "docs/transfer-reference.md": transfer_document_of_a_study,
    "docs/selection.md": selection,
    "docs/sequences.md": sequences,
    "docs/weighting.md": weighting,
}


def write_plan(path: Path, *, parts: int) -> None:
    """One model with fixed shares; of four, one of each kind and a task alone."""
    from taskmix.plans import Part, Plan, Shares, Stage, Stages, Weighted
    from taskmix.weighting import PCGrad

    halves, uneven = (0.5, 0.5), (0.25, 0.75)
    divisions = [
        Shares(probabilities=uneven),
        Stages(
            stages=(Stage(begin=0, probabilities=halves), Stage(begin=0.5, probabilities=uneven))
        ),
        Weighted(method=PCGrad()),
        Shares.equal(2),
    ][:parts]
    pairs = [("a", "b"), ("c", "d"), ("e", "f"), ("g", "h")]
    made = tuple(
        Part(tasks=tasks, scored=tasks, share=1 / parts, division=division)
        for tasks, division in zip(pairs, divisions, strict=False)
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    Plan(parts=made).save(path)


def write_reviews(folder: Path) -> None:
    """Two tasks of a few texts."""
    for task in ("books", "kitchen"):
        (folder / task).mkdir(parents=True)
        for split, count in {"train": 24, "dev": 8, "test": 8}.items():
            rows = [
                {"text": f"it was {word} and {place} pages", "label": label}
                for place in range(count // 2)
                for word, label in (("good", "positive"), ("bad", "negative"))
            ]
            lines = "\n".join(json.dumps(row) for row in rows)
            (folder / task / f"{split}.jsonl").write_text(lines, encoding="utf-8")


def stand_in_for_datasets() -> ModuleType:
    """The package is an extra that the tests do without: this asks of a call what it asks."""
    module = ModuleType("datasets")

    def interleave_datasets(
        tables: list[Any],
        probabilities: list[float] | None = None,
        seed: int | None = None,
        stopping_strategy: str = "first_exhausted",
    ) -> list[Any]:
        assert probabilities is None or len(probabilities) == len(tables)
        assert abs(sum(probabilities or [1.0]) - 1) < 1e-9
        assert stopping_strategy in ("first_exhausted", "all_exhausted")
        return tables

    module.interleave_datasets = interleave_datasets  # type: ignore[attr-defined]
    return module
