"""Every reader of files, with sound files for it and the checksums that a mutation has to get past.

A reader gives something or raises one of our own errors, whatever is in the file.
"""

from __future__ import annotations

import datetime
import gzip
import hashlib
import io
import json
import re
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import torch
from mutations import refit_document
from pretrained import pretrained_readers
from saved import files_beside, read_saved, saved_files
from synthetic_advice import advice_document
from synthetic_study import task_names, write_study
from synthetic_transfer import transfer_document

from taskmix.adviser._ledger import Ledger
from taskmix.counterfactual import log_of_runs
from taskmix.engine import FolderSource, Run, execute, load_model, save_models
from taskmix.engine._model_folder import replacing_model
from taskmix.laws import LawRegressor, learn_laws, parse_formula, read_laws, read_table
from taskmix.laws._table import as_columns
from taskmix.models import Perceptron
from taskmix.numerics import Interval
from taskmix.plans import Plan, load_advice
from taskmix.records import Study, load_state, to_plain
from taskmix.records._checkpoint import _sum as entries_sum
from taskmix.report import write_report
from taskmix.sequences import (
    HeldOutFigures,
    Markov,
    MixtureFolder,
    SequenceMixture,
    SequenceReport,
    load_mixture,
    save_mixture,
)
from taskmix.tasks import TableEncoding, load_tasks, read_rows, read_word_vectors
from taskmix.tasks._encoding import _cache as encoding_cache
from taskmix.transfer import load_transfer

LIMIT = 64 << 20  # uncompressed bytes; a bomb shows without filling the machine


@dataclass(frozen=True)
class Reader:
    """What reads a file of one kind."""

    name: str
    file: str  # where in a folder it lies
    seeds: tuple[bytes, ...]
    read: Callable[[Path], object]  # given the folder
    beside: Mapping[str, bytes] = field(default_factory=dict)  # other files that are there
    refit: Callable[[bytes], bytes] | None = None  # mends the checksum of a changed file
    words: tuple[bytes, ...] = ()

    def prepare(self, folder: Path) -> None:
        for name, data in self.beside.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
        (folder / self.file).parent.mkdir(parents=True, exist_ok=True)


