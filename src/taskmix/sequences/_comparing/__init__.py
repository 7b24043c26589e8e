"""Is sharing worth it: what shared generators are compared with, and how many there should be.

`_baselines` are the models that do not share; `_comparison` judges all on sequences that were held
out, and `_choice` tries several mixtures (`_tried`, `_smoothing`); each fit is asked for by way of
`_fitting`, so that it may be recorded. `_calibration` scores sequences while they are held out,
`_held_out_scores` shows some of them. `_similarity` says how alike tasks are.
"""

from taskmix.sequences._comparing._baselines import (
    PooledMixture,
    SeparateModels,
    SeparateState,
    SequenceModel,
)
from taskmix.sequences._comparing._calibration import calibrate_scores
from taskmix.sequences._comparing._choice import (
    BUDGET,
    choose_mixture,
    find_symbols,
)
from taskmix.sequences._comparing._comparison import (
    SHARED_NAME,
    Compared,
    MixtureComparison,
    compare_with_baselines,
    make_baselines,
)
from taskmix.sequences._comparing._figures import (
    FiguresTable,
    HeldOutFigures,
    held_out_figures,
    held_out_verdict,
    mixture_table,
)
from taskmix.sequences._comparing._fitting import Fitting, fit_now
from taskmix.sequences._comparing._held_out_scores import (
    HeldOutScores,
    ScoredExample,
    score_held_out,
)
from taskmix.sequences._comparing._similarity import task_similarity
from taskmix.sequences._comparing._smoothing import narrow_smoothing
from taskmix.sequences._comparing._tried import MixtureChoice, TriedMixture, generator_words

__all__ = [
    "BUDGET",
    "SHARED_NAME",
    "Compared",
    "FiguresTable",
    "Fitting",
    "HeldOutFigures",
    "HeldOutScores",
    "MixtureChoice",
    "MixtureComparison",
    "PooledMixture",
    "ScoredExample",
    "SeparateModels",
    "SeparateState",
    "SequenceModel",
    "TriedMixture",
    "calibrate_scores",
    "choose_mixture",
    "compare_with_baselines",
    "find_symbols",
    "fit_now",
    "generator_words",
    "held_out_figures",
    "held_out_verdict",
    "make_baselines",
    "mixture_table",
    "narrow_smoothing",
    "score_held_out",
    "task_similarity",
]
