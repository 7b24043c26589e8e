"""Domains that are renamed, merged, split, added and removed: evidence stays what it was."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from taskmix.errors import InputError
from taskmix.mixtures import (
    DomainChange,
    MixtureTable,
    apply_changes,
    merge_domains,
    read_changes,
    rename_domains,
    split_domains,
)

Floats = NDArray[np.float64]
DOMAINS = ("web", "python", "c", "law")


def a_table(shares: Floats) -> MixtureTable:
    return MixtureTable(
        domains=DOMAINS[: shares.shape[1]],
        metrics=("loss",),
        runs=tuple(f"run{n}" for n in range(len(shares))),
        shares=shares,
        values=3 - np.log(0.1 + shares[:, :1]),
    )


def some_shares(runs: int = 60, domains: int = 4) -> Floats:
    return np.random.default_rng(0).dirichlet(np.ones(domains), runs)


@settings(max_examples=40, deadline=None)
@given(
    proportions=st.lists(st.floats(0.01, 1.0), min_size=1, max_size=5),
    seed=st.integers(0, 10_000),
)
def test_what_was_split_is_whole_again_after_a_merge(proportions: list[float], seed: int) -> None:
    shares = np.random.default_rng(seed).dirichlet(np.ones(4), 5)
    table = a_table(shares)
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
    table = a_table(shares)
    back = split_domains(
        merge_domains(table, {"code": ["python", "c"]}), {"code": {"python": share, "c": 1 - share}}
    )
    assert back.domains == table.domains
    np.testing.assert_allclose(back.shares, table.shares, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_shares_of_a_run_sum_to_one_after_any_change(seed: int) -> None:
    table = a_table(np.random.default_rng(seed).dirichlet(np.ones(4), 5))
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
    table = a_table(np.array([[0.1, 0.2, 0.3, 0.4]]))
    swapped = rename_domains(table, {"web": "c", "c": "web"})
    assert swapped.domains == ("c", "python", "web", "law")
    grown = merge_domains(table, {"web": ["web", "law"]})
    assert grown.domains == ("web", "python", "c")
    np.testing.assert_allclose(grown.shares, [[0.5, 0.2, 0.3]])


def test_runs_that_drew_from_a_removed_domain_are_left_out() -> None:
    shares = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    table = replace(a_table(shares), sizes=np.array([1.0, 2.0, 3.0]))
    left = apply_changes(table, DomainChange(removals=("python",)))
    assert left.runs == ("run0",)
    assert left.shares.tolist() == [[1.0]]
    assert left.sizes is not None
    assert left.sizes.tolist() == [1.0]


def test_renamed_metrics_keep_what_is_better() -> None:
    table = replace(a_table(some_shares(5)), larger_is_better=("loss",))
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
    table = a_table(some_shares(6))
    with pytest.raises(InputError, match=re.escape(sentence)):
        apply_changes(table, DomainChange(**change))


def test_metrics_cannot_become_one_by_a_change() -> None:
    table = a_table(some_shares(6))
    twice = replace(table, metrics=("a", "b"), values=np.repeat(table.values, 2, axis=1))
    with pytest.raises(InputError, match="Metrics should have different names after a change"):
        apply_changes(twice, DomainChange(metrics={"a": "b"}))


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
