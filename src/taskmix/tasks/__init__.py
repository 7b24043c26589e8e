"""What is learned: tasks as read from files, tasks as tensors, and how they are scored."""

from taskmix.tasks._apply import NewRows, Question, encode_with, learned_by
from taskmix.tasks._assemble import Encoding
from taskmix.tasks._digits import digits_tasks
from taskmix.tasks._encoded import (
    DenseInputs,
    EncodedSplit,
    EncodedTask,
    EncodedTasks,
    Inputs,
    PairInputs,
    RaggedInputs,
    SubwordInputs,
    WindowInputs,
)
from taskmix.tasks._entities import EntityCounts, conlleval_report, entity_counts, io_to_iob2
from taskmix.tasks._feature_encoding import FeatureEncoding
from taskmix.tasks._folder import load_tasks
from taskmix.tasks._held import (
    CollatedInputs,
    HeldEncoding,
    held_inputs,
    held_tasks,
    tables_as_tasks,
)
from taskmix.tasks._kept import KeptByTable
from taskmix.tasks._metrics import METRICS, Metric, ScoredRows, evaluate_outputs, find_metric
from taskmix.tasks._pretrained import load_pretrained, quiet_transformers
from taskmix.tasks._readers import read_parquet, read_rows
from taskmix.tasks._reading import Reading, reading_lines, readings_document
from taskmix.tasks._simulate import Simulation, simulate_tasks
from taskmix.tasks._streams import text_lines
from taskmix.tasks._subword_encoding import SubwordEncoding
from taskmix.tasks._table_encoding import TableEncoding
from taskmix.tasks._task import MISSING, InputKind, Split, Task, TaskKind, TaskSet
from taskmix.tasks._vectors import VocabularyVectors, read_word_vectors, vectors_for
from taskmix.tasks._window_encoding import WindowEncoding
from taskmix.tasks._word_encoding import WordEncoding
from taskmix.tasks._words import build_vocabulary, tokenize
from taskmix.tasks._write import check_new_folder, write_tasks

__all__ = [
    "METRICS",
    "MISSING",
    "CollatedInputs",
    "DenseInputs",
    "EncodedSplit",
    "EncodedTask",
    "EncodedTasks",
    "Encoding",
    "EntityCounts",
    "FeatureEncoding",
    "HeldEncoding",
    "InputKind",
    "Inputs",
    "KeptByTable",
    "Metric",
    "NewRows",
    "PairInputs",
    "Question",
    "RaggedInputs",
    "Reading",
    "ScoredRows",
    "Simulation",
    "Split",
    "SubwordEncoding",
    "SubwordInputs",
    "TableEncoding",
    "Task",
    "TaskKind",
    "TaskSet",
    "VocabularyVectors",
    "WindowEncoding",
    "WindowInputs",
    "WordEncoding",
    "build_vocabulary",
    "check_new_folder",
    "conlleval_report",
    "digits_tasks",
    "encode_with",
    "entity_counts",
    "evaluate_outputs",
    "find_metric",
    "held_inputs",
    "held_tasks",
    "io_to_iob2",
    "learned_by",
    "load_pretrained",
    "load_tasks",
    "quiet_transformers",
    "read_parquet",
    "read_rows",
    "read_word_vectors",
    "reading_lines",
    "readings_document",
    "simulate_tasks",
    "tables_as_tasks",
    "text_lines",
    "tokenize",
    "vectors_for",
    "write_tasks",
]
