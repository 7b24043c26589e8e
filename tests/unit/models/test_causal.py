"""The causal transformer alone."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from taskmix.errors import OptionError
from taskmix.models import (
    CausalEncoder,
    CausalTransformer,
    attend,
    rotary_table,
)

TINY = CausalTransformer(layers=2, width=16, attention_heads=2, context=12)


def parameters(options: CausalTransformer) -> int:
    with torch.device("meta"):
        encoder = CausalEncoder(options, 257, 256)
    return sum(parameter.numel() for parameter in encoder.parameters())


@pytest.mark.parametrize(("size", "millions"), [("1M", 1), ("5M", 5), ("20M", 20)])
def test_sizes_have_about_as_many_parameters_as_they_say(size: str, millions: int) -> None:
    options = CausalTransformer.of_size(size)
    assert parameters(options) == pytest.approx(millions * 1e6, rel=0.06)
    more = parameters(replace(options, tied=False)) - parameters(options)
    assert more == 256 * options.width


def test_a_place_knows_nothing_of_those_after_it() -> None:
    torch.manual_seed(0)
    encoder = CausalEncoder(TINY, 257, 256)
    ids = torch.randint(0, 257, (3, 12))
    changed = ids.clone()
    changed[:, 7:] = (changed[:, 7:] + 1) % 257
    before, after = encoder(ids), encoder(changed)
    assert torch.equal(before[:, :7], after[:, :7])
    assert not torch.allclose(before[:, 7:], after[:, 7:])


def test_attention_depends_on_how_far_apart_places_are_and_not_on_where() -> None:
    torch.manual_seed(0)
    table = rotary_table(10, 8)
    heads = torch.randn(1, 4, 6, 8)  # four places, two heads of queries, keys and values
    here = attend(heads, table[:, :4])
    torch.testing.assert_close(attend(heads, table[:, 6:]), here)
    assert not torch.allclose(attend(heads, table[:, [0, 1, 2, 9]]), here)


def test_attention_is_a_mean_of_values_by_scaled_products() -> None:
    torch.manual_seed(0)
    heads = torch.randn(1, 2, 3, 4)  # two places, one head
    still = torch.stack([torch.ones(2, 2), torch.zeros(2, 2)])  # nothing is turned
    found = attend(heads, still)[0, :, 0]
    query, keys, values = heads[0, 1, 0], heads[0, :, 1], heads[0, :, 2]
    weights = torch.softmax(keys @ query / math.sqrt(4), dim=0)
    torch.testing.assert_close(found[0], values[0])
    torch.testing.assert_close(found[1], weights @ values)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"width": 30}, "multiple of twice"),
        ({"layers": 0}, "1 or more"),
        ({"feed_forward": 0.0}, "above 0"),
    ],
)
def test_options_that_make_no_model_are_refused_in_a_sentence(
    options: dict[str, float], words: str
) -> None:
    with pytest.raises(OptionError, match=words):
        CausalTransformer(**options)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="one of 1M, 5M, 20M"):
        CausalTransformer.of_size("3M")
