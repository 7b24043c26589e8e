"""`export_plan`: from a plan to the files that another trainer reads.

Nothing is written over a file that is not ours, or that was edited since. A file that is read as Python
or YAML says in its first line who wrote it; where a trainer's format has no comments, the files lie in a
folder with a README that does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from taskmix.errors import InputError
from taskmix.files import (
    check_output,
    check_output_folder,
    list_folder,
    make_folder,
    read_plain,
    write_bytes,
)
from taskmix.plans._export._mixture import Mixture, mixtures_of
from taskmix.plans._export._sources import PLACEHOLDER, find_sources
from taskmix.plans._export._trainers import MARK, TARGETS, ExportTarget
from taskmix.plans._plan import Plan

README = "README.md"


@dataclass(frozen=True, kw_only=True)
class ExportedPlan:
    """What was written, and what to know of it."""

    files: tuple[Path, ...]
    notes: tuple[str, ...]
    usage: str


def export_plan(
    plan: Plan,
    target: str,  # a key of `TARGETS`
    out: Path | str,
    *,
    data: Path | None = None,  # a folder with the tasks' files
    paths: Mapping[str, str] | None = None,  # the file of a task, by its name
    steps: int | None = None,  # batches of all models; None: as many as the plan promises for
    batch_size: int | None = None,
    overwrite: bool = False,
) -> ExportedPlan:
    """Writes a plan as what another trainer reads: one file for each model, into a file or a folder.

    A file of an earlier export that differs, as people edit them, is replaced only with `overwrite`.

    >>> from taskmix.plans import Part, Shares
    >>> shares = Shares(probabilities=(0.25, 0.75))
    >>> part = Part(tasks=("a", "b"), scored=("a", "b"), share=1.0, division=shares)
    >>> exported = export_plan(Plan(parts=(part,)), "trl", "mixture.yaml", paths={"a": "a.csv"})
    >>> [line.strip() for line in exported.files[0].read_text().splitlines()[6:8]]
    ['data_files: a.csv', 'split: train']
    """
    known = TARGETS.get(target)
    if known is None:
        raise InputError(
            f"A plan should be exported to one of {', '.join(TARGETS)}. Found `{target}`."
        )
    for name, value in (("steps", steps), ("batch_size", batch_size)):
        if value is not None and value < 1:
            raise InputError(f"`{name}` should be a whole number above 0. Found {value}.")
    if plan.length is not None:
        steps = plan.length.batches if steps is None else steps
        batch_size = plan.length.batch_size if batch_size is None else batch_size
    sources = find_sources(plan.tasks, folder=data, paths=paths or {}, tokens=known.tokens)
    mixtures = list(
        mixtures_of(
            plan, sources, steps=steps, batch_size=batch_size, says_stages=known.says_stages
        )
    )
    files: dict[str, str] = {}
    for mixture in mixtures:
        files |= known.write(mixture)
    notes = tuple(_notes(plan, known, mixtures))
    written = _put(files, Path(out), known, notes, overwrite=overwrite)
    return ExportedPlan(files=written, notes=notes, usage=_usage(known.usage, written))


def _usage(words: str, written: tuple[Path, ...]) -> str:
    """How the files are used; the first goes by its own name, since each model or stage has one."""
    named = re.search(r"\b(?:mixture|blend)(?P<ending>\.\w+)", words)
    if named is None:
        return words
    names = [path.name for path in written if path.suffix == named["ending"]]
    return words.replace(named[0], names[0]) if names and named[0] not in names else words


def _notes(plan: Plan, target: ExportTarget, mixtures: list[Mixture]) -> Iterator[str]:
    sources = list(dict.fromkeys(source for mixture in mixtures for source in mixture.sources))
    missing = [each.task for each in sources if each.path is None]
    if missing:
        some = ", ".join(missing[:5]) + (" ..." if len(missing) > 5 else "")
        yield (
            f"Nobody said where the rows of {some} are: replace what begins with {PLACEHOLDER}, or "
            "export again with --data FOLDER or --path TASK=FILE."
        )
    strange = next((each for each in sources if each.columns and each.form == "unknown"), None)
    if strange is not None and not target.any_rows:
        yield (
            f"{target.trainer} trains on conversations, prompts with answers, or texts. The rows of "
            f"{strange.task} have the columns {', '.join(strange.columns[:5])}: rewrite them first."
        )
    if len(plan.parts) > 1:
        yield f"The plan trains {len(plan.parts)} models: there is one file for each."
    if plan.merge is not None:
        yield "The plan merges its models at the end, which the trainer does not do."
    if any("stage" in mixture.label for mixture in mixtures):
        yield (
            f"The shares change while the plan runs. {target.trainer} keeps them, so there is one file "
            "for each stage: train them one after the other, each from where the last one ended."
        )
    if target.packs:
        yield (
            f"{target.trainer} packs rows into sequences of one length, so a share is one of tokens "
            "there, and one of rows in the plan."
        )


def _put(
    files: Mapping[str, str],
    out: Path,
    target: ExportTarget,
    notes: tuple[str, ...],
    *,
    overwrite: bool,
) -> tuple[Path, ...]:
    if out.suffix and not out.is_dir():
        if len(files) > 1 or not target.has_comments:
            raise InputError(
                f"`--out` should be a folder: {target.trainer} gets {len(files)} files and a README. "
                f"Found `{out}`. Leave the ending away."
            )
        (content,) = files.values()
        check_output(out, is_ours=lambda begin: begin.startswith(MARK.encode()), what="the export")
        _check_unchanged({out: content}, overwrite=overwrite)
        make_folder(out.parent)
        write_bytes(out, content.encode())
        return (out,)
    everything = {README: _readme(files, target, notes), **files}
    check_output_folder(out, is_ours=lambda path: _is_ours(path, everything), what="the export")
    _check_unchanged({out / name: files[name] for name in files}, overwrite=overwrite)
    for name, content in everything.items():
        make_folder((out / name).parent)
        write_bytes(out / name, content.encode())
    return tuple(out / name for name in everything)


def _check_unchanged(contents: Mapping[Path, str], *, overwrite: bool) -> None:
    for path, content in contents.items():
        if path.exists() and not overwrite and read_plain(path) != content.encode():
            raise InputError(
                "An export should be written to new files, or over equal ones. Found that "
                f"`{path}` was edited, or is of another plan. Choose another `out`, or replace it with "
                "`overwrite`.",
                arguments=("out", "overwrite"),
            )


def _is_ours(folder: Path, files: Mapping[str, str]) -> bool:
    """Whether it is an export of before that has no other files than the new one."""
    try:
        mine = read_plain(folder / README).startswith(MARK.encode())
    except OSError:
        return False
    return mine and set(_names(folder)) <= set(files)


def _names(folder: Path, inside: str = "") -> Iterator[str]:
    for name in list_folder(folder):
        if (folder / name).is_dir() and not (folder / name).is_symlink():
            yield from _names(folder / name, f"{inside}{name}/")
        else:
            yield inside + name


def _readme(files: Mapping[str, str], target: ExportTarget, notes: tuple[str, ...]) -> str:
    blocks = [
        f"{MARK} for {target.trainer}",
        "\n".join(f"- `{name}`" for name in files),
        f"Use: {target.usage}",
        *notes,
        f"The format: {target.documentation}",
    ]
    return "\n\n".join(blocks) + "\n"
