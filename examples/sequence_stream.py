"""Stochastic EM over a file of sequences that is larger than memory.

    python examples/sequence_stream.py                 # on a file that it makes
    python examples/sequence_stream.py rows.csv --generators 16 --out logs.safetensors

The file has a header, the task in its first column and a sequence of words in its second. It is read
once to find the symbols, and again in every pass, batch by batch; what is held is one batch, the symbols
and the model. Every twentieth sequence is kept out, and judges the model after each pass. Shuffle the
rows (`shuf`) if they lie task by task: a batch should have sequences of many tasks.

Afterwards `taskmix sequences score logs.safetensors more.csv` asks the model about other sequences.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from taskmix.sequences import UNKNOWN, Markov, SequenceMixture, save_mixture

HELD_OUT = 20  # every so many-th sequence is not learned from
JUDGED = 5_000  # held-out sequences at most; more would have to be held

Row = tuple[str, list[str]]  # a task, and a sequence of words


def main() -> None:
    parser = argparse.ArgumentParser(description="Learn shared generators from a large CSV file.")
    parser.add_argument("file", type=Path, nargs="?", help="task,sequence in each row")
    parser.add_argument("--generators", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=2_000, help="sequences of one step")
    parser.add_argument("--passes", type=int, default=2)
    parser.add_argument("--out", type=Path, help="where to save the model: .safetensors")
    given = parser.parse_args()
    if given.file is not None:
        learn(given.file, given.generators, given.batch_size, given.passes, given.out)
        return
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "rows.csv"
        write_example(made)
        learn(made, given.generators, given.batch_size, given.passes, given.out)


def learn(file: Path, generators: int, size: int, passes: int, out: Path | None) -> None:
    symbols, tasks, held_out = look_through(file)
    print(f"{len(symbols) - 1:,} symbols of {len(tasks):,} tasks; {len(held_out):,} held out")
    model = SequenceMixture(Markov(), generators, own=False, symbols=symbols, random_state=0)
    for number in range(1, passes + 1):
        rows = read_rows(file, held_out=False)
        while batch := list(islice(rows, size)):
            model.partial_fit([words for _, words in batch], [task for task, _ in batch])
        # A task that has only sequences that were held out is not known to the model.
        judged = [(task, words) for task, words in held_out if task in model.tasks_]
        perplexity = model.perplexity([words for _, words in judged], [task for task, _ in judged])
        print(f"pass {number}: held-out perplexity {perplexity:.3f}")
    for task, shares in zip(model.tasks_[:5], model.theta_, strict=False):
        print(f"{task}: " + ", ".join(f"{share:.0%}" for share in shares))
    if out is not None:
        save_mixture(model, out)
        print(f"Wrote {out}.")


def look_through(file: Path) -> tuple[list[str], set[str], list[Row]]:
    """The symbols, of which the last stands for any that is new; the tasks; some held-out rows."""
    symbols, tasks = set(), set()
    for task, words in read_rows(file, held_out=False):
        symbols.update(words)
        tasks.add(task)
    held_out = list(islice(read_rows(file, held_out=True), JUDGED))
    return [*sorted(symbols - {UNKNOWN}), UNKNOWN], tasks, held_out


def read_rows(file: Path, *, held_out: bool) -> Iterator[Row]:
    """The rows that are learned from, or those that judge; never more than one at a time."""
    with file.open(newline="", encoding="utf-8") as lines:
        rows = csv.reader(lines)
        next(rows)  # the header
        for number, (task, sequence) in enumerate(rows):
            if (number % HELD_OUT == 0) == held_out:
                yield task, sequence.split()


def write_example(file: Path) -> None:
    """Tasks that share two habits: going round a circle of five symbols forwards or backwards."""
    generator = np.random.default_rng(0)
    forwards = {f"task {number}": number / 9 for number in range(10)}  # share of sequences
    with file.open("w", newline="", encoding="utf-8") as lines:
        rows = csv.writer(lines)
        rows.writerow(["task", "sequence"])
        for _ in range(10_000):
            task = f"task {generator.integers(10)}"
            turn = 1 if generator.random() < forwards[task] else -1
            steps = np.where(generator.random(generator.integers(4, 12)) < 0.9, turn, 0)
            places = (generator.integers(5) + steps.cumsum()) % 5
            rows.writerow([task, " ".join("abcde"[place] for place in places)])


if __name__ == "__main__":
    main()
