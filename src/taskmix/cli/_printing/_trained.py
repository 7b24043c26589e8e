"""What `taskmix train` tells when its runs are over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taskmix.cli._printing._display import echo, show
from taskmix.errors import RunError, printable

if TYPE_CHECKING:
    from taskmix.engine import Executed, Run
    from taskmix.plans import ComparisonDocument
    from taskmix.records import RunSummary, Study
    from taskmix.tasks import TaskSet


def print_results(
    runs: list[Run],
    results: list[Executed],
    study: Study,
    tasks: TaskSet,
    comparison: ComparisonDocument | None,
    *,
    as_json: bool,
) -> None:
    """Scores with intervals as tables, or everything as JSON; raises where a run did not finish."""
    from taskmix.cli._printing._display import print_json
    from taskmix.cli._printing._reading import reading_document
    from taskmix.cli._printing._tables import print_table, score_table

    done = [
        result.summary
        for result in results
        if result.summary is not None and result.summary.status == "finished"
    ]
    tables = {split: score_table(done, split) for split in ("dev", "test")}
    entities = _entity_reports(runs, study, done)
    if as_json:
        print_json(
            {
                "study": str(study.path),
                "runs": [_run_row(result) for result in results],
                "rows": [row for table in tables.values() for row in table.rows()],
                "conlleval": entities,
                **({} if comparison is None else {"comparison": comparison}),
                **reading_document(tasks),
            }
        )
    else:
        sizes = {task.name: task.size for task in tasks}
        for split, table in tables.items():
            if table.cells:
                print_table(table, sizes, title=f"Scores on {split}")
        for name, text in entities.items():
            echo(f"Entities of `{name}` on test, as the CoNLL script counts them:\n{text}")
        if comparison is not None:
            _print_comparison(comparison)
        echo(f"Records: {study.path}. The page: taskmix report {study.path}")
    for result in results:
        for note in result.notes:
            echo(f"Note: {note}", err=True)
    _complain(results)


def _print_comparison(comparison: ComparisonDocument) -> None:
    """What was promised beside what came, and what to make of it."""
    from rich import box
    from rich.table import Table

    table = Table(
        title=f"What {comparison.plan} promised, and what came",
        title_justify="left",
        box=box.SIMPLE_HEAD,
    )
    table.add_column("task")
    for name in ("metric", "promised", f"{100 * comparison.level:.0f} % interval", "came", "is"):
        table.add_column(name, justify="left" if name in ("metric", "is") else "right")
    for row in comparison.rows:
        outside = "better" if row.better else "worse"
        table.add_row(
            printable(row.task),
            f"{row.metric}, {row.split}",
            f"{row.expected:.3f}",
            f"{row.low:.3f} to {row.high:.3f}",
            "-" if row.found is None else f"{row.found:.3f}",
            "unknown" if row.found is None else "inside" if row.inside else outside,
        )
    show(table)
    for line in comparison.lines:
        echo(line)


def _complain(results: list[Executed]) -> None:
    """Raises where a run asked for did not finish."""
    reasons = {
        "stopped": "stopped; run the same command again to continue",
        "busy": "busy: another process is at it",
        "failed": "failed",
    }
    for result in results:
        if result.outcome in reasons:
            count = sum(other.outcome == result.outcome for other in results)
            raise RunError(
                f"{count} of {len(results)} runs {reasons[result.outcome]}. {result.error or ''}"
            )


def _run_row(result: Executed) -> dict[str, Any]:
    summary = result.summary
    return {
        "outcome": result.outcome,
        "run": summary.name if summary else None,
        "seed": summary.seed if summary else None,
        "step": summary.step if summary else None,
        "best_step": summary.best_step if summary else None,
        "seconds": summary.seconds if summary else None,
        "error": result.error,
    }


def _entity_reports(runs: list[Run], study: Study, done: list[RunSummary]) -> dict[str, str]:
    """The CoNLL script's figures for each entity task, from the first finished run."""
    from taskmix.engine import model_of_run
    from taskmix.tasks import conlleval_report
    from taskmix.training import predict_tags

    finished = {summary.name for summary in done}
    for run in runs:
        if study.run(run.specification()).name not in finished:
            continue
        names = [
            task.name for task in run.load() if task.metric == "entity_f1" and "test" in task.splits
        ]
        if not names:
            continue
        reports = {}
        for name in names:
            model, tasks = model_of_run(run, study, task=name)
            predicted, true, sentences = predict_tags(model, tasks, name, "test")
            reports[name] = conlleval_report(predicted, true, tasks[name].labels, sentences)
        return reports
    return {}
