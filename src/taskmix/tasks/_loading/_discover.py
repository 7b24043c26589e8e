"""Which files make which tasks: the shapes a folder may have, and the entries of a settings file."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from taskmix.errors import InputError, OptionError, TaskFileError
from taskmix.tasks._columns._stack import folded_name, match_column, usual_label
from taskmix.tasks._formats._readers import (
    FORMATS,
    TABLES,
    Rows,
    TableReader,
    column_names,
    file_format,
    how_to_convert,
    refuse_ending,
)
from taskmix.tasks._formats._words import Notes, bad_file, is_too_long, quoted
from taskmix.tasks._frames import is_saved
from taskmix.tasks._loading._build import Origin, make_tasks
from taskmix.tasks._loading._in_memory import hub_parts, origins_in_memory, saved_origin
from taskmix.tasks._loading._settings import (
    TaskEntry,
    TaskSettings,
    path_inside,
    read_task_entries,
    read_task_settings,
)
from taskmix.tasks._loading._splits import (
    files_by_label,
    group_splits,
    is_hidden,
    split_files,
    task_files,
)
from taskmix.tasks._loading._wanted import Wanted
from taskmix.tasks._reading import WITHOUT_TARGETS
from taskmix.tasks._task import Task

_HUB = "hf:"


@dataclass(frozen=True)
class Loader:
    """Finds the files of tasks and has tasks made of them."""

    reader: TableReader
    notes: Notes
    given: TaskSettings  # by keyword
    only: tuple[str, ...] | None  # the tasks asked for
    strict: bool = False  # whether cells that are no numbers, among numbers, are refused

    def load(self, source: Any, settings: Path | None) -> list[Task]:
        """All tasks of the source, or at least those asked for."""
        if settings is not None:
            return self._load_entries(source, Path(settings))
        if not isinstance(source, str | Path):
            origins = origins_in_memory(source, self.notes)
            return [task for origin in origins for task in self._make(origin, self.given)]
        if isinstance(source, str) and source.startswith(_HUB):
            return self._make(self._hub(source), self.given)
        path = Path(source)
        if is_too_long(path):
            should = "The path of the source should be one that a file can have."
            bad_file(path, should, "a longer one", "Check the path.")
        if not path.is_dir():
            if file_format(path) is None and not path.exists():
                should = "The source should be a folder, a file or `hf:` and a name."
                bad_file(path, should, "nothing", "Check the path.")
            return self._make(self._whole(path), self.given)
        return self._load_folder(path, self.given.over(read_task_settings(path)))

    def _load_folder(self, path: Path, own: TaskSettings) -> list[Task]:
        """One task by split, or one for each sub-folder or file."""
        entries = _entries(path)
        groups = group_splits(path, task_files(entries))
        if not groups and (origin := self._split_folder(path)):
            return self._make(origin, own)
        folders = [] if groups else [entry for entry in entries if entry.is_dir()]
        with_tasks = [
            folder
            for folder in folders
            if is_saved(folder) or split_files(folder, _entries(folder))
        ]
        if not with_tasks and not task_files(entries):  # folders with one table each are tasks too
            with_tasks = [folder for folder in folders if len(task_files(_entries(folder))) == 1]
        if not with_tasks:
            return self._load_files(path, own, groups)
        others = [folder.name for folder in folders if folder not in with_tasks]
        if others:
            self.notes.add(f"no train, dev or test file is in {some_of(others)}: left alone")
        if loose := [file.name for file in task_files(entries)]:
            self.notes.add(
                f"the tasks are in folders, so files beside them were left alone: {some_of(loose)}"
            )
        tasks: list[Task] = []
        for folder in with_tasks:
            if self._is_asked_for(folder.name, [other.name for other in with_tasks]):
                origin = self._split_folder(folder) or self._only_table(folder)
                tasks += self._make(origin, self.given.over(read_task_settings(folder)).over(own))
        return tasks

    def _load_files(
        self, folder: Path, own: TaskSettings, groups: Mapping[str, Mapping[str, Path]]
    ) -> list[Task]:
        """The tasks of the files of a folder; where one alone has what is asked for, of that one."""
        for entry in _entries(folder):
            if entry.is_dir() and file_format(entry) is not None:
                should = "What is called like a task file should be a file."
                bad_file(entry, should, "a folder", "Rename the folder, or take it away.")
        if not groups and (by_label := files_by_label(task_files(_entries(folder)))):
            return self._make(self._texts_by_label(folder, by_label), own)
        if not groups:
            fitting = self._fitting(folder, own)
            if len(fitting) == 1:
                return self._make(
                    replace(self._whole(fitting[0], _name(folder)), is_only=True), own
                )
            groups = {_stem(path): {"": path} for path in fitting}
            if len(groups) < len(fitting):
                should, names = "Files of a folder should have different names.", "two of one name"
                bad_file(folder, should, names, "Rename one of them, or take it away.")
            shown = some_of([path.name for path in fitting])
            self.notes.add(f"the folder has no splits, so each of its files is a task: {shown}")
        else:
            used = {path for group in groups.values() for path in group.values()}
            if others := [f.name for f in task_files(_entries(folder)) if f not in used]:
                self.notes.add(f"files that name no split were left alone: {some_of(others)}")
        tasks: list[Task] = []
        for name, files in groups.items():
            if self._is_asked_for(name, list(groups)):
                parts = {split: self.reader.read(path) for split, path in files.items()}
                tasks += self._make(Origin(name=name, parts=parts, whole="" in parts), own)
        return tasks

    def _texts_by_label(self, folder: Path, files: Mapping[str, Path]) -> Origin:
        """Texts of files that are called after their label."""
        shown = some_of([path.name for path in files.values()])
        self.notes.add(f"each line of {shown} was taken for a text, and the name for its label")
        lines = {
            label: self.reader.read(path).table.column("line") for label, path in files.items()
        }
        texts = pa.chunked_array([chunk for each in lines.values() for chunk in each.chunks])
        labels = [label for label, each in lines.items() for _ in range(len(each))]
        rows = Rows(pa.table({"text": texts, "label": labels}), folder, "json")
        return Origin(name=_name(folder), parts={"": rows}, whole=True, is_only=True)

    def _make(self, origin: Origin, settings: TaskSettings) -> list[Task]:
        columns = settings.label or (None,)
        if len(columns) > 1 and settings.labels is not None:
            raise OptionError(
                f"`labels` should be given for one label column. Found {len(columns)}. "
                "Use a settings file with one [[task]] for each."
            )
        wanted = [Wanted(label=column, settings=settings) for column in columns]
        return make_tasks(origin, wanted, self.notes, strict=self.strict)

    def _hub(self, source: str) -> Origin:
        name, _, config = source.removeprefix(_HUB).partition(":")
        parts = hub_parts(name, config or None, self.notes)
        title = name.rpartition("/")[2] + (f"/{config}" if config else "")
        return Origin(name=title, parts=parts, is_only=True)

    def _whole(self, path: Path, name: str | None = None) -> Origin:
        rows = self.reader.read(path)
        return Origin(name=name or _stem(path), parts={"": rows}, whole=True, is_only=name is None)

    def _split_folder(self, folder: Path) -> Origin | None:
        if is_saved(folder):
            return saved_origin(folder, _name(folder), self.notes, self.reader.byte_limit)
        files = split_files(folder, _entries(folder))
        if not files:
            return None
        parts = {split: self.reader.read(path) for split, path in files.items()}
        return Origin(name=_name(folder), parts=parts)

    def _is_asked_for(self, name: str, known: list[str]) -> bool:
        """A task is called after its folder or file, so the others need not be read."""
        if self.only is None:
            return True
        firsts = [asked.partition("/")[0] for asked in self.only]
        for first in firsts:
            if first not in known:
                raise InputError(
                    f"`{first}` should be one of the tasks. Found {some_of(known)}. "
                    "Check the spelling."
                )
        return name in firsts

    def _only_table(self, folder: Path) -> Origin:
        (table,) = task_files(_entries(folder))
        return self._whole(table, _name(folder))

    def _table_of(self, folder: Path, settings: TaskSettings) -> Origin:
        """The one table of a folder that has the columns asked for."""
        fitting = self._fitting(folder, settings)
        if len(fitting) != 1:
            bad_file(
                folder,
                "One table of a folder should have the columns asked for.",
                f"{len(fitting)} such tables among {some_of([path.name for path in fitting])}",
                "Name the `file` in the settings file.",
            )
        return replace(self._whole(fitting[0], _name(folder)), is_only=True)

    def _fitting(self, folder: Path, settings: TaskSettings) -> list[Path]:
        """The files of a folder that have the columns asked for, at least one; others are noted."""
        entries = _entries(folder)
        files = task_files(entries)
        if not files:
            for path in entries:
                if path.is_file() and how_to_convert(path) is not None:
                    refuse_ending(path)
            endings = ", ".join(f".{ending}" for ending in FORMATS)
            bad_file(
                folder,
                "A task folder should have train, dev and test files, sub-folders with such files, "
                f"or tables; they end in {endings}, and .gz may follow.",
                "none of these",
                "Check the path.",
            )
        known = file_format(files[0])
        if len(files) == 1 or known is None or known[1] not in TABLES:
            return files
        names = {path: self._names_of(path) for path in files}
        fitting = [path for path in files if _fits(settings, names[path])]
        if not fitting and len({frozenset(map(folded_name, each)) for each in names.values()}) == 1:
            return files  # which of their columns is meant is found out, or asked for, later
        if not fitting:
            bad_file(
                folder,
                "The tables of a folder should have the columns asked for.",
                f"none that has {_listed(_asked_columns(settings))} among "
                f"{some_of([path.name for path in files])}",
                "Give the file itself, name the columns, or name the `file` in a settings file.",
            )
        if len(fitting) > 1 and len(fitting) < len(files):
            others = some_of([path.name for path in files if path not in fitting])
            self.notes.add(f"files without the columns asked for were left alone: {others}")
        return fitting

    def _names_of(self, path: Path) -> tuple[str, ...]:
        try:
            return column_names(path, byte_limit=self.reader.byte_limit)
        except TaskFileError:
            known = file_format(path)
            if known is not None and known[1] == "json":  # settings, or what a program kept
                return ()
            raise

    def _load_entries(self, source: Any, path: Path) -> list[Task]:
        """The tasks of a settings file, in its order."""
        if self.given.label is not None:
            raise OptionError(
                "Label columns should be named by keyword or in a settings file. Found both. "
                "Leave `label` out."
            )
        entries = read_task_entries(path)
        if self.only is not None:
            entries = tuple(
                entry
                for entry in entries
                if any(f"{name}/".startswith(f"{entry.name}/") for name in self.only)
            )
        places = [self._place(source, entry, path) for entry in entries]
        targets: dict[_Place, set[str]] = {}  # of every task of a place: nobody's features
        jobs: dict[tuple[_Place, object], list[tuple[int, Wanted]]] = {}
        for number, (entry, place) in enumerate(zip(entries, places, strict=True)):
            settings = self.given.over(entry.settings)
            if place.folder is not None:
                settings = settings.over(read_task_settings(place.folder))
            columns = settings.label or (None,)
            targets.setdefault(place, set()).update(settings.label or ())
            # Tasks that differ in their target alone share their inputs.
            alike: object = replace(
                settings, label=None, metric=None, kind=None, extend_labels=None
            )
            if not settings.label or settings.labels or settings.kind == "sequences":
                alike = number
            for column in columns:
                name = entry.name if len(columns) == 1 else f"{entry.name}/{column}"
                want = Wanted(label=column, settings=settings, name=name)
                jobs.setdefault((place, alike), []).append((number, want))
        made: list[list[Task]] = [[] for _ in entries]
        for (place, _), members in jobs.items():
            wanted = [want for _, want in members]
            origin = self._origin(place, wanted[0].settings, source)
            tasks = make_tasks(origin, wanted, self.notes, targets[place], strict=self.strict)
            for position, (number, _) in enumerate(members):
                made[number] += tasks[position :: len(members)]
        return [task for tasks in made for task in tasks]

    def _place(self, source: Any, entry: TaskEntry, settings: Path) -> _Place:
        root = Path(source) if isinstance(source, str | Path) else None
        if root is not None and root.is_dir():
            folder = path_inside(root, root, entry.folder, settings)
            file = None if entry.file is None else path_inside(root, folder, entry.file, settings)
            if not folder.is_dir():
                should, remedy = "`folder` should be a folder of the source.", "Check the path."
                bad_file(
                    settings, should, f"{quoted(entry.folder)} of task {quoted(entry.name)}", remedy
                )
            return _Place(folder, file)
        if entry.folder != "." or entry.file is not None:
            should = "`folder` and `file` should be given where the source is a folder."
            given = type(source).__name__ if root is None else str(source)
            found = f"them for the source {quoted(given)}"
            bad_file(settings, should, found, "Leave them out, or give the folder as the source.")
        if isinstance(source, str) and source.startswith(_HUB):
            return _Place(None, None, hub=source)
        return _Place(None, root)

    def _origin(self, place: _Place, settings: TaskSettings, source: Any) -> Origin:
        if place.hub is not None:
            return self._hub(place.hub)
        if place.file is not None:
            return self._whole(place.file)
        if place.folder is None:
            origins = origins_in_memory(source, self.notes)
            if len(origins) > 1:
                raise OptionError(
                    f"A settings file should go with one frame. Found {len(origins)}. Load the tasks "
                    "of each frame alone, or leave the settings out."
                )
            return origins[0]
        return self._split_folder(place.folder) or self._table_of(place.folder, settings)


@dataclass(frozen=True)
class _Place:
    """Where the files of a [[task]] lie; nowhere, if the rows were given."""

    folder: Path | None
    file: Path | None
    hub: str | None = None


def some_of(names: Sequence[str]) -> str:
    """The first twenty names, and how many more there are."""
    return ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")


def _entries(folder: Path) -> list[Path]:
    """What a folder holds, by name, without hidden things."""
    try:
        return sorted(path for path in folder.iterdir() if not is_hidden(path))
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        bad_file(folder, "A task folder should be readable.", reason, "Check its rights.")


def _name(folder: Path) -> str:
    """The folder's own name, also where the path is `.`"""
    return folder.name or folder.resolve().name or "tasks"


def _asked_columns(settings: TaskSettings) -> set[str]:
    """Columns that a table must have to be the one that is meant."""
    single = (settings.task_column, settings.split_column, settings.text, settings.text2)
    asked = {*single, settings.tokens, settings.sequence, settings.time, *(settings.values or ())}
    asked |= {settings.answer, *(settings.prompt or ()), *(settings.features or ())}
    unlabelled = (
        settings.kind in WITHOUT_TARGETS or settings.sequence or settings.time or settings.prompt
    )
    asked |= set(settings.label or (() if unlabelled else ("label",)))
    return {name for name in asked if name is not None}


def _fits(settings: TaskSettings, names: Sequence[str]) -> bool:
    """Whether a table has the columns asked for."""
    missing = {name for name in _asked_columns(settings) if match_column(names, name) is None}
    if settings.label is None and missing == {"label"}:
        return usual_label(names) is not None
    return not missing


def _listed(names: Collection[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


def _stem(path: Path) -> str:
    known = file_format(path)
    return known[0] if known else path.name
