"""Mixtures: from a table of runs on mixtures of domains to the mixture of the next run."""

from taskmix.mixtures._domain_changes import (
    DomainChange,
    apply_changes,
    merge_domains,
    read_changes,
    rename_domains,
    split_domains,
)
from taskmix.mixtures._expected_regret import ExpectedRegret, estimate_regret
from taskmix.mixtures._first_design import FirstDesign, first_mixtures
from taskmix.mixtures._forecast import (
    Forecast,
    LeftOutRuns,
    StackedForecast,
    forecast_mixtures,
    usual_laws,
)
from taskmix.mixtures._laws._effective import EffectiveDataLaw
from taskmix.mixtures._laws._exponential import ExponentialLaw
from taskmix.mixtures._laws._law import MixtureLaw
from taskmix.mixtures._laws._log_linear import LogLinearLaw
from taskmix.mixtures._laws._process import ProcessLaw
from taskmix.mixtures._learning._document import (
    CarryRow,
    ComparedMixture,
    DomainRow,
    ForecastValue,
    FrontPoint,
    LawWeight,
    LeftOutMetric,
    MixtureFront,
    MixtureReport,
    PredictedMixture,
    RunsToDo,
    RunToDo,
    is_mixtures_document,
    read_mixtures_document,
    write_mixtures,
)
from taskmix.mixtures._learning._learn import learn_mixtures
from taskmix.mixtures._learning._lessons import MixtureLessons
from taskmix.mixtures._learning._shown import MixtureLines, describe_mixtures
from taskmix.mixtures._next_runs import NextRuns, next_mixtures
from taskmix.mixtures._optimum._distance import DistanceToRuns, measure_distance
from taskmix.mixtures._optimum._front import FrontMixture, find_front
from taskmix.mixtures._optimum._limits import DomainGroup, MixtureLimits, effective_tokens
from taskmix.mixtures._optimum._optimum import MixtureGain, MixtureOptimum, find_optimum
from taskmix.mixtures._optimum._sensitivity import (
    MixtureSensitivity,
    measure_sensitivity,
)
from taskmix.mixtures._optimum._target import MixtureTarget
from taskmix.mixtures._own_data import forecast_own_data
from taskmix.mixtures._reading._read import read_mixtures
from taskmix.mixtures._reading._study import table_of_study
from taskmix.mixtures._scales._agreement import RankAgreement, RankCarry, rank_agreement
from taskmix.mixtures._scales._at_size import SizeForecast, forecast_at_size
from taskmix.mixtures._scales._large_runs import LargeRun, SettlingRuns, choose_large_runs
from taskmix.mixtures._scales._ranks import RankCorrelation
from taskmix.mixtures._swarm._domains import domains_of_swarm
from taskmix.mixtures._swarm._estimate import check_swarm_time, estimate_swarm, say_duration
from taskmix.mixtures._swarm._options import SwarmOptions, as_count
from taskmix.mixtures._swarm._runs import swarm_runs
from taskmix.mixtures._swarm._tokenizer import pieces_to_learn, train_tokenizer
from taskmix.mixtures._swarm._train import SwarmSpeed, TrainedSwarm, train_swarm, write_table_files
from taskmix.mixtures._table import MixtureTable

__all__ = [
    "CarryRow",
    "ComparedMixture",
    "DistanceToRuns",
    "DomainChange",
    "DomainGroup",
    "DomainRow",
    "EffectiveDataLaw",
    "ExpectedRegret",
    "ExponentialLaw",
    "FirstDesign",
    "Forecast",
    "ForecastValue",
    "FrontMixture",
    "FrontPoint",
    "LargeRun",
    "LawWeight",
    "LeftOutMetric",
    "LeftOutRuns",
    "LogLinearLaw",
    "MixtureFront",
    "MixtureGain",
    "MixtureLaw",
    "MixtureLessons",
    "MixtureLimits",
    "MixtureLines",
    "MixtureOptimum",
    "MixtureReport",
    "MixtureSensitivity",
    "MixtureTable",
    "MixtureTarget",
    "NextRuns",
    "PredictedMixture",
    "ProcessLaw",
    "RankAgreement",
    "RankCarry",
    "RankCorrelation",
    "RunToDo",
    "RunsToDo",
    "SettlingRuns",
    "SizeForecast",
    "StackedForecast",
    "SwarmOptions",
    "SwarmSpeed",
    "TrainedSwarm",
    "apply_changes",
    "as_count",
    "check_swarm_time",
    "choose_large_runs",
    "describe_mixtures",
    "domains_of_swarm",
    "effective_tokens",
    "estimate_regret",
    "estimate_swarm",
    "find_front",
    "find_optimum",
    "first_mixtures",
    "forecast_at_size",
    "forecast_mixtures",
    "forecast_own_data",
    "is_mixtures_document",
    "learn_mixtures",
    "measure_distance",
    "measure_sensitivity",
    "merge_domains",
    "next_mixtures",
    "pieces_to_learn",
    "rank_agreement",
    "read_changes",
    "read_mixtures",
    "read_mixtures_document",
    "rename_domains",
    "say_duration",
    "split_domains",
    "swarm_runs",
    "table_of_study",
    "train_swarm",
    "train_tokenizer",
    "usual_laws",
    "write_mixtures",
    "write_table_files",
]

from typing import TYPE_CHECKING

if not TYPE_CHECKING:
    from taskmix._gone import refuse_gone_names

    __getattr__ = refuse_gone_names(__name__)