JSONL = b"".join(
    json.dumps({"text": f"word{n % 3} a b", "label": "ab"[n % 2], "x": n / 7}).encode() + b"\n"
    for n in range(12)
)
CSV = b"x,y,label\n" + b"".join(b"%d,%.1f,%d\n" % (n, n / 3, n % 2) for n in range(12))
TASK_CSV = b"task,x,y,label\n" + b"".join(
    b"%s,%d,%.1f,%d\n" % (b"ab"[n % 2 : n % 2 + 1], n, n / 3, n % 3 % 2) for n in range(24)
)
CONLL = b"".join(b"Anna\tB-PER\nsaw\tO\nRome\tB-LOC\n.\tO\n\n" for _ in range(6))
LINES = b"".join(b"a b a c\nb b a\n" for _ in range(6))
SEQUENCES = b"task,sequence,t,value\n" + b"".join(
    b"%s,%d,%d,%.2f\n" % (b"ab"[n % 2 : n % 2 + 1], n // 4, n % 4, n / 9) for n in range(32)
)
QUOTED = (
    b"text,label\n" + "".join(f'"café, number {n}",{"ab"[n % 2]}\n' for n in range(12)).encode()
)
EUROPEAN = b"preis;label\n" + "".join(f"{n},5;{n % 2}\n" for n in range(12)).encode()
TOML = b'label = "label"\nmetric = "accuracy"\ntext = "text"\nignore = ["x"]\n'
ENTRIES = b"""[[task]]
name = "one"
folder = "."
file = "rows.csv"
label = "label"
features = ["x", "y"]

[[task]]
name = "two"
file = "rows.csv"
label = "y"
kind = "regression"
metric = "rmse"
"""
PLAN = json.dumps(
    {
        "version": 2,
        "name": "groups",
        "parts": [
            {"tasks": ["a", "b"], "scored": ["a"], "share": 0.5, "shares": [0.25, 0.75]},
            {"tasks": ["b"], "share": 0.25, "stages": [{"begin": 0, "shares": [1]}]},
            {"tasks": ["a", "c"], "scored": ["c"], "share": 0.25, "weighting": {"kind": "Equal"}},
        ],
        "expected": [{"task": "a", "metric": "accuracy", "value": 1, "low": 0.5, "high": 1.5}],
        "length": {"batches": 100, "batch_size": 8},
        "evidence": {"runs": 3},
    },
    indent=1,
).encode()
DECIDED = json.dumps(
    {
        "version": 2,
        "asked": {"tasks": ["a"], "budget": 10},
        "seconds": 1.5,
        "decisions": {"rungs": 3, "kept": ["uniform"]},
    },
    indent=2,
).encode()
SUMMARY = SequenceReport(
    generators=2,
    bound=-9.5,
    iterations=3,
    alpha=(0.5, 0.5),
    theta={"task": (0.25, 0.75)},
    rows=(HeldOutFigures("one pooled model", 6.5, 0.3, None, Interval(0.2, 0.1, 0.3, 9)),),
    name="abc",
    command="taskmix sequences x",
    model="model-abc.safetensors",
    page=None,
).written()
LISTED = json.dumps(
    {
        "version": 1,
        "models": [{"file": "model0-0123456789abcdef.safetensors"}],
        "files": ["encoder0-0123456789abcdef/config.json", "model0-0123456789abcdef.safetensors"],
    },
    indent=1,
).encode()
LISTED_FILES = {
    "m/model0-0123456789abcdef.safetensors": b"old",
    "m/encoder0-0123456789abcdef/config.json": b"{}",
    "m/notes.txt": b"mine",
    "m/thesis/model.json": b"mine too",
}
VECTORS = b"".join(b"word%d %.3f %.3f 1e-3\n" % (n, n / 7, -n) for n in range(9))
FORMULAS = (b"sqrt((log(T) + 0.45) * ami * n / (ami + 0.6))", b"n^-0.5 + exp(-n / 9)", b"2**n")


def _parquet(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def _referring() -> tuple[bytes, ...]:
    """Texts as references, in lists and in pages of the second version."""
    texts = pa.array(["one", "two", "one"] * 40).dictionary_encode()
    lists = pa.array([["a", "b"], [], ["a"]] * 40)
    table = pa.table({"text": texts, "tokens": lists, "label": [0, 1, 0] * 40})
    return (
        _parquet(table),
        _parquet(table, data_page_version="2.0", compression="zstd"),
        _parquet(table, row_group_size=30),
    )


def _documents() -> tuple[bytes, ...]:
    """JSON in the shapes that are known."""
    rows = [json.loads(line) for line in JSONL.splitlines()]
    columns = {key: [row[key] for row in rows] for key in rows[0]}
    by_number = {key: dict(enumerate(cells)) for key, cells in columns.items()}
    split = {"columns": list(columns), "data": [list(row.values()) for row in rows]}
    shapes = (rows, columns, by_number, split, {"train": rows, "dev": rows}, {"n": 1, "data": rows})
    return (*(json.dumps(shape).encode() for shape in shapes), JSONL)


def _workbook() -> bytes:
    book = openpyxl.Workbook()
    for title in ("books", "dvd"):
        sheet = book.create_sheet(title)
        sheet.append(["text", "label", "x", "day"])
        for n in range(6):
            sheet.append([f"word {n}", "ab"[n % 2], n / 7, datetime.date(2020, 1, n + 1)])
    sink = io.BytesIO()
    book.save(sink)
    return sink.getvalue()


def _sheets() -> tuple[bytes, ...]:
    """The XML of a sheet and of what describes the book; the others of a workbook stay sound."""
    names = ("xl/worksheets/sheet2.xml", "xl/workbook.xml", "xl/styles.xml", "[Content_Types].xml")
    with zipfile.ZipFile(io.BytesIO(_workbook())) as archive:
        return tuple(name.encode() + b"\0" + archive.read(name) for name in names)


def _zipped(data: bytes) -> bytes:
    """A workbook with one member changed."""
    name, _, content = data.partition(b"\0")
    sink = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(_workbook())) as sound,
        zipfile.ZipFile(sink, "w") as archive,
    ):
        for each in sound.namelist():
            own = each.encode() == name
            archive.writestr(each, content if own else sound.read(each))
    return sink.getvalue()


