"""What is remembered: a folder for each run, readable without taskmix, and a folder of runs.

    with Study("study").run(specification).claim() as claim:
        if claim.writer is not None:
            claim.writer.start(specification=specification, seed=7, label="uniform", ...)

`claim.outcome` is `claimed`, `finished` (nothing is left to do) or `busy` (another process is at it).
"""

from taskmix.records._carried import pack_labels, pack_run, unpack_run
from taskmix.records._checkpoint import Checkpoint
from taskmix.records._json import (
    LEFT_OUT_IF_NONE,
    from_plain,
    parse_whole_number,
    read_document,
    to_plain,
    write_document,
)
from taskmix.records._run import RunFolder
from taskmix.records._specification import describe, later_option, specification_hash
from taskmix.records._state import StateTree, load_state, save_state
from taskmix.records._study import Study
from taskmix.records._subject import Subject
from taskmix.records._summary import FinalScore, RunSummary
from taskmix.records._writer import RecordWriter

__all__ = [
    "LEFT_OUT_IF_NONE",
    "Checkpoint",
    "FinalScore",
    "RecordWriter",
    "RunFolder",
    "RunSummary",
    "StateTree",
    "Study",
    "Subject",
    "describe",
    "from_plain",
    "later_option",
    "load_state",
    "pack_labels",
    "pack_run",
    "parse_whole_number",
    "read_document",
    "save_state",
    "specification_hash",
    "to_plain",
    "unpack_run",
    "write_document",
]

from typing import TYPE_CHECKING

if not TYPE_CHECKING:
    from taskmix._gone import refuse_gone_names

    __getattr__ = refuse_gone_names(__name__)
