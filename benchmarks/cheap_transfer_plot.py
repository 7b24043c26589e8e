"""Draws what `cheap_transfer.py` wrote: rank correlation against the share of the truth's seconds.

    python benchmarks/cheap_transfer_plot.py digits.csv census.csv school.csv ten.csv --out cheap.svg

Bars are 95 % intervals over targets; the broken line is the ceiling of each folder.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import altair as alt

GOAL = {"within": 0.9, "share": 0.1}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    rows = []
    for table in options.tables:
        with table.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                numbers = ("within", "low", "high", "share", "ceiling_within")
                rows.append(row | {name: float(row[name]) for name in numbers})
    across = alt.X("share:Q", scale=alt.Scale(type="log"), title="share of the truth's seconds")
    base = alt.Chart()
    dots = base.mark_point(filled=True, size=60, opacity=1).encode(
        x=across,
        y=alt.Y("within:Q", title="rank correlation within a target", scale={"domain": [-0.5, 1]}),
        color=alt.Color("estimator:N", title=None, legend=alt.Legend(orient="bottom")),
        shape=alt.Shape("estimator:N", title=None),
    )
    bars = base.mark_rule().encode(x=across, y="low:Q", y2="high:Q", color="estimator:N")
    ceiling = base.mark_rule(strokeDash=[4, 3], color="gray").encode(y="mean(ceiling_within):Q")
    goal = base.transform_calculate(at=str(GOAL["share"]), to=str(GOAL["within"])).mark_point(
        shape="cross", size=90, color="black", opacity=1
    )
    chart = alt.layer(
        bars, dots, ceiling, goal.encode(x="at:Q", y="to:Q"), data=alt.Data(values=rows)
    ).properties(width=190, height=190)
    chart.facet(facet=alt.Facet("folder:N", title=None), columns=2).save(options.out)


if __name__ == "__main__":
    main()
