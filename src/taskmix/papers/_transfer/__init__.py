"""Transfer (Li, Nguyen and Zhang, 2023): linear tasks, census, weak supervision, 25 text tasks."""

from taskmix.papers._transfer._census import CensusOptions, reproduce_census
from taskmix.papers._transfer._nlp25 import Nlp25Options, reproduce_nlp25
from taskmix.papers._transfer._theory import TransferTheoryOptions, reproduce_transfer_theory
from taskmix.papers._transfer._weak_supervision import WeakOptions, reproduce_weak_supervision

__all__ = [
    "CensusOptions",
    "Nlp25Options",
    "TransferTheoryOptions",
    "WeakOptions",
    "reproduce_census",
    "reproduce_nlp25",
    "reproduce_transfer_theory",
    "reproduce_weak_supervision",
]
