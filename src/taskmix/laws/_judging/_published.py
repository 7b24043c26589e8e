"""The formulas of the paper, to be compared with any table.

    Bettgenhäuser, Hedderich and Klakow, "Learning Functions to Study the Benefit of Multitask
    Learning", 2020: equations 3 to 6 (balanced) and 7 to 11 (unbalanced), and the rates of the bounds
    its section 2 quotes: Baxter 2000, Maurer et al. 2016, Liu et al. 2017, Ciliberto et al. 2017.

`n` are samples per task, `T` tasks, `ami` the adjusted mutual information; `n_ner` and `n_syn` the
samples of the real and of the synthetic tasks. The paper's scores are F1 times a factor, 100 or 1000
"in the different experiments" without saying which; 100 fits equations 3 and 7 to 10, and a
comparison has a column with a scale of its own for the others. A bound is of the excess error and
known up to a factor: it is compared as score = a + b * rate.
"""

from __future__ import annotations

from types import MappingProxyType

HUNDREDTHS = 100
PAPER_LAWS = MappingProxyType(
    {
        "eq3": "sqrt(n) * 0.69",
        "eq4": "sqrt(ami / 0.015)",
        "eq5": "sqrt(T * 20)",
        "eq6": "sqrt((log(T) + 0.45) * (ami * n / (ami + 0.6)))",
        "eq7": "sqrt(n_ner)",
        "eq8": "sqrt(n_syn) * 0.69",
        "eq9": "sqrt(2 * ami) / 0.026",
        "eq10": "log(sqrt(T) + log(T)) / 0.039",
        "eq11": "sqrt(log(n_ner / 0.38) * (sqrt(T) + T)) * sqrt(n_syn * ami)",
    }
)
BOUND_RATES = MappingProxyType(
    {
        "baxter_n": "sqrt(log(n) / n)",
        "baxter_T": "sqrt(log(T) / T)",
        "maurer_n": "sqrt(1 / n)",
        "maurer_T": "sqrt(1 / T)",
        "liu_n": "1 / n",
        "liu_T": "1 / T",
        "ciliberto_unrelated": "(T / n)^0.25",
        "ciliberto_related": "(1 / (n * T))^0.25",
    }
)