def _feathers() -> tuple[bytes, ...]:
    """Arrow files, packed and not, with texts as references and in lists, and a bare stream."""
    texts = pa.array(["one", "two", None] * 10).dictionary_encode()
    table = pa.table(
        {"text": texts, "tokens": [["a", "b"], [], None] * 10, "label": [0, 1, 2] * 10}
    )
    found = []
    for packing in ("lz4", "zstd", "uncompressed"):
        sink = io.BytesIO()
        feather.write_feather(table, sink, compression=packing)
        found.append(sink.getvalue())
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return (*found, sink.getvalue())


def _npz(**arrays: Any) -> bytes:
    sink = io.BytesIO()
    np.savez(sink, **arrays)
    return sink.getvalue()


def _record() -> dict[str, bytes]:
    """The files of a run that has ended and of one that has not."""
    with TemporaryDirectory() as folder:
        for number in (0, 1):
            with Study(folder).run({"n": number}).claim() as claim:
                writer = claim.writer
                assert writer is not None
                tasks = [{"name": name} for name in "ab"]
                writer.start(specification={"n": number}, seed=1, label="x", tasks=tasks, steps=4)
                state = {
                    "weights": torch.arange(6.0).reshape(2, 3),
                    "half": torch.ones(2, dtype=torch.complex64),
                    "numbers": [1, 2.5, None, True, 2**70, float("inf"), b"x", (1, "two")],
                    "array": np.arange(3, dtype=np.uint16),
                    "scalar": np.float32(1.5),
                    3: {"deep": {"deeper": {}}},
                }
                for step in (1, 2, 3, 4):
                    writer.add_step(
                        step,
                        step % 2,
                        probability=0.5,
                        probabilities=np.array([0.5, 0.5]) if step != 2 else None,
                        loss=1.0 / step,
                        reward=0.5,
                        weight=None,
                        seconds=0.1,
                        examples=8,
                    )
                    writer.add_scores(step, [("a", "dev", "accuracy", 0.5)])
                    if step % 2 == 0:
                        writer.commit(step, state, best=state, best_step=step)
                if number == 0:
                    writer.finish(scores=[("a", "test", "accuracy", 0.5)], best_step=4)
            Study(folder).run({"n": number}).path.rename(Path(folder, str(number)))
        return _files(Path(folder))


def _study() -> tuple[dict[str, bytes], bytes, bytes]:
    """A study to make a page of, and two documents that belong into it."""
    names, labels = task_names(3), ("proportional", "uniform")
    with TemporaryDirectory() as folder:
        study = write_study(Path(folder, "s"), names, labels, seeds=2, steps=60)
        runs: dict[str, list[str]] = {}
        for run in study.summaries():
            runs.setdefault(run.label, []).append(run.name)
        advice = json.dumps(to_plain(advice_document(names, labels, runs=runs))).encode()
        transfer = json.dumps(to_plain(transfer_document(names))).encode()
        return _files(Path(folder)), advice, transfer


def _files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*.*")
        if path.name != ".lock"
    }


def refit_run(data: bytes) -> bytes:
    """A `run.json` whose checksum fits."""
    place = data.rfind(b'"crc32": "')
    if place < 0:
        return data
    begin = place + len(b'"crc32": "')
    blank = data[:begin] + b"00000000" + data[begin + 8 :]
    return data[:begin] + b"%08x" % zlib.crc32(blank) + data[begin + 8 :]


def refit_entries(data: bytes) -> bytes:
    """A `latest.json` whose checksum fits, where it is JSON at all."""
    try:
        document = json.loads(data)
        document.pop("crc32", None)
        return json.dumps(document | {"crc32": entries_sum(document)}).encode()
    except (ValueError, TypeError, AttributeError, RecursionError):
        return data


def refit_state(data: bytes) -> bytes:
    """A state whose checksum, and length of its header, fit."""
    end = data.find(b"}}", 8)  # of the tensors' descriptions, where the header is as written
    match = re.search(rb'"crc32":"([0-9a-f]{8})', data)
    if match is None or end < 0:
        return data
    blank = data[: match.start(1)] + b"00000000" + data[match.end(1) :]
    return blank[: match.start(1)] + b"%08x" % zlib.crc32(blank) + blank[match.end(1) :]


