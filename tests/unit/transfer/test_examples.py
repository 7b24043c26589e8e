from __future__ import annotations

import inspect

import pytest

from taskmix import transfer

PUBLIC = [getattr(transfer, name) for name in transfer.__all__]


@pytest.mark.parametrize(
    "value",
    [value for value in PUBLIC if inspect.isroutine(value) or inspect.isclass(value)],
    ids=lambda value: value.__name__,
)
def test_every_function_and_class_shows_a_use(value: type) -> None:
    """`tests/docs/test_docstring_examples.py` runs what is shown."""
    assert getattr(value, "_is_protocol", False) or ">>> " in (inspect.getdoc(value) or "")
