"""Every method has a page whose tables are those of the code and whose example runs."""

from __future__ import annotations

import dataclasses
import warnings

import pytest
from build import weighting_table
from site_methods import Method, all_methods, method_pages

METHODS = all_methods()
PAGES = dict(method_pages(weighting_table()))


def of_family(folder: str) -> set[str]:
    return {method.name for method in METHODS if method.family["folder"] == folder}


def test_every_weighting_and_every_policy_a_user_can_name_has_a_page() -> None:
    import taskmix.policies
    import taskmix.weighting

    weightings = {each.method.__name__ for each in taskmix.weighting.WEIGHTINGS.values()}
    assert of_family("weightings") == weightings
    named = [getattr(taskmix.policies, name) for name in taskmix.policies.__all__]
    options = [kind for kind in named if dataclasses.is_dataclass(kind)]
    policies = {k.__name__ for k in options if hasattr(k, "select") and hasattr(k, "init")}
    assert of_family("policies") == policies - {"Unchanging"}  # their common part
    rewards = {k.__name__ for k in options if hasattr(k, "observe")}
    assert of_family("rewards") == rewards


def test_every_generator_and_surrogate_has_a_page() -> None:
    import taskmix.sequences
    import taskmix.transfer

    named = [getattr(taskmix.sequences, name) for name in taskmix.sequences.__all__]
    kinds = {k.__name__ for k in named if dataclasses.is_dataclass(k) and hasattr(k, "prepare")}
    assert of_family("generators") == kinds - {"Bank"}  # several kinds side by side
    surrogates = {name for name in taskmix.transfer.__all__ if name.endswith("Surrogate")}
    surrogates -= {"Surrogate"}  # the protocol
    assert of_family("surrogates") == surrogates


@pytest.mark.parametrize("method", METHODS, ids=lambda method: str(method.name))
def test_a_page_has_every_part(method: Method) -> None:
    page = PAGES[method.path]
    for heading in ("When to use it", "Options", "Cost", "Example"):
        assert f"\n## {heading}\n\n" in page
    for field in dataclasses.fields(method.object) if "function" not in method.words else ():
        if field.init and not field.name.startswith("_"):
            assert f"\n| `{field.name}` |" in page
    assert "$" not in page
    cost = page.split("## Cost\n\n")[1].split("\n")[0]
    assert len(cost) > 5


@pytest.mark.parametrize("method", METHODS, ids=lambda method: str(method.name))
def test_the_example_runs(method: Method, capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(method.example, method.path, "exec"), {"__name__": "example"})
    assert capsys.readouterr().out.strip()