def refit_table(data: bytes) -> bytes:
    """A cached table behind the hash of its own bytes."""
    return hashlib.sha256(data[32:]).digest() + data[32:]


def refit_encoding(data: bytes) -> bytes:
    """A cached encoding whose sum fits, where its description still is what the file says."""
    from safetensors import SafetensorError
    from safetensors.numpy import load, save

    try:
        arrays = load(data)
        size = int.from_bytes(data[:8], "little")
        metadata = json.loads(data[8 : 8 + size]).get("__metadata__", {})
        text = metadata["taskmix"].partition(" ")[2]
        return bytes(save(arrays, {"taskmix": f"{encoding_cache._sum(text, arrays)} {text}"}))
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return data


def compressed(data: bytes) -> bytes:
    return gzip.compress(data, 1)


def _laws(folder: Path) -> object:
    return as_columns(read_table(folder / "table.csv", ["x", "label"]))


def _rows(name: str) -> Callable[[Path], object]:
    return lambda folder: read_rows(folder / name, byte_limit=LIMIT)


def _text(folder: Path) -> object:
    return parse_formula((folder / "formula").read_bytes().decode("utf-8", "replace"))


def _trained(folder: Path) -> object:
    return load_model(folder / "m")


def _model(folder: Path) -> object:
    return load_mixture(folder / "mixture.safetensors")


def _encoded(folder: Path) -> object:
    tasks = load_tasks(folder / "tasks")
    return TableEncoding().encode(tasks, cache=folder / "cache")


def _cached_rows(folder: Path) -> object:
    return load_tasks(folder / "tasks", cache=folder / "cache")


def _cache_entry(
    read: Callable[[Path], object], ending: str, files: Mapping[str, bytes]
) -> tuple[str, bytes]:
    """The entry that a cache makes for these files: its name and content."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        for place, data in files.items():
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            (folder / place).write_bytes(data)
        read(folder)
        (entry,) = (folder / "cache").glob(f"*.{ending}")
        return f"cache/{entry.name}", entry.read_bytes()


def _trained_model() -> dict[str, bytes]:
    """The files of a model of two small tables."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "tasks").mkdir()
        (folder / "tasks" / "train.csv").write_bytes(CSV * 2)
        source = FolderSource(path=str(folder / "tasks"))
        architecture = Perceptron(hidden=(2,))
        run = Run(label="x", source=source, architecture=architecture, steps=1, seed=0)
        execute(run, Study(folder / "study"))
        save_models(folder / "kept" / "m", [(run, ["tasks"])], Study(folder / "study"))
        return _files(folder / "kept")


def _saved_mixture() -> bytes:
    with TemporaryDirectory() as folder:
        model = SequenceMixture(Markov(), 2, n_init=1, max_iter=2, random_state=0)
        save_mixture(model.fit(["abab", "bbb", "aab"], ["x", "y", "x"]), Path(folder) / "m")
        return (Path(folder) / "m").read_bytes()


