"""What `taskmix sequences` says: figures of models, and predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taskmix.cli._display import echo, show

if TYPE_CHECKING:
    from taskmix.sequences import MixtureComparison, SequenceMixture

_SHOWN = 8  # next symbols


def summary_of(model: SequenceMixture, compared: MixtureComparison | None) -> dict[str, Any]:
    """Figures that JSON can hold."""
    rows = []
    for row in compared.rows if compared is not None else ():
        gain = row.gain
        rows.append(
            {
                "model": row.name,
                "perplexity": row.perplexity,
                "accuracy": None if row.accuracy != row.accuracy else row.accuracy,
                "error": None if row.error != row.error else row.error,
                "gain": None
                if gain is None
                else {"value": gain.mean, "low": gain.low, "high": gain.high, "n": gain.n},
            }
        )
    return {
        "generators": model.bank_.count,
        "bound": float(model.bounds_[-1]),
        "iterations": int(model.n_iter_),
        "alpha": model.alpha_.tolist(),
        "theta": {
            str(name): shares.tolist()
            for name, shares in zip(model.tasks_, model.theta_, strict=True)
        },
        "rows": rows,
    }


def tell_summary(
    summary: dict[str, Any], model: SequenceMixture, seconds: float, *, as_json: bool
) -> None:
    if as_json:
        from taskmix.cli._display import print_json

        print_json(summary)
        return
    from rich import box
    from rich.table import Table

    tasks, count = len(model.tasks_), summary["generators"]
    echo(f"{tasks} tasks, {count} generators, {summary['iterations']} iterations.")
    if summary["rows"]:
        table = Table(title="held-out sequences", title_justify="left", box=box.SIMPLE_HEAD)
        second = "next right" if summary["rows"][0]["error"] is None else "error"
        table.add_column("model")
        for name in ("perplexity", second, "gain of shared"):
            table.add_column(name, justify="right", no_wrap=True)
        for row in summary["rows"]:
            value = row["accuracy"] if row["error"] is None else row["error"]
            gain = row["gain"]
            words = (
                f"{gain['value']:+.3f} ({gain['low']:+.3f} to {gain['high']:+.3f})" if gain else ""
            )
            table.add_row(row["model"], f"{row['perplexity']:.4g}", f"{value:.3g}", words)
        show(table)
    wrote = "" if summary["page"] is None else f"Wrote {summary['page']}. "
    echo(f"{wrote}{seconds:.0f} s.")


def tell_prediction(
    model: SequenceMixture, prefix: list[str], task: str | None, *, as_json: bool
) -> None:
    """What comes next after a prefix, and a most likely way on."""
    found = model.predict_next(prefix, task)
    assert found.probabilities is not None
    assert model.alphabet_ is not None
    names = [*map(str, model.alphabet_.symbols), "(end)"]
    order = found.probabilities.argsort()[::-1][:_SHOWN]
    rows = [
        {"symbol": names[place], "probability": float(found.probabilities[place])}
        for place in order
    ]
    way, level = model.complete(prefix, task)
    whole = list(way) if isinstance(way, str) else [str(word) for word in way]
    single = all(len(word) == 1 for word in whole)
    text = ("" if single else " ").join(whole)
    if as_json:
        from taskmix.cli._display import print_json

        print_json(
            {
                "prefix": prefix,
                "task": task,
                "next": rows,
                "generators": found.generators.tolist(),
                "completion": whole,
                "log_probability": level,
            }
        )
        return
    for row in rows:
        echo(f"{row['symbol']:>12}  {row['probability']:.3f}")
    best = int(found.generators.argmax())
    echo(
        f"Most likely on the whole: {text} (probability {2.718281828459045**level:.3g}). "
        f"Generator {best + 1} is at work with probability {found.generators[best]:.2f}."
    )
