"""Domains that are renamed, merged, split, added and removed: evidence stays what it was."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taskmix.errors import InputError
from taskmix.mixtures import (
    DomainChange,
    MixtureTable,
    apply_changes,
    describe_changes,
    merge_cost,
    merge_domains,
    read_changes,
    rename_domains,
    split_domains,
    stack_tables,
)
from taskmix.mixtures._table import Floats

DOMAINS = ("web", "python", "c", "law")


def a_table(shares: Floats, worth: tuple[float, ...], *, noise: float = 0.0) -> MixtureTable:
    """Runs that follow the law 3 - log(0.1 + sum of worth times share)."""
    random = np.random.default_rng(1)
    values = (
        3 - np.log(0.1 + shares @ np.array(worth)) + noise * random.standard_normal(len(shares))
    )
    return MixtureTable(
        domains=DOMAINS[: shares.shape[1]],
        metrics=("loss",),
        runs=tuple(f"run{n}" for n in range(len(shares))),
        shares=shares,
        values=values[:, None],
    )


def some_shares(runs: int = 60, domains: int = 4) -> Floats:
    return np.random.default_rng(0).dirichlet(np.ones(domains), runs)


def law(table: MixtureTable, worth: Mapping[str, float]) -> Floats:
    """What a law over named domains says of the runs of a table."""
    return 3 - np.log(0.1 + table.shares @ np.array([worth[name] for name in table.domains]))


def test_a_law_that_does_not_tell_the_parts_apart_says_the_same_after_a_merge() -> None:
    table = a_table(some_shares(), (1.0, 0.6, 0.6, 0.2))
    merged = merge_domains(table, {"code": ["python", "c"]})
    assert merged.domains == ("web", "code", "law")
    np.testing.assert_allclose(
        law(merged, {"web": 1.0, "code": 0.6, "law": 0.2}), table.values[:, 0], rtol=1e-12
    )


def test_a_law_says_the_same_after_a_split_if_the_parts_make_up_the_worth_of_the_whole() -> None:
    table = a_table(some_shares(), (1.0, 0.6, 0.5, 0.2))
    parted = split_domains(table, {"web": {"web_good": 0.3, "web_rest": 0.7}})
    assert parted.domains == ("web_good", "web_rest", "python", "c", "law")
    # 0.3 * 2.4 + 0.7 * 0.4 = 1
    worth = {"web_good": 2.4, "web_rest": 0.4, "python": 0.6, "c": 0.5, "law": 0.2}
    np.testing.assert_allclose(law(parted, worth), table.values[:, 0], rtol=1e-12)


@settings(max_examples=40, deadline=None)
@given(
    proportions=st.lists(st.floats(0.01, 1.0), min_size=1, max_size=5),
    seed=st.integers(0, 10_000),
)
def test_what_was_split_is_whole_again_after_a_merge(proportions: list[float], seed: int) -> None:
    shares = np.random.default_rng(seed).dirichlet(np.ones(4), 5)
    table = a_table(shares, (1.0, 0.6, 0.5, 0.2))
    total = sum(proportions)
    parts = {f"part{n}": each / total for n, each in enumerate(proportions)}
    back = merge_domains(split_domains(table, {"c": parts}), {"c": list(parts)})
    assert back.domains == table.domains
    np.testing.assert_allclose(back.shares, table.shares, atol=1e-12)
    np.testing.assert_array_equal(back.values, table.values)


@settings(max_examples=40, deadline=None)
@given(share=st.floats(0.0, 1.0), seed=st.integers(0, 10_000))
def test_what_was_merged_comes_back_by_its_natural_proportions(share: float, seed: int) -> None:
    """Where all runs drew from the parts in one proportion, merging loses nothing."""
    whole = np.random.default_rng(seed).dirichlet(np.ones(3), 5)
    shares = np.column_stack(
        [whole[:, 0], whole[:, 1] * share, whole[:, 1] * (1 - share), whole[:, 2]]
    )
    table = a_table(shares, (1.0, 0.6, 0.5, 0.2))
    back = split_domains(
        merge_domains(table, {"code": ["python", "c"]}), {"code": {"python": share, "c": 1 - share}}
    )
    assert back.domains == table.domains
    np.testing.assert_allclose(back.shares, table.shares, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_shares_of_a_run_sum_to_one_after_any_change(seed: int) -> None:
    table = a_table(np.random.default_rng(seed).dirichlet(np.ones(4), 5), (1.0, 0.6, 0.5, 0.2))
    change = DomainChange(
        merges={"code": ("python", "c")},
        splits={"web": {"a": 0.25, "b": 0.75}},
        renames={"law": "courts"},
        additions=("new",),
    )
    changed = apply_changes(table, change)
    assert changed.domains == ("a", "b", "code", "courts", "new")
    np.testing.assert_allclose(changed.shares.sum(axis=1), 1.0, rtol=1e-12)
    assert (changed.shares[:, -1] == 0).all()


def test_names_of_a_change_are_those_of_the_table_whatever_the_new_ones_are() -> None:
    table = a_table(np.array([[0.1, 0.2, 0.3, 0.4]]), (1.0, 0.6, 0.5, 0.2))
    swapped = rename_domains(table, {"web": "c", "c": "web"})
    assert swapped.domains == ("c", "python", "web", "law")
    grown = merge_domains(table, {"web": ["web", "law"]})
    assert grown.domains == ("web", "python", "c")
    np.testing.assert_allclose(grown.shares, [[0.5, 0.2, 0.3]])


def test_runs_that_drew_from_a_removed_domain_are_left_out() -> None:
    shares = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    table = replace(a_table(shares, (1.0, 0.5)), sizes=np.array([1.0, 2.0, 3.0]))
    left = apply_changes(table, DomainChange(removals=("python",)))
    assert left.runs == ("run0",)
    assert left.shares.tolist() == [[1.0]]
    assert left.sizes is not None
    assert left.sizes.tolist() == [1.0]


def test_renamed_metrics_keep_what_is_better() -> None:
    table = replace(a_table(some_shares(5), (1.0, 0.6, 0.5, 0.2)), larger_is_better=("loss",))
    changed = apply_changes(table, DomainChange(metrics={"loss": "accuracy"}))
    assert changed.metrics == changed.larger_is_better == ("accuracy",)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"renames": {"wbe": "x"}}, "A change should name domains of the table. Found 'wbe'"),
        ({"merges": {"code": ()}}, "A merged domain should have parts. Found none for 'code'"),
        ({"merges": {"code": "python"}}, "should have a list of parts. Found the word 'python'"),
        ({"merges": {"law": ("python", "c")}}, "should come out of one change only. Found 'law'"),
        ({"renames": {"web": "law"}}, "should come out of one change only. Found 'law'"),
        ({"additions": ("law",)}, "should come out of one change only. Found 'law'"),
        ({"splits": {"web": {"a": 0.3, "b": 0.3}}}, "should sum to 1. Found 0.6 for 'web'"),
        ({"splits": {"web": {"a": 1.5, "b": -0.5}}}, "numbers of at least 0. Found -0.5 for 'b'"),
        ({"splits": {"web": {"a": float("nan")}}}, "numbers of at least 0. Found nan for 'a'"),
        ({"splits": {"web": {}}}, "A split domain should have parts. Found none for 'web'"),
        ({"renames": {"web": "x"}, "removals": ("web",)}, "and only once. Found 'web'"),
        ({"removals": ("web",)}, "Found that every run drew from 'web'"),
        ({"removals": DOMAINS}, "A change should leave at least one domain."),
        ({"metrics": {"los": "x"}}, "A change should rename metrics of the table. Found 'los'"),
    ],
)
def test_a_wrong_change_gets_a_sentence(change: dict[str, Any], sentence: str) -> None:
    table = a_table(some_shares(6), (1.0, 0.6, 0.5, 0.2))
    with pytest.raises(InputError, match=re.escape(sentence)):
        apply_changes(table, DomainChange(**change))


def test_metrics_cannot_become_one_by_a_change() -> None:
    table = a_table(some_shares(6), (1.0, 0.6, 0.5, 0.2))
    twice = replace(table, metrics=("a", "b"), values=np.repeat(table.values, 2, axis=1))
    with pytest.raises(InputError, match="Metrics should have different names after a change"):
        apply_changes(twice, DomainChange(metrics={"a": "b"}))


# What a merge hides.


def test_parts_that_differ_cost_prediction_when_they_are_merged() -> None:
    table = a_table(some_shares(), (1.0, 0.8, 0.05, 0.3), noise=0.01)
    cost = merge_cost(table, "code", ["python", "c"])
    assert cost.differ
    assert cost.cost > 1  # more than twice the error
    assert "'python' and 'c' differ (95 %): merging costs" in cost.describe()


def test_parts_that_are_alike_cost_nothing_and_no_difference_is_claimed() -> None:
    table = a_table(some_shares(), (1.0, 0.6, 0.6, 0.2), noise=0.02)
    cost = merge_cost(table, "code", ["python", "c"])
    assert not cost.differ
    assert abs(cost.cost) < 0.2
    assert "no difference between them was found" in cost.describe()


def test_parts_in_fixed_proportions_need_no_comparison() -> None:
    whole = some_shares(40, 3)
    shares = np.column_stack([whole[:, 0], 0.4 * whole[:, 1], 0.6 * whole[:, 1], whole[:, 2]])
    cost = merge_cost(a_table(shares, (1.0, 0.9, 0.1, 0.2)), "code", ["python", "c"])
    assert cost.varied < 1e-12
    assert cost.describe() == (
        "'python' and 'c' were always in the same proportions: merging them loses nothing."
    )


def test_with_few_runs_a_merge_is_said_to_be_unknown() -> None:
    cost = merge_cost(a_table(some_shares(8), (1.0, 0.9, 0.1, 0.2)), "code", ["python", "c"])
    assert not cost.differ
    assert "too few runs to say whether that matters" in cost.describe()


def test_a_merge_of_unknown_domains_gets_a_sentence() -> None:
    with pytest.raises(
        InputError, match=r"A merge should be of domains of the table\. Found 'rust'"
    ):
        merge_cost(a_table(some_shares(8), (1.0, 0.9, 0.1, 0.2)), "code", ["python", "rust"])


def test_a_change_is_described_with_what_is_exact_and_what_is_not() -> None:
    shares = np.vstack([some_shares(5), [[0.5, 0.3, 0.2, 0.0]]])
    table = a_table(shares, (1.0, 0.6, 0.5, 0.2))
    change = DomainChange(
        renames={"c": "clang"}, splits={"web": {"a": 0.25, "b": 0.75}},
        additions=("new",), removals=("law",),
    )  # fmt: skip
    said = describe_changes(table, change)
    assert said[0] == "'c' is 'clang' now: exact."
    assert said[1].startswith("'web' was split ('a' 25 %, 'b' 75 %): exact where runs drew from it")
    assert said[2].startswith("'new' is new: no run had it")
    assert said[3].startswith("'law' was removed: 5 runs of 6 drew from it and are left out")


# Changes in files.


def test_a_change_is_read_from_toml_and_from_json(tmp_path: Path) -> None:
    toml, json = tmp_path / "changes.toml", tmp_path / "changes.json"
    toml.write_text(
        'additions = ["law"]\nremovals = ["spam"]\n[renames]\ncc = "web"\n'
        '[merges]\ncode = ["python", "c"]\n[splits.books]\nfiction = 0.25\nessays = 0.75\n'
    )
    json.write_text(
        '{"additions": ["law"], "removals": ["spam"], "renames": {"cc": "web"}, '
        '"merges": {"code": ["python", "c"]}, "splits": {"books": {"fiction": 0.25, "essays": 0.75}}}'
    )
    wanted = DomainChange(
        renames={"cc": "web"}, merges={"code": ("python", "c")}, additions=("law",),
        removals=("spam",), splits={"books": {"fiction": 0.25, "essays": 0.75}},
    )  # fmt: skip
    assert read_changes(toml) == read_changes(json) == wanted


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("a.toml", "merges = [", "Found something that cannot be read as such"),
        ("a.json", "[1]", "Found no table of changes"),
        ("a.toml", "merge = 1", "Found the key 'merge'"),
        ("a.toml", "[merges]\ncode = 'python'", "Found another form (DomainChange.merges.code"),
        ("a.toml", "[splits.web]\na = 0.5", "should sum to 1. Found 0.5 for 'web'"),
        ("a.json", "[" * 100_000, "Found something that cannot be read as such"),
    ],
)
def test_a_wrong_file_of_changes_gets_a_sentence(
    tmp_path: Path, name: str, text: str, sentence: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=re.escape(sentence)):
        read_changes(tmp_path / name)


def test_a_missing_file_of_changes_gets_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="A file of changes should be TOML or JSON"):
        read_changes(tmp_path / "nothing.toml")


# Several tables as one.


def test_tables_are_stacked_over_the_union_of_domains_with_their_source() -> None:
    first = a_table(np.array([[0.5, 0.5]]), (1.0, 0.5))
    second = replace(
        a_table(np.array([[0.25, 0.75]]), (1.0, 0.5)), domains=("law", "cc"), metrics=("other",)
    )
    stacked = stack_tables({"a": first, "b": second}, {"b": DomainChange(renames={"cc": "web"})})
    assert stacked.table.domains == ("web", "python", "law")
    np.testing.assert_array_equal(stacked.table.shares, [[0.5, 0.5, 0.0], [0.75, 0.0, 0.25]])
    assert stacked.table.metrics == ("loss", "other")
    np.testing.assert_array_equal(np.isnan(stacked.table.values), [[False, True], [True, False]])
    assert stacked.sources == ("a", "b")
    assert stacked.table.runs == ("a/run0", "b/run0")


def test_a_stack_keeps_sizes_and_directions() -> None:
    table = replace(
        a_table(np.array([[0.5, 0.5]]), (1.0, 0.5)),
        sizes=np.array([7.0]),
        larger_is_better=("loss",),
    )
    stacked = stack_tables({"a": table, "b": replace(table, sizes=np.array([9.0]))}).table
    assert stacked.known_sizes == (7.0, 9.0)
    assert stacked.larger_is_better == ("loss",)


def test_tables_that_contradict_each_other_get_a_sentence() -> None:
    table = a_table(np.array([[0.5, 0.5]]), (1.0, 0.5))
    rising = replace(table, larger_is_better=("loss",))
    with pytest.raises(InputError, match="Found both for 'loss'"):
        stack_tables({"a": table, "b": rising})
    sized = replace(table, sizes=np.array([1.0]))
    with pytest.raises(InputError, match="Found them for 'b' and not for 'a'"):
        stack_tables({"a": table, "b": sized})
    with pytest.raises(InputError, match="Found 'z'; the tables are 'a'"):
        stack_tables({"a": table}, {"z": DomainChange()})
    with pytest.raises(InputError, match="at least one table"):
        stack_tables({})
