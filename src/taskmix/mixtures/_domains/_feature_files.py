"""Features of domains in a file: a JSON document of ours, or a CSV file of the user's."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from taskmix.errors import InputError
from taskmix.files import UnreadableError, check_output, has_keys, read_plain
from taskmix.mixtures._domains._features import DomainFeatures
from taskmix.records import from_plain, write_document
from taskmix.tasks import read_rows

VERSION = 1


@dataclass(frozen=True, kw_only=True)
class FeatureDocument:
    """What the file has; `similarity` is left to the vectors where it is empty."""

    version: int = VERSION
    domain_features: str = ""  # what they were made of; its key says what the file is
    names: tuple[str, ...]
    vectors: tuple[tuple[float, ...], ...]
    similarity: tuple[tuple[float, ...], ...] = ()


def write_features(path: Path | str, features: DomainFeatures) -> Path:
    """Writes features as JSON, over nothing but features that were written before.

    >>> features = DomainFeatures.of_vectors(("a", "b"), np.array([[0.0], [1.0]]))
    >>> read_features(write_features("features.json", features)).names
    ('a', 'b')
    """
    path = Path(path)
    check_output(path, is_ours=has_keys("version", "domain_features"), what="the features")
    return write_document(
        path,
        FeatureDocument(
            domain_features=features.made_of,
            names=features.names,
            vectors=_rounded(features.vectors),
            similarity=_rounded(features.similarity),
        ),
    )


def read_features(path: Path | str) -> DomainFeatures:
    r"""Features from what `write_features` wrote, or from a table: a column of names, then numbers.

    >>> from pathlib import Path
    >>> _ = Path("features.csv").write_text("domain,code,english\nweb,0.1,0.9\npython,0.9,0.4\n")
    >>> read_features("features.csv").vectors.tolist()
    [[0.1, 0.9], [0.9, 0.4]]
    """
    path = Path(path)
    if not path.exists():
        raise _bad(path, "no file")
    if not path.name.lower().endswith(".json"):
        return _of_table(path)
    try:
        found = json.loads(read_plain(path))
        document = from_plain(FeatureDocument, found)
    except UnreadableError as error:
        raise _bad(path, error.found) from error
    except (ValueError, RecursionError) as error:
        raise _bad(path, "something that is no JSON") from error
    except TypeError as error:
        raise _bad(path, f"another form ({error})") from error
    if document.version != VERSION:
        raise _bad(path, f"version {document.version}")
    if len({len(row) for row in document.vectors}) > 1:
        raise _bad(path, "vectors of different lengths")
    vectors = np.array(document.vectors, dtype=np.float64).reshape(len(document.vectors), -1)
    if not document.similarity:
        return DomainFeatures.of_vectors(
            document.names, vectors, made_of=document.domain_features or "features that were given"
        )
    if any(len(row) != len(document.names) for row in document.similarity):
        raise _bad(path, "a similarity that is not square")
    return DomainFeatures(
        names=document.names,
        vectors=vectors,
        similarity=np.array(document.similarity, dtype=np.float64),
        made_of=document.domain_features,
    )


def _of_table(path: Path) -> DomainFeatures:
    table = read_rows(path).table
    names, *columns = table.column_names
    if not columns:
        raise _bad(path, "a single column")
    vectors = np.empty((table.num_rows, len(columns)))
    for place, column in enumerate(columns):
        for row, cell in enumerate(table.column(column).to_pylist()):
            try:
                vectors[row, place] = float(cell)
            except (TypeError, ValueError) as error:
                raise _bad(path, f"{cell!r} in row {row + 2}, column {column!r}") from error
    return DomainFeatures.of_vectors(
        [str(name) for name in table.column(names).to_pylist()], vectors
    )


def _rounded(array: np.ndarray) -> tuple[tuple[float, ...], ...]:
    """Six digits: more are not known of a sample, and the file stays small."""
    return tuple(tuple(float(f"{each:.6g}") for each in row) for row in array)


def _bad(path: Path, found: str) -> InputError:
    return InputError(
        "Features of domains should be a JSON file that `write_features` wrote, or a table with the "
        f"names of the domains in its first column and numbers in the others. Found {found} in `{path}`."
    )
