"""Ten folders of tasks on which advice is measured: five to choose by, five put aside for the end.

    python benchmarks/advice.py folders --out DIR [--only reviews,incomes]    # reads $TASKMIX_DATA

Each kind of task is there twice, once on either side: texts, tables, tokens, inputs that all tasks
share, and text to be written. The rows are cut so that advice takes a minute or two on one core; sizes
differ inside a folder, since shares by size are one of the baselines. No folder names a metric: which
one is right is part of what is advised. A row of dev or test that is also trained on is left out.
"""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Row = dict[str, Any]
Rows = Mapping[str, Sequence[Row]]  # by split
SPLITS = ("train", "dev", "test")


def cut(rows: Iterable[Row], count: int, *, seed: int = 0) -> list[Row]:
    """So many rows, drawn without replacement; all of them where there are fewer."""
    found = list(rows)
    order = np.random.default_rng(seed).permutation(len(found))[:count]
    return [found[place] for place in order]


def parted(rows: Sequence[Row], sizes: Sequence[int], *, seed: int = 0) -> dict[str, list[Row]]:
    """Train, dev and test rows of these sizes, drawn from one list."""
    drawn = cut(rows, sum(sizes), seed=seed)
    ends = np.cumsum(sizes)
    return {
        split: drawn[end - size : end] for split, size, end in zip(SPLITS, sizes, ends, strict=True)
    }


def without_seen(tasks: Mapping[str, Rows], key: Callable[[Row], Hashable]) -> dict[str, Rows]:
    """The tasks without the rows of dev and test that some task trains on."""
    seen = {key(row) for rows in tasks.values() for row in rows["train"]}
    return {
        name: {
            split: list(some) if split == "train" else [row for row in some if key(row) not in seen]
            for split, some in rows.items()
        }
        for name, rows in tasks.items()
    }


def write(folder: Path, tasks: Mapping[str, Rows], settings: str = "") -> None:
    """A folder of packed JSON lines for each task, and settings for all of them."""
    for name, rows in tasks.items():
        (folder / name).mkdir(parents=True)
        for split in SPLITS:
            text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows[split])
            packed = gzip.compress(text.encode(), mtime=0)
            (folder / name / f"{split}.jsonl.gz").write_bytes(packed)
    if settings:
        (folder / "task.toml").write_text(settings, encoding="utf-8")


def read_lines(path: Path) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return file.read().rstrip("\n").split("\n")  # texts have other line ends inside


def labelled_texts(data: Path, tasks: Mapping[str, int], dev: int, test: int) -> dict[str, Rows]:
    """Tasks of `text` and `label` with so many rows to train on."""
    found = {}
    for name, train in tasks.items():
        rows = {}
        for split, count in zip(SPLITS, (train, dev, test), strict=True):
            read = map(json.loads, read_lines(data / name / f"{split}.jsonl.gz"))
            kept = ({"text": row["text"], "label": row["label"]} for row in read)
            rows[split] = cut((row for row in kept if row["text"].strip()), count)
        found[name] = rows
    return without_seen(found, lambda row: str(row["text"]))


def tagged_sentences(data: Path, tasks: Mapping[str, int], dev: int, test: int) -> dict[str, Rows]:
    """Tasks of `tokens` and `tags`, the last column of CoNLL files."""
    found = {}
    for name, train in tasks.items():
        rows = {}
        for split, count in zip(SPLITS, (train, dev, test), strict=True):
            lines = "\n".join(read_lines(data / name / f"{split}.conll.gz"))
            sentences = [part.strip().splitlines() for part in lines.split("\n\n") if part.strip()]
            words = [[line.split("\t") for line in sentence] for sentence in sentences]
            kept = (
                {"tokens": [w[0] for w in each], "label": [w[-1] for w in each]} for each in words
            )
            rows[split] = cut(kept, count)
        found[name] = rows
    return without_seen(found, lambda row: tuple(row["tokens"]))


def reviews(data: Path, folder: Path) -> None:
    domains = ("apparel", "books", "dvd", "imdb", "mr", "music", "toys")
    tasks = labelled_texts(data / "fdu_mtl", dict.fromkeys(domains, 400), dev=200, test=400)
    write(folder, tasks)


def incomes(data: Path, folder: Path) -> None:
    import pandas

    table = pandas.read_parquet(data / "acs_income" / "acs_income_2018_sample40.parquet")
    states = {
        "CA": 2400,
        "TX": 1600,
        "IL": 800,
        "WA": 500,
        "KS": 300,
        "PR": 300,
        "NM": 200,
        "VT": 120,
    }
    tasks = {}
    for name, train in states.items():
        rows = table[table["state"] == name].drop(columns=["state", "split", "row"])
        tasks[name] = parted(json.loads(rows.to_json(orient="records")), (train, 250, 400))
    write(folder, tasks)


def genres(data: Path, folder: Path) -> None:
    sizes = {"news": 600, "learned": 450, "romance": 300, "humor": 250, "religion": 200}
    write(folder, tagged_sentences(data / "brown_pos", sizes, dev=100, test=200))


