"""Swarms: many small models, each trained on its own mixture of the domains."""

from taskmix.mixtures._swarm._domains import domains_of_swarm
from taskmix.mixtures._swarm._estimate import check_swarm_time, estimate_swarm, say_duration
from taskmix.mixtures._swarm._options import SwarmOptions
from taskmix.mixtures._swarm._runs import swarm_runs
from taskmix.mixtures._swarm._size import as_count
from taskmix.mixtures._swarm._table_files import write_table_files
from taskmix.mixtures._swarm._tokenizer import pieces_to_learn, train_tokenizer
from taskmix.mixtures._swarm._train import SwarmSpeed, TrainedSwarm, train_swarm

__all__ = [
    "SwarmOptions",
    "SwarmSpeed",
    "TrainedSwarm",
    "as_count",
    "check_swarm_time",
    "domains_of_swarm",
    "estimate_swarm",
    "pieces_to_learn",
    "say_duration",
    "swarm_runs",
    "train_swarm",
    "train_tokenizer",
    "write_table_files",
]
