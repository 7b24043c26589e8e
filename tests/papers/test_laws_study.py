from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from papers.laws import (
    BALANCED_ALPHAS,
    GridRow,
    LawsOptions,
    balanced_grid,
    load_real,
    unbalanced_grid,
)
from papers.laws_table import (
    law_rows,
    laws_figure,
    read_laws_table,
    reproduce_laws,
    write_laws_table,
)
from taskmix.engine import Auto
from taskmix.errors import InputError, OptionError
from taskmix.records import Study


@pytest.fixture
def conll(tmp_path: Path) -> Path:
    """Words that mostly tell their tags: 2,600 to train on."""
    generator = np.random.default_rng(0)
    tags = ["O", "O", "O", "B-PER", "B-LOC"]
    folder = tmp_path / "ner"
    folder.mkdir()
    for split, words in (("train", 2600), ("dev", 100), ("test", 300)):
        lines = []
        for place in range(words):
            kind = int(generator.integers(5))
            lines.append(f"w{kind}{generator.integers(3)}\t{tags[kind]}\n")
            if place % 7 == 6:
                lines.append("\n")
        (folder / f"{split}.conll").write_text("".join(lines))
    return folder


def test_the_grids_have_the_papers_rows_and_values() -> None:
    balanced, unbalanced = balanced_grid(), unbalanced_grid()
    assert len(set(balanced)) == 1002
    assert len(set(unbalanced)) == 1555
    assert {row.alpha for row in balanced} == set(BALANCED_ALPHAS)
    assert {row.tasks for row in balanced} == set(range(1, 16))
    assert {row.tasks for row in unbalanced} == set(range(1, 31))
    assert all(row.real == row.synthetic for row in balanced)
    assert all(row.real < row.synthetic for row in unbalanced if row.tasks > 1)
    assert len(BALANCED_ALPHAS) == 18


def test_a_model_takes_a_hundred_epochs_of_its_words() -> None:
    options = LawsOptions(data=Path("x"))
    (run, *_) = options.runs(GridRow(2500, 2500, 3, 0.9))
    assert (run.steps, run.batch_size) == (2500, 100)
    assert len(run.tasks or ()) == 3
    assert sum(len(runs) * runs[0].steps for runs in map(options.runs, options.grid)) == 49_720_000


def test_rows_are_trained_gathered_and_gone_on_with(conll: Path, tmp_path: Path) -> None:
    class Small(LawsOptions):
        @property
        def grid(self) -> list[GridRow]:
            return [GridRow(n, n, t, 0.9) for n in (1000, 1500, 2000, 2500) for t in (1, 2, 3)]

    options = Small(data=conll, seeds=2, epochs=1.0, hidden=4, dimension=8)
    study, executor = Study(tmp_path / "study"), Auto(workers=1)
    table = reproduce_laws(options, study, executor)
    assert table.num_rows == 12
    assert set(table.column("seeds").to_pylist()) == {2}
    alone = table.filter(pa.compute.equal(table.column("T"), 1))
    assert set(alone.column("ami").to_pylist()) == {1.0}
    related = table.filter(pa.compute.equal(table.column("T"), 2)).column("ami").to_numpy()
    assert np.all((related > 0.4) & (related < 0.9))
    again = reproduce_laws(options, study, executor)
    assert again.equals(table)
    elsewhere = Study(tmp_path / "elsewhere")
    assert reproduce_laws(options, elsewhere, executor, have=table).equals(table)
    assert not list(elsewhere.runs())  # what we have is not trained again
    write_laws_table(table, tmp_path / "rows.csv")
    assert (tmp_path / "rows.csv").read_text().startswith('"n","T"')
    assert read_laws_table(tmp_path / "rows.csv", balanced=True).equals(table)
    with pytest.raises(InputError, match="Found no n_ner, n_syn"):
        read_laws_table(tmp_path / "rows.csv", balanced=False)
    rows = law_rows(table, balanced=True, total=12)
    assert rows[0].ours == 12
    (given,) = (row for row in rows if row.quantity == "laws-balanced/n/mse/eq3")
    n, f1 = (table.column(name).to_numpy() for name in ("n", "f1"))
    assert (given.paper, given.formula) == (0.027, "0.0069*sqrt(n)")
    assert given.ours == pytest.approx(np.mean((0.0069 * np.sqrt(n) - f1) ** 2))
    assert given.as_json()["formula"] == given.formula
    assert "formula" not in rows[0].as_json()
    drawn = laws_figure(table)["hconcat"]
    assert [chart["encoding"]["x"]["field"] for chart in drawn] == ["n", "ami", "T"]


def test_bad_options_and_folders_are_told(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="1/4"):
        LawsOptions(data=tmp_path, part=(5, 4))
    with pytest.raises(OptionError):
        LawsOptions(data=tmp_path, seeds=0)
    folder = tmp_path / "t"
    folder.mkdir()
    (folder / "train.jsonl").write_text('{"text": "a", "label": "x"}\n' * 20)
    with pytest.raises(InputError, match="tagged words"):
        load_real(folder)