def roles(data: Path, folder: Path) -> None:
    import pandas

    table = pandas.read_csv(data / "tinyshakespeare_roles" / "speeches.csv.gz")
    tasks = {}
    for role in ("GLOUCESTER", "DUKE VINCENTIO", "KING RICHARD II", "LEONTES", "ROMEO"):
        rows = [{"text": speech} for speech in table[table["role"] == role]["speech"]]
        dev = len(rows) // 6
        tasks[role] = parted(rows, (len(rows) - 2 * dev, dev, dev))
    write(folder, tasks, 'kind = "language"\n')


def weak(data: Path, folder: Path) -> None:
    sizes = {"youtube": 1200, "sms": 1200, "trec": 1200, "semeval": 1200}
    write(folder, labelled_texts(data / "wrench", sizes, dev=300, test=500))


def votes(data: Path, folder: Path) -> None:
    import pandas

    table = pandas.read_csv(data / "pew2008_by_state" / "pew2008.csv.gz")
    table = table[table["vote_lean"].isin(["dem/lean dem", "rep/lean rep"])]
    table = table.rename(columns={"vote_lean": "label"}).drop(columns=["weight"])
    table["age"] = pandas.to_numeric(table["age"], errors="coerce")
    states = (
        "california",
        "texas",
        "ohio",
        "michigan",
        "indiana",
        "washington",
        "oregon",
        "kansas",
    )
    tasks = {}
    for name in states:
        rows = json.loads(
            table[table["state"] == name].drop(columns=["state"]).to_json(orient="records")
        )
        dev = len(rows) // 4
        tasks[name] = parted(rows, (len(rows) - 2 * dev, dev, dev))
    write(folder, tasks)


def biomedical(data: Path, folder: Path) -> None:
    sizes = {"bc2gm": 1000, "bc5cdr": 800, "anatem": 600, "ncbi-disease": 400, "linnaeus": 300}
    write(folder, tagged_sentences(data / "mtl_bio", sizes, dev=200, test=300))


def torques(data: Path, folder: Path) -> None:
    with np.load(data / "sarcos" / "sarcos_inv_test.npz") as arrays:
        inputs, targets = arrays["X"], arrays["Y"]
    names = [f"joint_{place + 1}" for place in range(targets.shape[1])]
    rows = [
        {f"x{place + 1}": float(value) for place, value in enumerate(ours)}
        | dict(zip(names, map(float, theirs), strict=True))
        for ours, theirs in zip(inputs, targets, strict=True)
    ]
    # By blocks: rows that follow each other are nearly the same movement.
    blocks = [rows[start : start + 50] for start in range(0, len(rows), 50)]
    order = np.random.default_rng(0).permutation(len(blocks))
    ends = (3 * len(blocks) // 5, 4 * len(blocks) // 5)
    split = {
        name: [row for block in places for row in blocks[block]]
        for name, places in zip(SPLITS, np.split(order, ends), strict=True)
    }
    write(folder, {"arm": split}, f"label = {json.dumps(names)}\n")


def domains(data: Path, folder: Path) -> None:
    longest, sizes = 1000, {"train": 60_000, "dev": 15_000, "test": 20_000}  # characters
    tasks: dict[str, Rows] = {}
    for name in ("man_en", "c_source", "python_source", "political_prose", "tweets"):
        rows: dict[str, list[Row]] = {}
        for split, most in sizes.items():
            read = map(json.loads, read_lines(data / "domains" / name / f"{split}.jsonl.gz"))
            texts = [row["text"][:longest] for row in cut(read, most)]
            ends = np.cumsum([len(text) for text in texts])
            rows[split] = [
                {"text": text} for text, end in zip(texts, ends, strict=True) if end <= most
            ]
        tasks[name] = rows
    write(folder, tasks, 'kind = "language"\n')


@dataclass(frozen=True)
class Folder:
    """Tasks of one kind; `make` writes them, and is None where the library has them itself."""

    inputs: str
    make: Callable[[Path, Path], None] | None


FOLDERS = {
    "reviews": Folder("texts", reviews),
    "incomes": Folder("tables", incomes),
    "genres": Folder("tokens", genres),
    "digits": Folder("shared inputs", None),
    "roles": Folder("language", roles),
    "weak": Folder("texts", weak),
    "votes": Folder("tables", votes),
    "biomedical": Folder("tokens", biomedical),
    "torques": Folder("shared inputs", torques),
    "domains": Folder("language", domains),
}
# Nothing was chosen by these: their results were not looked at before everything else was decided.
PUT_ASIDE = ("weak", "votes", "biomedical", "torques", "domains")


def make_folders(out: Path, data: Path, names: Sequence[str]) -> list[Path]:
    """Writes the folders that are not there yet."""
    made = []
    for name in names:
        make, folder = FOLDERS[name].make, out / name
        if make is not None and not folder.exists():
            out.mkdir(parents=True, exist_ok=True)
            aside = Path(tempfile.mkdtemp(prefix=".making-", dir=out))
            make(data, aside / name)
            (aside / name).rename(folder)
            aside.rmdir()
            made.append(folder)
    return made
