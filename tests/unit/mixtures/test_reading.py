"""Tables of mixtures from files: what is read, guessed, mended and refused, a sentence each."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from taskmix.errors import InputError
from taskmix.mixtures import (
    MixtureLimits,
    MixtureReport,
    MixtureTable,
    learn_mixtures,
    read_mixtures,
)

from .mixture_files import (
    DOMAINS,
    METRICS,
    change_cell,
    drop_rows,
    made_table,
    write_rows,
    write_table,
)
from .quick_forecast import RidgeForecast

Files = tuple[Path, Path]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return write_table(tmp_path)


def told(table: MixtureTable, words: str) -> bool:
    return any(words in note for note in table.notes)


def learned(table: MixtureTable) -> MixtureReport:
    return learn_mixtures(table, fit=RidgeForecast).document


def test_runs_are_joined_by_name_whatever_their_order(files: Files, tmp_path: Path) -> None:
    header, *rows = files[1].read_text().splitlines()
    files[1].write_text("\n".join([header, *reversed(rows)]) + "\n")
    table, made = read_mixtures(*files), made_table()
    assert (table.domains, table.metrics, table.runs) == (DOMAINS, METRICS, made.runs)
    np.testing.assert_allclose(table.values, made.values)
    np.testing.assert_allclose(table.shares, made.shares, atol=1e-4)
    np.testing.assert_allclose(table.shares.sum(axis=1), 1.0)


def test_the_three_first_columns_of_olmix_are_no_domains(tmp_path: Path) -> None:
    made = made_table(10)
    rows = [
        ["swarm", f"r{place}", place, *shares]
        for place, shares in enumerate(made.shares.round(3).tolist())
    ]
    metrics = [["swarm", f"r{p}", p, *values] for p, values in enumerate(made.values.tolist())]
    table = read_mixtures(
        write_rows(tmp_path / "ratios.csv", ["run", "name", "index", *DOMAINS], rows),
        write_rows(tmp_path / "metrics.csv", ["run", "name", "index", *METRICS], metrics),
    )
    assert table.domains == DOMAINS
    assert table.metrics == METRICS
    assert table.runs[3] == "r3", "`run` is the same everywhere, so `name` tells runs apart"
    assert told(table, "Left out of ratios.csv, as no domains: `run`, `index`.")


def test_one_file_holds_both_when_the_metrics_are_named(tmp_path: Path) -> None:
    made = made_table(10)
    columns = {
        **{f"share_{n}": made.shares[:, p] for p, n in enumerate(DOMAINS)},
        **{f"loss_{n}": made.values[:, p] for p, n in enumerate(METRICS)},
    }
    pq.write_table(pa.table(columns), tmp_path / "both.parquet")
    table = read_mixtures(tmp_path / "both.parquet", metrics_columns=["loss_*"])
    assert table.domains == ("share_web", "share_code", "share_books")
    assert table.metrics == ("loss_prose", "loss_python")
    with pytest.raises(InputError, match=r"which columns of both.parquet are metrics"):
        read_mixtures(tmp_path / "both.parquet")
    with pytest.raises(InputError, match=r"Found `lost_\*`, and the columns share_web"):
        read_mixtures(tmp_path / "both.parquet", metrics_columns=["lost_*"])


def test_frames_and_mappings_are_read_like_files() -> None:
    pandas = pytest.importorskip("pandas")
    made = made_table(10)
    frame = pandas.DataFrame(made.shares, columns=DOMAINS).assign(run=range(10))
    losses = {"run": [float(n) for n in range(10)], "prose": made.values[:, 0].tolist()}
    table = read_mixtures(frame, losses)
    assert len(table) == 10, "1 and 1.0 name one run"
    with pytest.raises(InputError, match=r"Ratios should be a file or a table .* Found int"):
        read_mixtures(3, losses)


def test_only_as_much_is_taken_for_rounding_as_the_digits_allow() -> None:
    random = np.random.default_rng(0)
    shares = random.dirichlet(np.ones(17), size=10)
    names = [f"d{place}" for place in range(17)]

    def read(shares: np.ndarray) -> MixtureTable:
        columns = dict(zip(names, shares.T.tolist(), strict=True))
        return read_mixtures(columns, {"loss": random.random(10).tolist()})

    for digits, scale in ((2, 1), (3, 1), (4, 1), (0, 100), (1, 100)):
        assert told(read((scale * shares).round(digits)), "are rounded")
    single = shares.round(3).astype(np.float32).astype(float)
    assert told(read(single), "are rounded"), "as Parquet may hold them"
    missing = shares.round(3)
    missing[4] = (0.931 * shares[4]).round(3)
    with pytest.raises(InputError, match=r"give or take 0.0085.*Found 0.93\d? for run `5`"):
        read(missing)
    with pytest.raises(InputError, match=r"should sum to 1"):
        read(100 * missing)


def test_percent_and_tokens_are_known_by_their_sums(tmp_path: Path) -> None:
    made = made_table()
    for factor, words in ((100.0, "read as percent"), (5e9, "read as tokens")):
        other = replace(made, shares=made.shares * factor)
        table = read_mixtures(*write_table(tmp_path, other))
        np.testing.assert_allclose(table.shares, made.shares, atol=1e-4)
        assert told(table, words)


@pytest.mark.parametrize(
    ("file", "row", "column", "cell", "words"),
    [
        (0, 4, "web", "0.9", r"should sum to 1.* for run `r4` in ratios.csv, line 6"),
        (0, 2, "code", "-0.1", r"Found -0.1 for `code` of run `r2` in ratios.csv, line 4"),
        (0, 2, "code", "much", r"should be the share .* Found 'much' in ratios.csv, line 4"),
        (0, 2, "code", "inf", r"finite numbers .* Found inf for `code`"),
        (1, 5, "run", "r4", r"run `r4` 2 times, the second time in metrics.csv, line 7"),
        (1, 6, "python", "diverged", r"Found 'diverged' in metrics.csv, line 8. Mend the cell"),
    ],
)
def test_a_cell_that_cannot_be_is_refused_with_its_row(
    files: Files, file: int, row: int, column: str, cell: str, words: str
) -> None:
    change_cell(files[file], row, column, cell)
    with pytest.raises(InputError, match=words):
        read_mixtures(*files)


def test_an_empty_share_is_zero_where_the_others_sum_to_one(tmp_path: Path) -> None:
    made = made_table(10)
    shares = made.shares.copy()
    shares[3] = [0.6, 0.4, 0.0]
    ratios, metrics = write_table(tmp_path, replace(made, shares=shares))
    change_cell(ratios, 3, "books", "")
    table = read_mixtures(ratios, metrics)
    assert table.shares[3].tolist() == pytest.approx([0.6, 0.4, 0.0])
    assert told(table, "1 empty shares in ratios.csv were read as 0")


def test_runs_of_one_file_alone_are_left_out_and_named(files: Files) -> None:
    drop_rows(files[1], 20)
    table = read_mixtures(*files)
    assert len(table) == 20
    assert told(
        table, "4 runs are in ratios.csv and not in metrics.csv, and left out: `r20`, `r21`"
    )
    files[1].write_text(files[1].read_text().replace("\nr", "\nq"))
    with pytest.raises(InputError, match=r"Found none that are: the first are `r0` and `q0`"):
        read_mixtures(*files)


def test_without_names_of_runs_rows_are_paired_in_order(files: Files) -> None:
    for path in files:
        path.write_text("\n".join(line.split(",", 1)[1] for line in path.read_text().splitlines()))
    assert told(read_mixtures(*files), "rows of the two files were paired in order")
    drop_rows(files[1], 20)
    with pytest.raises(InputError, match=r"Found 24 rows in ratios.csv and 20 in metrics.csv"):
        read_mixtures(*files)


def test_missing_and_infinite_metrics_are_not_measured(files: Files) -> None:
    change_cell(files[1], 0, "prose", "")
    change_cell(files[1], 1, "prose", "inf")
    change_cell(files[1], 2, "prose", "nan")
    change_cell(files[1], 2, "python", "")
    table = read_mixtures(*files)
    assert np.isnan(table.values[:3, 0]).all()
    assert told(table, "1 infinite metric was left out as not measured; the first is `prose` in")
    checked = learn_mixtures(table, fit=RidgeForecast).table
    assert len(checked) == 23
    assert "r2" not in checked.runs
    assert told(checked, "1 run has no metrics, left out: `r2`.")
    assert told(checked, "Missing metrics: 2, in 2 runs (most often `prose`, in 2 runs).")


def test_metrics_whose_names_say_so_are_better_when_larger(tmp_path: Path) -> None:
    made = replace(made_table(10), metrics=("mmlu_acc", "accuracy_loss"))
    files = write_table(tmp_path, made)
    table = read_mixtures(*files)
    assert table.larger_is_better == ("mmlu_acc",)
    assert told(table, "better when larger, by their names: `mmlu_acc`")
    assert read_mixtures(*files, lower_is_better=["mmlu_acc"]).larger_is_better == ()
    both = read_mixtures(*files, larger_is_better=["accuracy_loss"]).larger_is_better
    assert both == ("mmlu_acc", "accuracy_loss")
    with pytest.raises(InputError, match=r"`larger_is_better` should name metrics. Found `acc`"):
        read_mixtures(*files, larger_is_better=["acc"])


def test_sizes_are_read_with_their_units_and_join_runs_of_one_name(tmp_path: Path) -> None:
    made = made_table(10)
    sizes = ["1M", "60M"]
    ratios = [[f"r{p}", size, *made.shares[p]] for size in sizes for p in range(10)]
    metrics = [[f"r{p}", size, *made.values[p]] for size in sizes for p in range(10)]
    table = read_mixtures(
        write_rows(tmp_path / "ratios.csv", ["run", "size", *DOMAINS], ratios),
        write_rows(tmp_path / "metrics.csv", ["run", "size", *METRICS], metrics),
    )
    assert table.known_sizes == (1e6, 6e7)
    assert len(set(table.runs)) == 20
    assert told(table, "Sizes of models by column `size`: 1,000,000, 60,000,000.")
    bad = write_rows(tmp_path / "bad.csv", ["run", "size", *METRICS], [["r0", "large", 1, 2]])
    with pytest.raises(InputError, match=r"such as 60M or 6e7. Found 'large' in bad.csv, line 2"):
        read_mixtures(tmp_path / "ratios.csv", bad)


def test_a_share_that_differs_by_rounding_alone_was_never_varied() -> None:
    random = np.random.default_rng(0)
    rest = random.dirichlet([1, 1], 12)
    shares = np.column_stack([0.9 * rest, np.full(12, 0.1)]).round(4)
    shares /= shares.sum(axis=1, keepdims=True)
    columns = dict(zip(("web", "code", "books"), shares.T, strict=True))
    table = read_mixtures(columns, {"loss": 3 - rest[:, 0]})
    assert np.ptp(table.shares[:, 2]) > 0
    checked = learn_mixtures(table, fit=RidgeForecast)
    assert checked.shares["books"] == pytest.approx(0.1, abs=1e-4)
    assert np.ptp(checked.table.shares[:, 2]) == 0
    np.testing.assert_allclose(checked.table.shares.sum(axis=1), 1.0)
    np.testing.assert_allclose(checked.table.shares, table.shares, atol=1e-3)


def test_a_domain_that_was_never_varied_stays_where_it_was() -> None:
    made = made_table()
    shares = np.column_stack([made.shares * 0.9, np.full(24, 0.1), np.zeros(24)])
    table = replace(made, domains=(*DOMAINS, "wiki", "law"), shares=shares)
    found = learn_mixtures(table, fit=RidgeForecast)
    assert (found.shares["wiki"], found.shares["law"]) == pytest.approx((0.1, 0.0))
    assert [row.domain for row in found.document.domains if row.fixed] == ["wiki", "law"]
    assert "cannot be told: `wiki` (0.1), `law` (0)" in found.document.warnings[0]
    with pytest.raises(InputError, match=r"Found 0.1 in every run, and limits from 0 to 0.05"):
        learn_mixtures(table, limits=MixtureLimits(at_most={"wiki": 0.05}))
    same = replace(made, shares=np.tile([0.2, 0.3, 0.5], (24, 1)))
    with pytest.raises(InputError, match=r"Found the same shares in all of them"):
        learn_mixtures(same)


def test_few_runs_are_said_and_fewer_refused() -> None:
    made = made_table(9)
    shares = np.random.default_rng(1).dirichlet(np.ones(12), size=9)
    wide = replace(made, domains=tuple(f"d{n}" for n in range(12)), shares=shares)
    assert "There are 9 runs for 12 domains" in learned(wide).warnings[0]
    with pytest.raises(InputError, match=r"at least 8 runs .* Found 7 with metrics"):
        learn_mixtures(made.only(range(7)))


def test_a_constant_metric_is_left_out_or_refused_when_it_is_needed() -> None:
    made = made_table()
    values = made.values.copy()
    values[:, 1] = 3.5
    table = replace(made, values=values)
    checked = learn_mixtures(table, fit=RidgeForecast).table
    assert checked.metrics == ("prose",)
    assert told(checked, "Metric `python` was left out: it is 3.5 in every run.")
    with pytest.raises(InputError, match=r"Metric `python` should vary .* it is 3.5 in every run"):
        learn_mixtures(table, target="python")
    values[4:, 1] = np.nan
    with pytest.raises(InputError, match=r"it was measured in 4 runs"):
        learn_mixtures(table, target="python")


def test_repeated_runs_tell_the_noise_and_warn_when_it_is_as_large_as_the_signal() -> None:
    made = made_table(noise=0.0)
    shares, values = made.shares.copy(), made.values.copy()
    shares[1], values[1] = shares[0], values[0] + 0.02
    shares[3], values[3] = shares[2], values[2] - 0.04
    table = replace(made, shares=shares, values=values)
    # By hand: deviations of 0.01 and 0.02 on either side, two degrees of freedom.
    share = np.median(np.sqrt((2 * 0.01**2 + 2 * 0.02**2) / 2) / values.std(axis=0))
    found = learned(table)
    (note,) = [note for note in found.notes if note.startswith("2 mixtures were trained more")]
    assert (
        f"(4 runs), which tells the noise: a run differs from its mixture by {share:.0%} of" in note
    )
    assert not found.warnings
    values[3] += 2.0
    (warning,) = learned(replace(table, values=values)).warnings
    assert "`r2` and `r3`" in warning
    assert "should agree but for noise" in warning


def test_shares_from_python_are_checked_too() -> None:
    made = made_table()
    with pytest.raises(InputError, match=r"Found 1.5 in run `r0`"):
        learn_mixtures(replace(made, shares=made.shares * 1.5))
