"""Drawings of a mixture of sequence generators, as SVG that needs no script.

Colours are the page's own CSS variables. Words that come from data go through `escape`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
COLOURS = 9  # `--task-1` ... in page.css; more generators take the same colours, paler


def escape(word: object) -> str:
    """A word as text between tags or inside an attribute."""
    text = str(word)
    for character, safe in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        text = text.replace(character, safe)
    return text


def colour(place: int) -> str:
    return f"var(--task-{place % COLOURS + 1})"


def shares_svg(theta: Floats, tasks: Sequence[str]) -> str:
    """A bar for each task, cut by its shares of the generators."""
    label, width, height = 150, 520, 18
    parts = []
    for row, (name, shares) in enumerate(zip(tasks, theta, strict=True)):
        top, left = row * (height + 4), float(label)
        shown = name if len(name) <= 20 else name[:19] + "…"
        parts.append(
            f'<text x="{label - 8}" y="{top + 13}" text-anchor="end">{escape(shown)}</text>'
        )
        for place, share in enumerate(shares):
            size = float(share) * width
            opacity = 0.95 if place < COLOURS else 0.55
            parts.append(
                f'<rect x="{left:.1f}" y="{top}" width="{size:.1f}" height="{height}" '
                f'fill="{colour(place)}" fill-opacity="{opacity}">'
                f"<title>{escape(name)}: {share:.0%} of generator {place + 1}</title></rect>"
            )
            if size > 22:
                middle = left + size / 2
                parts.append(
                    f'<text x="{middle:.1f}" y="{top + 13}" text-anchor="middle" class="on">'
                    f"{place + 1}</text>"
                )
            left += size
    return _svg(label + width + 8, len(theta) * (height + 4), parts, "shares of generators by task")


def graph_svg(
    moves: Floats,  # [node, node], probabilities
    names: Sequence[str],
    sizes: Floats,  # [node], how often it is visited
    *,
    least: float = 0.08,
) -> str:
    """Nodes on a circle; an arrow for every step that is not too rare."""
    count, radius, centre = len(names), 118.0, 160.0
    angles = 2 * math.pi * np.arange(count) / max(count, 1) - math.pi / 2
    where = centre + radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    biggest = float(sizes.max()) or 1.0
    rounds = 9 + 11 * np.sqrt(np.maximum(sizes, 0) / biggest)
    parts = []
    for a in range(count):
        for b in range(count):
            share = float(moves[a, b])
            if share >= least:
                parts.append(_arrow(where, rounds, a, b, share, names, centre))
    for place, name in enumerate(names):
        x, y = where[place]
        shown = name if len(name) <= 7 else name[:6] + "…"
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{rounds[place]:.1f}" class="node">'
            f"<title>{escape(name)}: {sizes[place]:.0%}</title></circle>"
            f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle">{escape(shown)}</text>'
        )
    return _svg(320, 320, parts, "transitions")


def _arrow(
    where: Floats, rounds: Floats, a: int, b: int, share: float, names: Sequence[str], centre: float
) -> str:
    (x1, y1), (x2, y2) = where[a], where[b]
    title = f"<title>{escape(names[a])} → {escape(names[b])}: {share:.0%}</title>"
    style = f'stroke-width="{0.6 + 3.4 * share:.2f}" stroke-opacity="{0.25 + 0.7 * share:.2f}"'
    if a == b:
        out_x, out_y = x1 - centre, y1 - centre
        size = math.hypot(out_x, out_y) or 1.0
        ux, uy = out_x / size, out_y / size
        far = rounds[a] + 16
        path = (
            f"M {x1 - uy * 6 + ux * rounds[a]:.1f} {y1 + ux * 6 + uy * rounds[a]:.1f} "
            f"C {x1 - uy * 16 + ux * far:.1f} {y1 + ux * 16 + uy * far:.1f} "
            f"{x1 + uy * 16 + ux * far:.1f} {y1 - ux * 16 + uy * far:.1f} "
            f"{x1 + uy * 6 + ux * rounds[a]:.1f} {y1 - ux * 6 + uy * rounds[a]:.1f}"
        )
        return f'<path d="{path}" class="edge" {style}>{title}</path>'
    length = math.hypot(x2 - x1, y2 - y1)
    ux, uy = (x2 - x1) / length, (y2 - y1) / length
    bend = 0.12 * length
    mx, my = (x1 + x2) / 2 - uy * bend, (y1 + y2) / 2 + ux * bend
    sx, sy = x1 + ux * rounds[a], y1 + uy * rounds[a]
    ex, ey = x2 - ux * (rounds[b] + 4), y2 - uy * (rounds[b] + 4)
    tx, ty = ex - mx, ey - my
    turn = math.hypot(tx, ty) or 1.0
    tx, ty = tx / turn, ty / turn
    head = (
        f"M {ex:.1f} {ey:.1f} L {ex - 6 * tx - 3 * ty:.1f} {ey - 6 * ty + 3 * tx:.1f} "
        f"L {ex - 6 * tx + 3 * ty:.1f} {ey - 6 * ty - 3 * tx:.1f} Z"
    )
    return (
        f'<path d="M {sx:.1f} {sy:.1f} Q {mx:.1f} {my:.1f} {ex:.1f} {ey:.1f}" class="edge" {style}>'
        f'{title}</path><path d="{head}" class="head" fill-opacity="{0.25 + 0.7 * share:.2f}"/>'
    )


def bars_svg(rows: Sequence[tuple[str, float]], *, unit: str = "{:.0%}") -> str:
    """Named bars, longest first as given."""
    label, width, height = 110, 180, 15
    most = max((abs(value) for _, value in rows), default=1.0) or 1.0
    parts = []
    for place, (name, value) in enumerate(rows):
        top = place * (height + 3)
        shown = name if len(name) <= 15 else name[:14] + "…"
        size = abs(value) / most * width
        parts.append(
            f'<text x="{label - 6}" y="{top + 11.5}" text-anchor="end">{escape(shown)}</text>'
            f'<rect x="{label}" y="{top}" width="{size:.1f}" height="{height}" class="bar"/>'
            f'<text x="{label + size + 5:.1f}" y="{top + 11.5}" class="soft">'
            f"{escape(unit.format(value))}</text>"
        )
    return _svg(label + width + 50, max(len(rows), 1) * (height + 3), parts, "bars")


def map_svg(values: Floats, names: Sequence[str], what: str) -> str:
    """A square of shades, dark for one."""
    count = len(names)
    cell, label = max(6, min(22, 520 // max(count, 1))), 130
    parts = []
    for a in range(count):
        shown = names[a] if len(names[a]) <= 18 else names[a][:17] + "…"
        if cell >= 10:
            parts.append(
                f'<text x="{label - 6}" y="{a * cell + cell * 0.7:.1f}" text-anchor="end">'
                f"{escape(shown)}</text>"
            )
        for b in range(count):
            value = float(values[a, b])
            parts.append(
                f'<rect x="{label + b * cell}" y="{a * cell}" width="{cell}" height="{cell}" '
                f'class="shade" fill-opacity="{max(value, 0.0):.3f}">'
                f"<title>{escape(names[a])}, {escape(names[b])}: {value:.2f}</title></rect>"
            )
    return _svg(label + count * cell + 4, count * cell + 4, parts, what)


def line_svg(values: Sequence[float], what: str) -> str:
    """One line from left to right."""
    width, height = 460, 150
    level = np.array(values, dtype=np.float64)
    low, high = float(level.min()), float(level.max())
    span = (high - low) or 1.0
    across = np.linspace(90, width - 10, len(level)) if len(level) > 1 else np.array([width / 2])
    up = height - 22 - (level - low) / span * (height - 40)
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(across, up, strict=True))
    parts: list[Any] = [
        f'<polyline points="{points}" class="line"/>',
        f'<text x="84" y="{up.max():.1f}" text-anchor="end">{low:.4g}</text>',
        f'<text x="84" y="{up.min() + 4:.1f}" text-anchor="end">{high:.4g}</text>',
        f'<text x="90" y="{height - 4}">1</text>',
        f'<text x="{width - 10}" y="{height - 4}" text-anchor="end">{len(level)}</text>',
    ]
    return _svg(width, height, parts, what)


def _svg(width: float, height: float, parts: Sequence[str], what: str) -> str:
    return (
        f'<svg width="{width + 4:.0f}" viewBox="-2 -2 {width + 4:.0f} {height + 4:.0f}" role="img" '
        f'aria-label="{escape(what)}">{"".join(parts)}</svg>'
    )
