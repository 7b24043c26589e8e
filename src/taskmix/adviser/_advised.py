"""What one gets from `taskmix.advise`: the answer, and everything that can be done with it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

from taskmix._html import html_lines, html_table
from taskmix.adviser._advice import Advice
from taskmix.adviser._answer import Answer, best_runs, plan_of
from taskmix.engine import trained_model
from taskmix.errors import printable
from taskmix.files import UnreadableError, read_plain
from taskmix.plans import AdviceDocument, Plan, RaceRow, race_rows
from taskmix.records import Study
from taskmix.report import write_report
from taskmix.tasks import NewRows
from taskmix.training import Answers, TrainedModel

LARGEST_INLINE = 8 << 20  # bytes of a page that a notebook is made to carry


@dataclass(frozen=True, eq=False, repr=False)
class Advised:
    """The answer in words (`print` it), the plan, and the trained model.

    >>> from taskmix.tasks import digits_tasks
    >>> few = digits_tasks().select(("parity", "half"))
    >>> advised = advise(few, budget="100-steps", steps=50, quiet=True)
    >>> advised.model.tasks, advised.table()[0][:2]
    (('parity', 'half'), ('candidate', 'score'))
    """

    advice: Advice
    answer: Answer
    study: Study
    document: AdviceDocument  # what `advice.json` says
    kept: Plan | None = None  # what `plan.json` says

    @property
    def lines(self) -> tuple[str, ...]:
        return self.answer.lines

    def plan(self) -> Plan:
        """What to train, as every lesson says it."""
        return self.kept or plan_of(self.advice, self.answer)

    @cached_property
    def model(self) -> TrainedModel:
        """What is delivered: the blend, trained again on all rows unless that was not wanted."""
        found = self.advice.delivered
        if found is None:
            return trained_model(best_runs(self.advice, self.answer), self.study)
        return found.final.load(self.study)

    @cached_property
    def checked(self) -> TrainedModel:
        """The same before it was trained again: of this one, dev rows say how good it is."""
        found = self.advice.delivered
        if found is None:
            return self.model
        return found.before.load(self.study)

    def predict(
        self, rows: NewRows, task: str | None = None, *, task_column: str | None = None
    ) -> Answers:
        """The trained model's answers for new rows, given as the tasks were, without targets."""
        return self.model.predict(rows, task, task_column=task_column)

    def save_report(self, path: Path | str) -> Path:
        """Writes the page with the evidence."""
        return write_report(self.study, Path(path))

    def __repr__(self) -> str:
        return "\n".join(map(printable, self.lines))

    def table(self) -> list[tuple[str, ...]]:
        """The race as rows of words, the header first."""
        header = ("candidate", "score", "behind", "seeds", "batches", "s", "standing")
        return [header, *map(_cells, race_rows(self.document))]

    def rows(self) -> list[dict[str, Any]]:
        """The race as numbers, a row for each candidate: `pandas.DataFrame(advised.rows())`."""
        return [
            {
                "candidate": row.name,
                "words": row.words,
                "score": row.dev,
                "behind": row.behind.mean,
                "low": row.behind.low,
                "high": row.behind.high,
                "seeds": row.seeds,
                "batches": row.cost,
                "seconds": row.seconds,
                "open": row.open,
                "chosen": row.name == self.document.chosen,
            }
            for row in self.document.candidates
        ]

    def _repr_html_(self) -> str:
        """For notebooks: the lines, the race as a table, and the page below them where there is one."""
        header, *rows = self.table()
        table = html_table([dict(zip(header, row, strict=True)) for row in rows])
        return f"<div>{html_lines(self.lines)}{table}{self._inline_page()}</div>"

    def _inline_page(self) -> str:
        """The page inside the notebook, which can neither reach the notebook nor open anything."""
        try:
            page = read_plain(self.study.path / "report.html", limit=LARGEST_INLINE).decode()
        except (OSError, UnreadableError, UnicodeDecodeError):  # none, or too large for a notebook
            return ""
        return (
            f'<details><summary>The page</summary><iframe srcdoc="{escape(page)}" '
            'sandbox="allow-scripts" width="100%" height="700"></iframe></details>'
        )


def _cells(row: RaceRow) -> tuple[str, ...]:
    behind = f"{row.behind} ({row.interval})" if row.interval else row.behind
    cost = (row.seeds, row.cost, row.seconds)
    return (f"{row.name}: {row.words}", row.score, behind, *cost, row.standing)
