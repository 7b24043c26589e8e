"""Files: written whole or not at all, read only if they are plain, deleted only if they are ours."""

from taskmix.files._allowance import Allowance, free_memory
from taskmix.files._atomic import (
    Sink,
    UnreadableError,
    delete,
    is_temporary,
    list_folder,
    make_folder,
    making_folder,
    remove_stale,
    replacing,
    sync_folder,
    unreadable,
    write_bytes,
)
from taskmix.files._formulas import guard_formula, unguard_formula
from taskmix.files._lock import holding, read_note
from taskmix.files._output import check_output, check_output_folder, check_outside, has_keys
from taskmix.files._parquet import check_parquet
from taskmix.files._plain import (
    DOCUMENT_LIMIT,
    check_plain,
    check_plain_folder,
    open_plain,
    read_plain,
)

__all__ = [
    "DOCUMENT_LIMIT",
    "Allowance",
    "Sink",
    "UnreadableError",
    "check_output",
    "check_output_folder",
    "check_outside",
    "check_parquet",
    "check_plain",
    "check_plain_folder",
    "delete",
    "free_memory",
    "guard_formula",
    "has_keys",
    "holding",
    "is_temporary",
    "list_folder",
    "make_folder",
    "making_folder",
    "open_plain",
    "read_note",
    "read_plain",
    "remove_stale",
    "replacing",
    "sync_folder",
    "unguard_formula",
    "unreadable",
    "write_bytes",
]
