"""Features of the domains in a folder: each `FOLDER/NAME/train.jsonl.gz`, or `FOLDER/NAME.txt`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from taskmix.errors import InputError
from taskmix.files import list_folder
from taskmix.mixtures._domains._encoder import encoder_features
from taskmix.mixtures._domains._features import DomainFeatures
from taskmix.mixtures._domains._texts import SAMPLE_BYTES, domain_features
from taskmix.tasks import read_rows, text_lines

LOOKED_AT = (
    30  # times as many characters are read as are sampled, so that the sample is from all over
)
TEXT_NAMES = ("text", "content", "document", "body")
ENDINGS = (".txt", ".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet", ".arrow")


def features_of_folder(
    folder: Path | str, *, encoder: str | None = None, sample_bytes: int = SAMPLE_BYTES
) -> DomainFeatures:
    r"""Features of domains from a folder with a sub-folder, or a file, for each.

    Of a sub-folder the files whose names begin with `train` are read, or all where there are none: a
    `.txt` has a text a line, other files a column `text`. With `encoder`, a folder or a name of a
    pretrained model (extra `text`), the features are the means of its vectors; without, statistics of
    bytes (`domain_features`).

    >>> from pathlib import Path
    >>> for name, words in {"a": "good film", "b": "bad film", "c": "12345 67890"}.items():
    ...     _ = Path(f"{name}.txt").write_text(f"{words}\n" * 50)
    >>> features_of_folder(".").names
    ('a', 'b', 'c')
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(
            f"Features of domains should be made of a folder. Found no folder at `{folder}`. Name one "
            "that has a sub-folder or a file for each domain."
        )
    texts = {
        name: list(_some(files, LOOKED_AT * sample_bytes))
        for name, files in _domains(folder).items()
    }
    if not texts:
        raise InputError(
            f"A folder of domains should have sub-folders or files ending in {', '.join(ENDINGS)}. "
            f"Found none in `{folder}`. Put the texts of each domain into one."
        )
    if encoder is not None:
        return encoder_features(texts, encoder)
    return domain_features(texts, sample_bytes=sample_bytes)


def _domains(folder: Path) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for name in sorted(list_folder(folder)):
        path = folder / name
        if name.startswith("."):
            continue
        if path.is_dir():
            files = [path / each for each in sorted(list_folder(path)) if _stem(each) is not None]
            of_train = [file for file in files if file.name.lower().startswith("train")]
            if files:
                found[name] = of_train or files
        elif (stem := _stem(name)) is not None and name != "sources.tsv":
            found.setdefault(stem, []).append(path)
    return found


def _stem(name: str) -> str | None:
    """The name without its ending; None where it is no file of texts."""
    plain = name[:-3] if name.lower().endswith(".gz") else name
    ending = next((each for each in ENDINGS if plain.lower().endswith(each)), None)
    return None if ending is None or len(plain) == len(ending) else plain[: -len(ending)]


def _some(files: list[Path], most: int) -> Iterator[str]:
    """Texts, until there are `most` characters."""
    taken = 0
    for file in files:
        for text in _texts(file):
            yield text
            taken += len(text)
            if taken >= most:
                return


def _texts(file: Path) -> Iterator[str]:
    plain = file.name.lower().removesuffix(".gz")
    if plain.endswith(".txt"):
        yield from (line for line in text_lines(file) if line.strip())
        return
    if plain.endswith(
        (".jsonl", ".ndjson")
    ):  # line by line: a domain may be larger than the memory
        for number, line in enumerate(text_lines(file), 1):
            if line.strip():
                yield _text_of(line, file, number)
        return
    table = read_rows(file).table
    column = next((name for name in TEXT_NAMES if name in table.column_names), None)
    if column is None:
        raise _without_text(file, f"the columns {', '.join(map(repr, table.column_names))}")
    yield from (str(text) for text in table.column(column).to_pylist() if text)


def _text_of(line: str, file: Path, number: int) -> str:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _without_text(file, f"a row {number} that is no JSON") from error
    if isinstance(row, dict):
        row = next((row[name] for name in TEXT_NAMES if name in row), None)
    if not isinstance(row, str):
        raise _without_text(file, f"a row {number} without one")
    return row


def _without_text(file: Path, found: str) -> InputError:
    return InputError(
        f"A file of a domain should have texts in a column `text`. Found {found} in `{file}`. Rename "
        "the column that has the texts."
    )
