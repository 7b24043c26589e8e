"""What is learned: tasks as read from files, tasks as tensors, and how they are scored."""

from taskmix.tasks._apply import (
    NewRows,
    Question,
    encode_with,
    frame_table,
    is_frame,
    learned_by,
    rows_by_task,
)
from taskmix.tasks._columns._roles import ColumnKind
from taskmix.tasks._encoding._assemble import Encoding
from taskmix.tasks._encoding._features import FeatureEncoding, texts_of
from taskmix.tasks._encoding._frozen import usual_precision
from taskmix.tasks._encoding._inputs import (
    DenseInputs,
    EncodedSplit,
    EncodedTask,
    EncodedTasks,
    Inputs,
    PaddedInputs,
    PairInputs,
    RaggedInputs,
    SubwordInputs,
    WindowInputs,
)
from taskmix.tasks._encoding._ngrams import NgramEncoding, Ngrams
from taskmix.tasks._encoding._passages import PassageEncoding
from taskmix.tasks._encoding._pooling import Pooling, find_pooling, is_causal, pool
from taskmix.tasks._encoding._pretrained import (
    load_pretrained,
    outline_network,
    quiet_transformers,
    stamp_of,
)
from taskmix.tasks._encoding._subwords import SubwordEncoding
from taskmix.tasks._encoding._tables import TableEncoding
from taskmix.tasks._encoding._vectors import read_word_vectors, vectors_for
from taskmix.tasks._encoding._words import WindowEncoding, WordEncoding, build_vocabulary, tokenize
from taskmix.tasks._formats._arrow import read_parquet
from taskmix.tasks._formats._readers import read_rows
from taskmix.tasks._formats._streams import text_lines
from taskmix.tasks._held import (
    HeldEncoding,
    gather_tasks,
    held_inputs,
    held_tasks,
    tables_as_tasks,
)
from taskmix.tasks._loading._folder import load_tasks
from taskmix.tasks._loading._sequences import SequenceRows, cut_symbols, read_sequences
from taskmix.tasks._looking._check import ColumnSeen, FileRead, TaskCheck, TaskRead, check_tasks
from taskmix.tasks._looking._look import Finding, FindingKind, look_at
from taskmix.tasks._reading import WRITTEN, InputKind, Reading, TaskKind
from taskmix.tasks._reading_lines import reading_lines, readings_document
from taskmix.tasks._scoring._entities import conlleval_report, entity_counts, io_to_iob2
from taskmix.tasks._scoring._metrics import (
    METRICS,
    Metric,
    class_shares,
    evaluate_outputs,
    evaluate_written,
    find_metric,
    metric_of_imbalance,
    row_credits,
    written_credits,
)
from taskmix.tasks._scoring._written import WrittenText
from taskmix.tasks._simulating import Simulation, digits_tasks, simulate_imbalanced, simulate_tasks
from taskmix.tasks._task import (
    MISSING,
    KeptByTable,
    Split,
    Task,
    TaskSet,
    sample_rows,
    train_on_dev,
)
from taskmix.tasks._write import check_new_folder, write_tasks

__all__ = [
    "METRICS",
    "MISSING",
    "WRITTEN",
    "ColumnKind",
    "ColumnSeen",
    "DenseInputs",
    "EncodedSplit",
    "EncodedTask",
    "EncodedTasks",
    "Encoding",
    "FeatureEncoding",
    "FileRead",
    "Finding",
    "FindingKind",
    "HeldEncoding",
    "InputKind",
    "Inputs",
    "KeptByTable",
    "Metric",
    "NewRows",
    "NgramEncoding",
    "Ngrams",
    "PaddedInputs",
    "PairInputs",
    "PassageEncoding",
    "Pooling",
    "Question",
    "RaggedInputs",
    "Reading",
    "SequenceRows",
    "Simulation",
    "Split",
    "SubwordEncoding",
    "SubwordInputs",
    "TableEncoding",
    "Task",
    "TaskCheck",
    "TaskKind",
    "TaskRead",
    "TaskSet",
    "WindowEncoding",
    "WindowInputs",
    "WordEncoding",
    "WrittenText",
    "build_vocabulary",
    "check_new_folder",
    "check_tasks",
    "class_shares",
    "conlleval_report",
    "cut_symbols",
    "digits_tasks",
    "encode_with",
    "entity_counts",
    "evaluate_outputs",
    "evaluate_written",
    "find_metric",
    "find_pooling",
    "frame_table",
    "gather_tasks",
    "held_inputs",
    "held_tasks",
    "io_to_iob2",
    "is_causal",
    "is_frame",
    "learned_by",
    "load_pretrained",
    "load_tasks",
    "look_at",
    "metric_of_imbalance",
    "outline_network",
    "pool",
    "quiet_transformers",
    "read_parquet",
    "read_rows",
    "read_sequences",
    "read_word_vectors",
    "reading_lines",
    "readings_document",
    "row_credits",
    "rows_by_task",
    "sample_rows",
    "simulate_imbalanced",
    "simulate_tasks",
    "stamp_of",
    "tables_as_tasks",
    "text_lines",
    "texts_of",
    "tokenize",
    "train_on_dev",
    "usual_precision",
    "vectors_for",
    "write_tasks",
    "written_credits",
]

from typing import TYPE_CHECKING

if not TYPE_CHECKING:
    from taskmix._gone import refuse_gone_names

    __getattr__ = refuse_gone_names(__name__)
