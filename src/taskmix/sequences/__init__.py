"""Tasks that are few sequences each: mixtures of shared sequence generators."""

from taskmix.sequences._alpha import learn_alpha
from taskmix.sequences._bank import Bank, make_bank
from taskmix.sequences._baselines import PooledMixture, SeparateModels, SeparateState
from taskmix.sequences._batches import BatchState
from taskmix.sequences._choice import Choice, choose_generators, find_symbols
from taskmix.sequences._comparison import (
    SHARED_NAME,
    Compared,
    Comparison,
    baselines,
    compare,
)
from taskmix.sequences._corpus import Corpus, gather_corpus
from taskmix.sequences._data import Alphabet, Sequences, gather_sequences
from taskmix.sequences._em import EMOptions, MixtureState, variational_em
from taskmix.sequences._estimator import SequenceMixture
from taskmix.sequences._expectation import Division, Settling, divide
from taskmix.sequences._fitting import Fitting, fit_now
from taskmix.sequences._folder import MixtureFolder
from taskmix.sequences._gaussian import Gaussian
from taskmix.sequences._gaussian_hidden_markov import GaussianHiddenMarkov
from taskmix.sequences._generator import SHARED, Expected, Generator, Next, Statistics
from taskmix.sequences._hidden_markov import HiddenMarkov
from taskmix.sequences._linear_dynamics import LinearDynamics
from taskmix.sequences._markov import Markov
from taskmix.sequences._multinomial import Multinomial
from taskmix.sequences._prediction import Judgement, Prediction
from taskmix.sequences._record import FitStoppedError, RecordedFits
from taskmix.sequences._recurrent import Recurrent
from taskmix.sequences._restarts import FitState, fit_mixture
from taskmix.sequences._similarity import task_similarity
from taskmix.sequences._stochastic import StochasticOptions, StochasticState
from taskmix.sequences._storage import load_mixture, save_mixture

__all__ = [
    "SHARED",
    "SHARED_NAME",
    "Alphabet",
    "Bank",
    "BatchState",
    "Choice",
    "Compared",
    "Comparison",
    "Corpus",
    "Division",
    "EMOptions",
    "Expected",
    "FitState",
    "FitStoppedError",
    "Fitting",
    "Gaussian",
    "GaussianHiddenMarkov",
    "Generator",
    "HiddenMarkov",
    "Judgement",
    "LinearDynamics",
    "Markov",
    "MixtureFolder",
    "MixtureState",
    "Multinomial",
    "Next",
    "PooledMixture",
    "Prediction",
    "RecordedFits",
    "Recurrent",
    "SeparateModels",
    "SeparateState",
    "SequenceMixture",
    "Sequences",
    "Settling",
    "Statistics",
    "StochasticOptions",
    "StochasticState",
    "baselines",
    "choose_generators",
    "compare",
    "divide",
    "find_symbols",
    "fit_mixture",
    "fit_now",
    "gather_corpus",
    "gather_sequences",
    "learn_alpha",
    "load_mixture",
    "make_bank",
    "save_mixture",
    "task_similarity",
    "variational_em",
]
