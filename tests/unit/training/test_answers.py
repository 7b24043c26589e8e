"""What a model answers becomes a frame of the kind that people have."""

from __future__ import annotations

import pyarrow as pa
import pytest

from taskmix.training import Answers

ANSWERS = Answers([{"label": "yes", "probability": 0.75}, {"value": 2.0}])


def test_answers_are_a_list_of_mappings_and_a_table() -> None:
    assert ANSWERS == [{"label": "yes", "probability": 0.75}, {"value": 2.0}]
    assert ANSWERS.index({"value": 2.0}) == 1
    columns = {"label": ["yes", None], "probability": [0.75, None], "value": [None, 2.0]}
    assert ANSWERS.to_dict() == columns
    assert ANSWERS.to_arrow().to_pydict() == columns
    assert pa.RecordBatchReader.from_stream(ANSWERS).read_all().to_pydict() == columns


def test_pandas_gets_the_index_of_its_frame() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = Answers(ANSWERS, index=pandas.Index([7, 3])).to_pandas()
    assert frame.index.tolist() == [7, 3]
    assert pandas.DataFrame(ANSWERS).shape == (2, 3)


def test_polars_takes_them() -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed")
    assert ANSWERS.to_polars().to_dicts()[0]["label"] == "yes"
    assert polars.DataFrame(ANSWERS).shape == (2, 3)
