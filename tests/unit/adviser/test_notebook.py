"""What a notebook shows, with IPython's own shell and no browser."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import taskmix
from taskmix.plans import Part, Plan, Shares
from taskmix.records import Study

HOSTILE = "<script>alert('\u202e')</script>"


class Tags(HTMLParser):
    """The tags of a fragment, outside its attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.attributes: dict[str, dict[str, Any]] = {}
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(tag)
        self.attributes[tag] = dict(attrs)


def advise(out: Path, *, quiet: bool = True) -> taskmix.Advised:
    frame = {
        "kind": ["a", "b"] * 30,
        "x": [float(n % 7) for n in range(60)],
        "label": ["u", "v"] * 30,
    }
    return taskmix.advise(
        frame, task_column="kind", out=out, budget="100-steps", steps=10, quiet=quiet
    )


def test_names_that_are_code_are_shown_and_not_run() -> None:
    part = Part(tasks=(HOSTILE,), scored=(HOSTILE,), share=1.0, division=Shares.equal(1))
    page = Plan(parts=(part,), words=HOSTILE)._repr_html_()
    assert set(Tags(page).found) <= {"table", "caption", "thead", "tbody", "tr", "th", "td"}
    assert "&lt;script&gt;" in page
    assert "\u202e" not in page


def test_a_study_shows_how_many_runs_it_has(tmp_path: Path) -> None:
    study = Study(tmp_path / "study")
    assert "0 runs" in study._repr_html_()
    with study.run({"rate": 0.1}).claim() as claim:
        claim.writer.start(
            specification={"rate": 0.1}, seed=7, label=HOSTILE, tasks=[{"name": "a"}], steps=1
        )
        claim.writer.finish(scores=[("a", "dev", "f1", 0.5)], best_step=None)
    page = study._repr_html_()
    assert "1 runs" in page
    assert "script" not in Tags(page).found


def test_the_page_is_inside_the_notebook_and_cannot_leave_its_frame(tmp_path: Path) -> None:
    advised = advise(tmp_path / "a")
    (advised.study.path / "report.html").write_text('<p title="x">the page</p><script>1</script>')
    tags = Tags(advised._repr_html_())
    assert tags.attributes["iframe"]["sandbox"] == "allow-scripts"
    assert tags.attributes["iframe"]["srcdoc"].startswith('<p title="x">the page')
    assert "script" not in tags.found
    (advised.study.path / "report.html").unlink()
    assert "iframe" not in Tags(advised._repr_html_()).found


def test_a_terminal_gets_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    advise(tmp_path / "a", quiet=False)
    assert "[  0% spent] Looking at 2 tasks." in capsys.readouterr().err.splitlines()


def test_a_notebook_gets_one_line_that_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("IPython", reason="IPython is not installed")
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    shell = InteractiveShell.instance()
    monkeypatch.setattr(shell, "kernel", object(), raising=False)  # as in Jupyter
    try:
        with capture_output() as captured:
            advise(tmp_path / "a", quiet=False)
        first, *others = captured.outputs
        assert first.data["text/plain"] == "[0% spent: Looking at 2 tasks.]"
        assert 'value="0.000"' in first.data["text/html"]
        assert others
        for each in others:
            assert first.transient["display_id"] == each.transient["display_id"]
            assert each.update
            assert Tags(each.data["text/html"]).found == ["div", "progress"]
        assert "spent" not in capsys.readouterr().err
    finally:
        InteractiveShell.clear_instance()
