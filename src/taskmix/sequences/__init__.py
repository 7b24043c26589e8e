"""Tasks that are few sequences each: mixtures of shared sequence generators.

- data: `_sequences` (flat arrays, alphabets), `_corpus` (which task has which sequence), `_splits`
- generators: `_generator` is what one is; `_markov` (with `_chains` and `_backoff`, its prior),
  `_multinomial`, `_hidden_markov` and `_gaussian_hidden_markov` (`_hidden_*`), `_gaussian` (`_normal`),
  `_linear_dynamics`, `_recurrent`
- learning: `_bank` (several kinds as one), `_expectation`, `_em`, `_restarts`, `_stochastic`; what tasks
  have of their own is in `_own_chains` (symbols), `_own_generators` (vectors) and `_crossing`
- the estimator: `_prediction` → `_fitted` → `_scoring` → `_estimator`; `_scores`, `_continuation`
- judging: `_choice`, `_comparison`, `_figures`, `_held_out_scores`
- keeping: `_storage` (a file), `_record` (fits that go on), `_folder`; `_work` does all for a command
"""

from taskmix.sequences._bank import Bank, make_bank
from taskmix.sequences._choice import choose_mixture, narrow_smoothing
from taskmix.sequences._comparison import (
    Compared,
    MixtureComparison,
    PooledMixture,
    SeparateModels,
    compare_with_baselines,
)
from taskmix.sequences._continuation import Continuation, continue_sequence
from taskmix.sequences._corpus import gather_corpus
from taskmix.sequences._em import EMOptions, learn_alpha, variational_em
from taskmix.sequences._estimator import SequenceMixture
from taskmix.sequences._expectation import Division, Settling, divide_sequences
from taskmix.sequences._figures import (
    HeldOutFigures,
    held_out_figures,
    held_out_verdict,
    mixture_table,
)
from taskmix.sequences._folder import MixtureFolder, SequenceReport
from taskmix.sequences._gaussian import Gaussian
from taskmix.sequences._gaussian_hidden_markov import GaussianHiddenMarkov
from taskmix.sequences._generator import (
    SHARED,
    ExpectedStatistics,
    Generator,
    Next,
    Statistics,
    put_generators,
    running_totals,
    sums_by_sequence,
    take_generators,
)
from taskmix.sequences._held_out_scores import (
    HeldOutScores,
    ScoredExample,
    calibrate_scores,
    score_held_out,
    task_similarity,
)
from taskmix.sequences._hidden_markov import HiddenMarkov, HiddenMarkovParameters
from taskmix.sequences._linear_dynamics import LinearDynamics, LinearDynamicsParameters
from taskmix.sequences._markov import Markov
from taskmix.sequences._multinomial import Multinomial
from taskmix.sequences._own_chains import OwnStrengths
from taskmix.sequences._own_generators import AdaptedStrengths
from taskmix.sequences._prediction import Judgement
from taskmix.sequences._record import FitStoppedError, RecordedFits
from taskmix.sequences._recurrent import Recurrent
from taskmix.sequences._restarts import FitState, fit_mixture
from taskmix.sequences._scores import ScoreReference, SequenceScores
from taskmix.sequences._scoring import TaskShares
from taskmix.sequences._sequences import UNKNOWN, Alphabet, Sequences, flatten_sequences
from taskmix.sequences._splits import SequenceData, TaskSequences, split_sequences
from taskmix.sequences._storage import load_mixture, save_mixture
from taskmix.sequences._tried import MixtureChoice, TriedMixture
from taskmix.sequences._work import CALIBRATION_FOLDS, MixtureRecipe, MixtureWork

__all__ = [
    "CALIBRATION_FOLDS",
    "SHARED",
    "UNKNOWN",
    "AdaptedStrengths",
    "Alphabet",
    "Bank",
    "Compared",
    "Continuation",
    "Division",
    "EMOptions",
    "ExpectedStatistics",
    "FitState",
    "FitStoppedError",
    "Gaussian",
    "GaussianHiddenMarkov",
    "Generator",
    "HeldOutFigures",
    "HeldOutScores",
    "HiddenMarkov",
    "HiddenMarkovParameters",
    "Judgement",
    "LinearDynamics",
    "LinearDynamicsParameters",
    "Markov",
    "MixtureChoice",
    "MixtureComparison",
    "MixtureFolder",
    "MixtureRecipe",
    "MixtureWork",
    "Multinomial",
    "Next",
    "OwnStrengths",
    "PooledMixture",
    "RecordedFits",
    "Recurrent",
    "ScoreReference",
    "ScoredExample",
    "SeparateModels",
    "SequenceData",
    "SequenceMixture",
    "SequenceReport",
    "SequenceScores",
    "Sequences",
    "Settling",
    "Statistics",
    "TaskSequences",
    "TaskShares",
    "TriedMixture",
    "calibrate_scores",
    "choose_mixture",
    "compare_with_baselines",
    "continue_sequence",
    "divide_sequences",
    "fit_mixture",
    "flatten_sequences",
    "gather_corpus",
    "held_out_figures",
    "held_out_verdict",
    "learn_alpha",
    "load_mixture",
    "make_bank",
    "mixture_table",
    "narrow_smoothing",
    "put_generators",
    "running_totals",
    "save_mixture",
    "score_held_out",
    "split_sequences",
    "sums_by_sequence",
    "take_generators",
    "task_similarity",
    "variational_em",
]

from typing import TYPE_CHECKING

if not TYPE_CHECKING:
    from taskmix._gone import refuse_gone_names

    __getattr__ = refuse_gone_names(__name__)