def all_readers() -> list[Reader]:
    """One of each kind; their sound files are made here."""
    record = _record()
    study, advice, transfer = _study()
    model = _trained_model()
    table = pa.table({"text": ["a b", "c", "d"], "label": [1, 0, 1], "x": [0.5, None, 2.0]})
    parquets = (_parquet(table), _parquet(table, compression="none", use_dictionary=False))
    splits = {"tasks/train.csv": CSV, "tasks/dev.csv": CSV, "tasks/test.csv": CSV}
    encoded_name, encoded = _cache_entry(_encoded, "safetensors", splits)
    table_name, cached = _cache_entry(_cached_rows, "table", {"tasks/train.csv": CSV})
    state = record["1/checkpoint/state-4.safetensors"]
    run = Study  # a run's folder need not be named by its hash to be read
    parts = {name: data for name, data in record.items() if name.startswith("1/")}
    steps = "1/steps/part-000000002-000000004.parquet"
    scores = "1/scores/part-000000002-000000004.parquet"
    words = np.frombuffer(b"one\ntwo", dtype=np.uint8)
    vectors = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    return [
        Reader("rows.jsonl", "rows.jsonl", (JSONL,), _rows("rows.jsonl")),
        Reader("rows.csv", "rows.csv", (CSV, TASK_CSV), _rows("rows.csv")),
        Reader("rows.tsv", "rows.tsv", (CSV.replace(b",", b"\t"), QUOTED), _rows("rows.tsv")),
        Reader(
            "european.csv", "rows.csv", (EUROPEAN,), _rows("rows.csv"), words=(b";", b"1.234,5")
        ),
        Reader(
            "rows.csv, UTF-16 and cp1252",
            "rows.csv",
            tuple(QUOTED.decode().encode(each) for each in ("utf-16", "utf-16-be", "cp1252")),
            _rows("rows.csv"),
            words=(b"\x00", b"\xff\xfe", b"\x81", b"\xe9"),
        ),
        Reader(
            "rows.json", "rows.json", _documents(), _rows("rows.json"), words=(b'"data":', b"[{")
        ),
        Reader("rows.xlsx", "rows.xlsx", (_workbook(),), _rows("rows.xlsx")),
        Reader("cells of rows.xlsx", "rows.xlsx", _sheets(), _rows("rows.xlsx"), refit=_zipped),
        Reader("rows.feather", "rows.feather", _feathers(), _rows("rows.feather")),
        Reader(
            "flat folder",
            "tasks/dvd.csv",
            (QUOTED,),
            lambda folder: load_tasks(folder / "tasks"),
            {"tasks/books.csv": QUOTED, "tasks/README.txt": b"see there"},
        ),
        Reader("rows.parquet", "rows.parquet", parquets, _rows("rows.parquet")),
        Reader(
            "rows.conll", "rows.conll", (CONLL, CONLL.replace(b"\t", b" ")), _rows("rows.conll")
        ),
        Reader("rows.txt", "rows.txt", (LINES,), _rows("rows.txt")),
        Reader("rows.jsonl.gz", "r.jsonl.gz", (JSONL,), _rows("r.jsonl.gz"), refit=compressed),
        Reader(
            "rows.parquet.gz", "r.parquet.gz", parquets, _rows("r.parquet.gz"), refit=compressed
        ),
        Reader("gzip itself", "r.csv.gz", (compressed(CSV),), _rows("r.csv.gz")),
        Reader(
            "task folder, jsonl",
            "tasks/a/train.jsonl",
            (JSONL,),
            lambda folder: load_tasks(folder / "tasks"),
            {"tasks/a/dev.jsonl": JSONL, "tasks/b/train.csv": CSV},
        ),
        Reader(
            "task folder, conll",
            "tasks/a/train.conll",
            (CONLL,),
            lambda folder: load_tasks(folder / "tasks"),
        ),
        Reader(
            "task folder, sequences",
            "lines.txt",
            (LINES,),
            lambda folder: load_tasks(folder / "lines.txt", kind="sequences"),
        ),
        Reader(
            "table with a task column",
            "rows.csv",
            (TASK_CSV,),
            lambda folder: load_tasks(folder / "rows.csv", task_column="task"),
        ),
        Reader(
            "table of sequences",
            "rows.csv",
            (SEQUENCES,),
            lambda folder: load_tasks(
                folder / "rows.csv", task_column="task", sequence_column="sequence"
            ),
        ),
        Reader(
            "task.toml",
            "task.toml",
            (TOML,),
            lambda folder: load_tasks(folder),
            {"train.jsonl": JSONL},
        ),
        Reader(
            "settings of tasks",
            "tasks.toml",
            (ENTRIES,),
            lambda folder: load_tasks(folder / "data", settings=folder / "tasks.toml"),
            {"data/rows.csv": CSV},
        ),
        Reader("plan", "plan.json", (PLAN,), lambda folder: Plan.load(folder / "plan.json")),
        Reader(
            "run.json",
            "1/run.json",
            (record["0/run.json"], record["1/run.json"]),
            lambda folder: _look(folder),
            refit=refit_run,
        ),
        Reader(
            "list of checkpoints",
            "1/checkpoint/latest.json",
            (record["1/checkpoint/latest.json"],),
            lambda folder: run(folder).run_named("1").checkpoint(),
            parts,
            refit_entries,
        ),
        Reader(
            "checkpoint",
            "state",
            (state,),
            lambda folder: load_state(folder / "state"),
            refit=refit_state,
        ),
        Reader(
            "steps",
            steps,
            (record[steps],),
            lambda folder: _steps(folder),
            parts,
        ),
        Reader(
            "scores",
            scores,
            (record[scores],),
            lambda folder: run(folder).run_named("1").scores(),
            parts,
        ),
        Reader("transfer.json", "transfer.json", (transfer,), lambda folder: load_transfer(folder)),
        Reader("advice.json", "advice.json", (advice,), lambda folder: load_advice(folder)),
        Reader("page of advice.json", "s/advice.json", (advice,), _page, study),
        Reader("page of transfer.json", "s/transfer.json", (transfer,), _page, study),
        Reader("vectors.txt", "v.txt", (VECTORS, b"9 3\n" + VECTORS), _vectors("v.txt")),
        Reader("vectors.txt.gz", "v.txt.gz", (VECTORS,), _vectors("v.txt.gz"), refit=compressed),
        Reader("vectors.npz", "v.npz", (_npz(words=words, vectors=vectors),), _vectors("v.npz")),
        Reader("table of laws", "table.csv", (CSV,), _laws),
        Reader("laws.json", "laws.json", (_laws_json(),), lambda at: read_laws(at / "laws.json")),
        Reader("formula", "formula", FORMULAS, _text, words=(b"sqrt(", b"^", b"**", b")", b"log(")),
        Reader(
            "cached table",
            table_name,
            (cached,),
            _cached_rows,
            {"tasks/train.csv": CSV},
            refit_table,
        ),
        Reader("cached encoding", encoded_name, (encoded,), _encoded, splits, refit_encoding),
        Reader("trained model", "m/model.json", (model.pop("m/model.json"),), _trained, model),
        Reader("model.json and its files", "m/model.json", (LISTED,), _replaced, LISTED_FILES),
        Reader("ledger.json", "ledger.json", (DECIDED,), _ledger),
        Reader("summary of sequences", "summary.json", (SUMMARY,), _summarised),
        Reader("parquet, references", "r.parquet", _referring(), _rows("r.parquet")),
        Reader("mixture", "mixture.safetensors", (_saved_mixture(),), _model, refit=refit_state),
        *(
            Reader(
                f"save_to_disk, {Path(place).name}",
                place,
                seeds,
                read_saved,
                files_beside(place),
                refit_document(seeds[0]) if place.endswith(".json") else None,
            )
            for place, seeds in saved_files().items()
        ),
        *pretrained_readers(Reader),
    ]


