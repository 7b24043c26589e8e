"""The page about a mixture of sequence generators: what tasks are made of, and of what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from taskmix.extras import load
from taskmix.report._mixture_svg import bars_svg, graph_svg, line_svg, map_svg, shares_svg
from taskmix.report._shell import PURPOSE, render_page, write_whole

if TYPE_CHECKING:
    from taskmix.sequences import HeldOutFigures, HeldOutScores, SequenceMixture

_TASKS = 60  # drawn at most
_NODES = 12  # of a graph; on a circle more of them cover each other
_SAMPLES = 4  # sequences shown of a generator


def write_mixture_page(
    model: SequenceMixture,
    out: Path,
    *,
    title: str,
    figures: Sequence[HeldOutFigures] = (),
    scores: HeldOutScores | None = None,
    command: str = "",
    notes: Sequence[str] = (),
) -> Path:
    """Writes the page of a fitted mixture to `out` and gives its path.

    `taskmix sequences FOLDER --out STUDY` writes it into the study.
    """
    page = mixture_html(
        model, title=title, figures=figures, scores=scores, command=command, notes=notes
    )
    return write_whole(out, page.encode("utf-8", "replace"), "the report")


def mixture_html(
    model: SequenceMixture,
    *,
    title: str,
    figures: Sequence[HeldOutFigures] = (),
    scores: HeldOutScores | None = None,
    command: str = "",
    notes: Sequence[str] = (),
) -> str:
    """The page as text. It asks for nothing from outside and runs no script.

    `taskmix sequences FOLDER --out STUDY` writes it into the study.
    """
    load("jinja2", purpose=PURPOSE)
    from markupsafe import Markup

    from taskmix.sequences import held_out_verdict, mixture_table, task_similarity

    shown, names = _shown_tasks(model)
    left_out = len(model.tasks_) - len(shown)
    likeness = map_svg(task_similarity(model.theta_[shown]), names, "similarity of tasks")
    contents = {
        "title": title,
        "verdict": held_out_verdict(figures),
        "facts": _facts(model),
        "held_out": mixture_table(figures),
        "shares": Markup(shares_svg(model.theta_[shown], names)),
        "shares_caption": (
            "Shares of the generators, by their numbers, tasks of like shares side by side."
            + (f" {left_out} more tasks are not drawn." if left_out > 0 else "")
        ),
        "generators": _generators(model),
        "drawn": Markup,
        "generators_caption": (
            f"Graphs have the {_NODES} most visited nodes and steps of 8 % or more; point at one for "
            "its figure. Below are sequences drawn from the generator."
        ),
        "similarity": Markup(likeness) if len(shown) > 1 else "",
        "examples": [] if scores is None else _examples(scores),
        "examples_caption": "" if scores is None else _examples_caption(scores),
        "confusion": "" if scores is None else Markup(_confusion(scores, shown, names)),
        "accuracy": "" if scores is None else f"{scores.accuracy:.0%}",
        "bound": Markup(line_svg(model.bounds_, "evidence lower bound by iteration")),
        "notes": list(notes),
        "command": command,
    }
    return render_page("mixture.html.j2", contents, styles=("page.css", "mixture.css"))


def _shown_tasks(model: SequenceMixture) -> tuple[list[int], list[str]]:
    """Tasks of like shares side by side."""
    theta = model.theta_
    order = sorted(
        range(len(theta)), key=lambda row: (int(theta[row].argmax()), -float(theta[row].max()))
    )[:_TASKS]
    return order, [str(model.tasks_[row]) for row in order]


def _examples(scores: HeldOutScores) -> list[dict[str, Any]]:
    """Of each task, its sequences that are most and least like it."""
    return [
        {"task": str(task), "typical": scores.typical[task], "surprising": scores.surprising[task]}
        for task in scores.tasks[:_TASKS]
        if scores.typical[task]
    ]


def _examples_caption(scores: HeldOutScores) -> str:
    words = (
        "Held-out sequences by the log-ratio of their task to the mean of the other tasks: "
        "above 0 they are rather this task's than anybody's."
    )
    if scores.odd is not None:
        words += (
            " p is the share of the task's own sequences, scored while they were held out, that are as "
            f"unlike it; {scores.odd:.1%} of all held-out sequences have p of 0.05 or less."
        )
    return words


def _confusion(scores: HeldOutScores, shown: Sequence[int], names: list[str]) -> str:
    part = scores.confusion[np.ix_(shown, shown)]
    whole = np.maximum(scores.confusion[list(shown)].sum(axis=1, keepdims=True), 1)
    return map_svg(part / whole, names, "tasks and the likeliest task of their sequences")


def _facts(model: SequenceMixture) -> list[tuple[str, str]]:
    kinds = ", ".join(type(block).__name__ for block in model.bank_.blocks)
    return [
        ("tasks", f"{len(model.tasks_):,}"),
        ("generators", str(model.bank_.count)),
        ("kind", kinds),
        ("iterations", str(model.n_iter_)),
    ]


@dataclass(frozen=True)
class _GeneratorCard:
    """One generator on the page."""

    title: str
    words: str
    drawings: list[str]  # SVG of ours, in which words from data are escaped
    samples: str


def _generators(model: SequenceMixture) -> list[_GeneratorCard]:
    overall = model.theta_.mean(axis=0)
    found = []
    for block, parameters, place in zip(
        model.bank_.blocks, model.parameters_, model.bank_.places, strict=True
    ):
        kind = type(block).__name__
        for which in range(place.start, place.stop):
            own = which - place.start
            typical = [
                str(model.tasks_[row])
                for row in np.argsort(-model.theta_[:, which])[:3]
                if model.theta_[row, which] > 1 / model.bank_.count
            ]
            words = f"{kind}; {overall[which]:.0%} of an average task"
            words += f"; most in {', '.join(typical)}" if typical else ""
            found.append(
                _GeneratorCard(
                    title=f"Generator {which + 1}",
                    words=words,
                    drawings=_drawings(model, kind, parameters, own),
                    samples=_samples(model, which),
                )
            )
    return found


def _drawings(model: SequenceMixture, kind: str, parameters: Any, which: int) -> list[str]:
    match kind:
        case "Markov":
            return _markov_drawings(model, parameters, which)
        case "HiddenMarkov" | "GaussianHiddenMarkov":
            return _hidden_drawings(model, parameters, which)
        case "Multinomial":
            outcomes = parameters.outcomes.sequences
            shares = parameters.probabilities[which, :-1]
            best = np.argsort(-shares)[:10]
            words = [" ".join(_words(model, outcomes[int(row)])) for row in best]
            return [bars_svg(list(zip(words, shares[best].tolist(), strict=True)))]
        case "Gaussian":
            mean = (parameters.share[which][:, None] * parameters.mean[which]).sum(axis=0)
            rows = [(f"number {place + 1}", value) for place, value in enumerate(mean.tolist())]
            return [bars_svg(rows[:20], unit="{:.3g}")]
        case "LinearDynamics":
            sizes = np.abs(np.linalg.eigvals(parameters.transition[which]))
            rows = [(f"mode {place + 1}", value) for place, value in enumerate(sorted(sizes)[::-1])]
            return [bars_svg(rows, unit="{:.3f}")]
        case _:
            return []


def _markov_drawings(model: SequenceMixture, parameters: Any, which: int) -> list[str]:
    """Steps between the most frequent symbols; of longer contexts, by their last symbol."""
    size = model.n_symbols_
    moves = np.zeros((size, size))
    contexts = parameters.contexts
    latest = contexts % (size + 1) - 1  # the lowest digit is the last symbol
    shares = parameters.probabilities[which][:, :size]
    if not len(contexts) or (int(contexts.max()) <= 1 < size and len(contexts) <= 2):
        rest = shares[-1]
        best = np.argsort(-rest)[:_NODES]
        names = _words(model, best)
        return [bars_svg(list(zip(names, rest[best].tolist(), strict=True)))]
    for symbol in range(size):
        rows = shares[latest == symbol]
        moves[symbol] = rows.mean(axis=0) if len(rows) else 0.0
    visits = moves.mean(axis=0)
    best = np.sort(np.argsort(-visits)[:_NODES])
    first = shares[contexts == 0]
    drawings = [
        graph_svg(moves[np.ix_(best, best)], _words(model, best), visits[best] / visits.max())
    ]
    if len(first):
        begin = np.argsort(-first[0])[:5]
        rows = [(f"begins {name}", value) for name, value in
                zip(_words(model, begin), first[0][begin].tolist(), strict=True)]  # fmt: skip
        drawings.append(bars_svg(rows))
    return drawings


def _hidden_drawings(model: SequenceMixture, parameters: Any, which: int) -> list[str]:
    moves = parameters.transition[which]
    states = len(moves)
    steady = np.linalg.matrix_power(
        moves / np.maximum(moves.sum(axis=1, keepdims=True), 1e-300), 64
    )[0]
    best = np.sort(np.argsort(-steady)[:_NODES])
    if hasattr(parameters, "emission"):
        emission = parameters.emission[which]
        tops = [int(emission[state].argmax()) for state in best]
        names = _words(model, np.array(tops))
        rows = []
        for state in best[np.argsort(-steady[best])][:5]:
            letters = np.argsort(-emission[state])[:4]
            word = " ".join(_words(model, letters))
            rows.append((word, float(steady[state])))
        return [graph_svg(moves[np.ix_(best, best)], names, steady[best]), bars_svg(rows)]
    names = [str(state + 1) for state in range(states)]
    means = parameters.mean[which][:, 0]
    rows = [(f"state {place + 1}", float(means[place])) for place in best]
    return [
        graph_svg(moves[np.ix_(best, best)], [names[place] for place in best], steady[best]),
        bars_svg(rows, unit="{:.3g}"),
    ]


def _words(model: SequenceMixture, codes: Any) -> list[str]:
    if model.alphabet_ is None:
        return [str(int(code)) for code in codes]
    return [str(model.alphabet_.symbols[int(code)]) for code in codes]


def _samples(model: SequenceMixture, which: int) -> str:
    if model.observes == "vectors":
        return ""
    generator = np.random.default_rng(which)
    made = []
    for _ in range(_SAMPLES):
        codes = model.bank_.sample(model.parameters_, which, np.empty(0, np.int32), 40, generator)
        words = _words(model, codes)
        single = all(len(word) == 1 for word in words)
        made.append(("" if single and model.alphabet_ is not None else " ").join(words)[:120])
    return "\n".join(made)
