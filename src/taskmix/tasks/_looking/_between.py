"""Tasks that have rows in common: one that is another's copy, and test rows that another trains on.

Which pairs of tables have any row in common is one product of sparse matrices, [table, key] times its
transpose, so that thousands of tasks without common rows cost no more than reading them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taskmix.tasks._looking._finding import Finding
from taskmix.tasks._looking._labelled import Labelled, labelled, row_labels, token_counts
from taskmix.tasks._looking._row_keys import Keys, RowKeys, distinct_keys, target_keys
from taskmix.tasks._task import Split, Task, TaskSet

COMMON_SHARE = 0.5  # of the smaller task's inputs: from here on two tasks may be one
SAME_AGREEMENT = 0.9  # of the labels' information: from here on they are
MOST_COMPARED = 50_000  # common inputs whose labels are compared, evenly over all


def between(tasks: TaskSet, keys: RowKeys) -> list[Finding]:
    """What is found in pairs of tasks, in the order of the pairs."""
    known: dict[str, Labelled] = {}

    def inputs_of(task: Task) -> Labelled:
        if task.name not in known:
            known[task.name] = labelled(task, keys)
        return known[task.name]

    found: list[Finding] = []
    for first, second in _pairs(tasks, keys):
        a, b = tasks[first], tasks[second]
        found += _same_task(a, b, inputs_of(a), inputs_of(b))
        for one, other in ((a, b), (b, a)):
            found += _seen_elsewhere(one, other, keys)
    return found


def _pairs(tasks: TaskSet, keys: RowKeys) -> list[tuple[int, int]]:
    """Tasks of one kind of input that have rows in common, by their places."""
    places = [place for place, task in enumerate(tasks) if task.kind != "sequences" and task.size]
    if len(places) < 2:
        return []
    trained = _common([[tasks[place].splits["train"]] for place in places], None, keys)
    tested = [tasks[place].splits.get("test") for place in places]
    seen = _common(
        [[] if split is None else [split] for split in tested],
        [[tasks[place].splits["train"]] for place in places],
        keys,
    )
    pairs = {(min(a, b), max(a, b)) for a, b in [*trained, *seen] if a != b}
    return [
        (places[a], places[b])
        for a, b in sorted(pairs)
        if tasks[places[a]].inputs == tasks[places[b]].inputs
    ]


def _common(
    ours: Sequence[Sequence[Split]], theirs: Sequence[Sequence[Split]] | None, keys: RowKeys
) -> list[tuple[int, int]]:
    """Places of tables with a key in common."""
    from scipy.sparse import csr_matrix

    mine = [[keys.distinct(split) for split in splits] for splits in ours]
    other = mine if theirs is None else [[keys.distinct(split) for split in s] for s in theirs]
    every = distinct_keys(np.concatenate([k for each in (*mine, *other) for k in each]))

    def matrix(tables: Sequence[Sequence[Keys]]) -> csr_matrix:
        rows = [
            np.searchsorted(every, np.concatenate([np.zeros(0, np.uint64), *t])) for t in tables
        ]
        ends = np.concatenate(([0], np.cumsum([len(each) for each in rows])))
        columns = np.concatenate(rows)
        ones = np.ones(len(columns), dtype=np.int32)
        return csr_matrix((ones, columns, ends), shape=(len(tables), len(every)))

    left = matrix(mine)
    product = (left @ (left if theirs is None else matrix(other)).T).tocoo()
    return list(zip(product.row.tolist(), product.col.tolist(), strict=True))


def _seen_elsewhere(one: Task, other: Task, keys: RowKeys) -> Iterator[Finding]:
    test = one.splits.get("test")
    if test is None or not len(test) or _share_inputs(one, other):
        return
    share = keys.share_of(test, other.splits["train"])
    if share > 0:
        seen = f"{share:.1%} of its test rows among those `{other.name}` trains on"
        words = f"Task `{one.name}` has {seen}."
        yield Finding(
            kind="seen in another task", tasks=(one.name, other.name), words=words, share=share
        )


def _share_inputs(a: Task, b: Task) -> bool:
    """Whether the two are columns of labels of one table: what one trains on the other does too."""
    return a.splits["train"].inputs is b.splits["train"].inputs


def _same_task(a: Task, b: Task, ours: Labelled, theirs: Labelled) -> Iterator[Finding]:
    common, mine, other = np.intersect1d(
        ours.keys, theirs.keys, assume_unique=True, return_indices=True
    )
    share = len(common) / max(min(len(ours.keys), len(theirs.keys)), 1)
    if share < COMMON_SHARE:
        return
    step = max(len(common) // MOST_COMPARED, 1)
    rows = ours.first[mine][::step], theirs.first[other][::step]
    same = a.kind == b.kind and len(common) >= 2 and _agreement(a, b, *rows) >= SAME_AGREEMENT
    both = (a.name, b.name)
    if same:
        words = f"Tasks `{a.name}` and `{b.name}` are one: {share:.0%} of the rows, labels and all."
        yield Finding(kind="same task twice", tasks=both, words=words, share=share)
    elif not _share_inputs(a, b):
        words = f"Tasks `{a.name}` and `{b.name}` have {share:.0%} of their inputs in common."
        yield Finding(kind="same inputs", tasks=both, words=words, share=share, is_warning=False)


def _agreement(a: Task, b: Task, ours: NDArray[np.int64], theirs: NDArray[np.int64]) -> float:
    """Of the labels of these rows: from 0, nothing in common, to 1, the same up to their names."""
    left, right = _values(a, ours), _values(b, theirs)
    if a.kind == "regression":
        if left.std() == 0 or right.std() == 0:
            return float(np.array_equal(left, right))
        return float(np.corrcoef(left, right)[0, 1] ** 2)
    from sklearn.metrics import adjusted_mutual_info_score

    numbers = [np.unique(each, return_inverse=True)[1] for each in (left, right)]
    if max(len(np.unique(each)) for each in numbers) < 2:
        return 0.0  # one class each: nothing to compare
    return float(adjusted_mutual_info_score(*numbers))


def _values(task: Task, rows: NDArray[np.int64]) -> NDArray[Any]:
    """What these rows of train have as labels; of sentences, tag by tag."""
    train = task.splits["train"]
    if task.kind == "generation":
        return row_labels(task, train)[0][rows]
    targets: NDArray[Any] = np.asarray(train.targets)
    if task.kind == "tagging":
        lengths = token_counts(train)
        starts = np.cumsum(lengths) - lengths
        sizes = lengths[rows]
        ends = np.cumsum(sizes)
        tokens = np.arange(sizes.sum()) + np.repeat(starts[rows] - (ends - sizes), sizes)
        return np.asarray(targets[tokens])
    return targets[rows] if targets.ndim == 1 else target_keys(targets[rows])