def _laws_json() -> bytes:
    n = np.arange(1.0, 21.0)
    found = learn_laws(
        {"n": n, "f1": 3 * n, "kind": ["a", "b"] * 10},
        target="f1",
        inputs=["n"],
        model=LawRegressor(enough=0.9),
        compare=["paper"],
        group="kind",
        at={"n": 2.0},
        to={"n": 3.0},
    )
    return json.dumps(found.document.as_json()).encode()


def _ledger(folder: Path) -> object:
    """As the adviser uses it: it reads, and goes on with what was decided."""
    ledger = Ledger(folder, {"tasks": ["a"], "budget": 10})
    return ledger.decisions, float(ledger.seconds)


def _replaced(folder: Path) -> object:
    """A model is kept where another one may be: its list of files says what may be deleted."""
    with replacing_model(folder / "m") as (mark, publish):
        (folder / "m" / f"model0-{mark}.safetensors").write_bytes(b"")
        publish({"version": 1, "models": []})
    return None


def _summarised(folder: Path) -> object:
    return MixtureFolder(folder).document("abc")


def _page(folder: Path) -> object:
    return write_report(folder / "s", folder / "page.html")


def _vectors(name: str) -> Callable[[Path], object]:
    return lambda folder: read_word_vectors(folder / name)


def _look(folder: Path) -> object:
    study = Study(folder)
    told: list[str] = []
    return study.scores(note=told.append), study.summaries(note=told.append)


def _steps(folder: Path) -> object:
    run = Study(folder).run_named("1")
    return run.steps(), run.probabilities(), log_of_runs([run])
