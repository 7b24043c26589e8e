r"""Mixtures of shared sequence generators against models that do not share.

    Crawford and Pineau, "Multitask and Transfer Learning via Mixtures of Shared Sequence Generators"
    (draft). Its "Results" is a heading without text: the settings and figures here are ours.

**Synthetic.** Tasks from known generators: recovery as the number of tasks grows, and what is gained on
held-out sequences. **Real.** Sets with natural tasks: n sequences of each task to learn from, others
held out; shared generators with what each task has of its own against one model per task, the same
backed off to the pool, one pooled model, a pooled mixture without tasks and plain LDA. For each set, n
and model the generator (and the number of generators) is chosen on one more draw that no figure is taken
from: the shared generators by `choose_mixture`, the others on a third of it. Gains are in log-likelihood
of an observation, tasks counted alike, paired by draw; `accuracy` is that of the next
symbol, `error` the root mean squared error of the next vector. A draw that is done is kept in `out`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np

from papers.rows import PaperRow, row
from papers.runner import Desk, Flag
from papers.sequence_data import SETS, By, SequenceSet, Truth, set_paths
from papers.sequence_models import (
    Chosen,
    add_sequences,
    choose_generators,
    draw_known,
    fit_known,
    held_out_measures,
    make_model,
    recovery,
)
from taskmix.errors import OptionError, RecordError
from taskmix.files import check_output_folder, free_memory, make_folder, read_plain, write_bytes
from taskmix.records import specification_hash
from taskmix.sequences import Markov

Progress = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class SequencesOptions:
    """What is drawn, and how often; without `data` the synthetic part alone."""

    QUICK: ClassVar[dict[str, Any]] = {"sets": ("names", "vowels"), "seeds": 2, "sizes": (5,)}
    QUICK |= {"synthetic_seeds": 3, "synthetic_sizes": (5, 20), "synthetic_tasks": (5, 20)}
    data: Annotated[
        Path | None, Flag("The folder of names_by_language/, msnbc/, ...", is_argument=True)
    ] = None
    sets: Annotated[tuple[str, ...], Flag("Some of them, with commas [all].")] = tuple(SETS)
    sizes: Annotated[
        tuple[int, ...], Flag("Sequences of a task, with commas; 0: all [5,10,20,50,0].")
    ] = (5, 10, 20, 50, 0)
    synthetic: Annotated[bool, Flag("Also tasks that are made up.")] = True
    seeds: Annotated[int, Flag("Draws of real sequences.")] = 5
    synthetic_seeds: int = 10
    synthetic_tasks: tuple[int, ...] = (5, 10, 20, 40, 80)
    synthetic_sizes: tuple[int, ...] = (5, 10, 20, 50)
    generators: int = 4
    symbols: int = 6
    seed: Annotated[int, Flag()] = 0
    out: Annotated[Path | None, Flag("Where draws are kept [sequences-draws].")] = None

    def __post_init__(self) -> None:
        unknown = [name for name in self.sets if name not in SETS]
        if unknown:
            raise OptionError(f"`sets` should be of {', '.join(SETS)}. Found {', '.join(unknown)}.")
        if self.seeds < 2 or self.synthetic_seeds < 2:
            raise OptionError("`seeds` should be at least 2, for intervals. Found fewer.")


def run(options: SequencesOptions, desk: Desk) -> list[PaperRow]:
    """Shared sequence generators against one model per task, pooled models and plain LDA.

    Without DATA the synthetic part alone. Stop it and run it again: draws that are done are kept.

    Example: python -m papers sequences data/ --sets names,vowels --quick
    """
    out = options.out or Path("sequences-draws")
    return reproduce_sequences(replace(options, out=out), desk.tell)


def reproduce_sequences(
    setting: SequencesOptions, tell: Progress = lambda sentence: None
) -> list[PaperRow]:
    """All rows; intervals are over draws."""
    if setting.out is not None:
        check_output_folder(setting.out, is_ours=lambda path: True, what="the draws")
    rows: list[PaperRow] = []
    if setting.synthetic:
        rows += _recovery_rows(setting, tell)
        rows += _table_rows("synthetic", _synthetic_cells(setting, tell))
    if setting.data is not None:
        for name in setting.sets:
            rows += _table_rows(name, _real_cells(setting, name, tell))
    return rows


def _recovery_rows(setting: SequencesOptions, tell: Progress) -> Iterator[PaperRow]:
    errors: dict[int, list[tuple[float, float, float]]] = {}
    for tasks in setting.synthetic_tasks:
        for seed in range(setting.synthetic_seeds):
            tell(f"recovery, {tasks} tasks, draw {seed + 1}")
            known = draw_known(
                generators=setting.generators,
                symbols=setting.symbols,
                tasks=tasks,
                each=20,
                alpha=0.3,
                generator=np.random.default_rng([setting.seed, seed, tasks]),
            )
            model = fit_known(known, generators=setting.generators, seed=seed)
            errors.setdefault(tasks, []).append(recovery(known, model))
    for tasks, found in errors.items():
        for place, name in enumerate(("theta", "generators", "theta_at_best")):
            errors_of = [each[place] for each in found]
            yield row(f"synthetic/{tasks}_tasks/error/{name}", None, errors_of)


Cell = tuple[str, dict[str, dict[str, float]]]  # a size, and figures by model of one draw


def _synthetic_cells(setting: SequencesOptions, tell: Progress) -> Iterator[Cell]:
    plain = SequenceSet((), lambda path: {}, (Markov(), Markov(order=2)), (setting.generators,))
    for size in setting.synthetic_sizes:

        def draw(seed: int, size: int = size) -> tuple[By, By]:
            generator = np.random.default_rng([setting.seed, 1, seed, size])
            known = draw_known(
                generators=setting.generators,
                symbols=setting.symbols,
                tasks=20,
                each=size,
                alpha=0.3,
                generator=generator,
            )
            count = len(known.sequences)
            for task in range(20):
                add_sequences(known, task, 30, generator)
            parts: tuple[By, By] = ({}, {})
            for place, (sequence, task) in enumerate(
                zip(known.sequences, known.tasks, strict=True)
            ):
                parts[place >= count].setdefault(str(task), []).append(sequence)
            return parts

        yield from _cells(setting, "synthetic", plain, size, draw, tell)


def _real_cells(setting: SequencesOptions, name: str, tell: Progress) -> Iterator[Cell]:
    assert setting.data is not None
    chosen, paths = SETS[name], set_paths(name, setting.data)
    everything = chosen.read(*paths)
    truth = None if chosen.truth is None else chosen.truth(*paths)
    bytes_ = b"".join(read_plain(path, limit=free_memory() // 2) for path in paths)
    content = hashlib.sha256(bytes_).hexdigest()
    for size in setting.sizes:

        def draw(seed: int, size: int = size) -> tuple[By, By]:
            generator = np.random.default_rng([setting.seed, seed])
            train: By = {}
            test: By = {}
            for task, sequences in everything.items():
                order = generator.permutation(len(sequences)).tolist()
                held = min(chosen.tests, max(1, len(order) // 4))
                used = order[held:][: size or chosen.most]
                test[task] = [sequences[place] for place in order[:held]]
                train[task] = [sequences[place] for place in used]
            return train, test

        yield from _cells(setting, name, chosen, size, draw, tell, content, truth)


def _cells(
    setting: SequencesOptions,
    name: str,
    chosen: SequenceSet,
    size: int,
    draw: Callable[[int], tuple[By, By]],
    tell: Progress,
    content: str = "",  # names what is drawn from
    truth: Truth | None = None,
) -> Iterator[Cell]:
    """The figures of each draw, kept where `out` says once they are known."""
    shown = str(size or "all")
    best: dict[str, Chosen] | None = None
    for seed in range(setting.seeds):
        kept = _kept(setting, name, chosen, size, seed, content)
        if kept is not None and kept.exists():
            yield shown, _read(kept)
            continue
        if best is None:
            tell(f"{name}, {shown} sequences a task, choosing")
            best = choose_generators(chosen, draw(setting.seeds)[0])
        tell(f"{name}, {shown} sequences a task, draw {seed + 1}")
        train, test = draw(seed)
        models = {
            kind: make_model(kind, generator, count, seed)
            for kind, (generator, count) in best.items()
        }
        found = held_out_measures(models, train, test)
        if truth is not None:
            found["truth"] = _true_figures(truth, test)
        if kept is not None:
            make_folder(kept.parent)
            write_bytes(kept, json.dumps(found).encode())
        yield shown, found


def _read(kept: Path) -> dict[str, dict[str, float]]:
    try:
        found: dict[str, dict[str, float]] = json.loads(read_plain(kept))
        if all({"log_likelihood", "accuracy"} <= figures.keys() for figures in found.values()):
            return found
    except (ValueError, AttributeError, RecursionError):
        pass  # told below, as a file of another form is
    raise RecordError(
        f"`{kept}` should have the figures of a draw. Found something else. Move it away: the draw is "
        "then done again."
    )


def _kept(
    setting: SequencesOptions, name: str, chosen: SequenceSet, size: int, seed: int, content: str
) -> Path | None:
    if setting.out is None:
        return None
    specification = {
        "set": name,
        "content": content,
        "size": size,
        "draw": seed,
        "seeds": setting.seeds,
        "seed": setting.seed,
        "generators": setting.generators,
        "symbols": setting.symbols,
        "kinds": chosen.kinds,
        "counts": chosen.counts,
        "version": 8,
    }
    return setting.out / f"{name}-{size}-{seed}-{specification_hash(specification)}.json"


def _true_figures(truth: Truth, test: By) -> dict[str, float]:
    """Of what made the sequences: no model can be expected to do better."""
    level = np.mean(
        [
            sum(truth(task, each) for each in some) / sum(len(each) + 1 for each in some)
            for task, some in test.items()
        ]
    )
    nothing = float("nan")
    return {
        "log_likelihood": float(level), "accuracy": nothing, "error": nothing,
        "perplexity": float(np.exp(-level)),
    }  # fmt: skip


def _table_rows(name: str, cells: Iterator[Cell]) -> list[PaperRow]:
    by_size: dict[str, list[dict[str, dict[str, float]]]] = {}
    for size, figures in cells:
        by_size.setdefault(size, []).append(figures)
    rows = []
    for size, draws in by_size.items():
        for kind in draws[0]:
            for measure in ("perplexity", "accuracy", "error"):
                values = [draw[kind][measure] for draw in draws]
                if not np.isnan(values).any():
                    rows.append(row(f"{name}/{size}/{measure}/{kind}", None, values))
            if kind == "shared":
                continue
            for measure, title in (("log_likelihood", "gain"), ("accuracy", "accuracy_gain")):
                gains = [draw["shared"][measure] - draw[kind][measure] for draw in draws]
                if not np.isnan(gains).any():
                    rows.append(row(f"{name}/{size}/{title}/{kind}", None, gains))
    return rows
