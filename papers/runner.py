"""What every experiment is run with: its options as words, where its runs are done, and what is printed.

An experiment is a dataclass of options and a function `run(options, desk)` that gives rows. A field that
is `Annotated` with a `Flag` can be typed, under its own name with dashes; `--quick` takes the values of
`QUICK` where nothing else is typed. A field `device` says that it trains, and so where can be typed too.
"""

from __future__ import annotations

import argparse
import inspect
import json
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from papers.rows import PaperRow
from taskmix.engine import (
    Auto,
    Executor,
    Fleet,
    Here,
    Observers,
    Progress,
    Ray,
    Run,
    Workers,
    choose_cluster_device,
    choose_device,
    cluster,
    own_study,
)
from taskmix.errors import OptionError, printable
from taskmix.extras import require
from taskmix.records import Study, to_plain
from taskmix.report import check_chart_path, write_chart

STOPPED = 130  # the exit code of who was interrupted


class Flag(NamedTuple):
    """How a field of options is typed."""

    help: str = ""
    name: str | None = None  # --name; its own
    is_argument: bool = False  # typed without a name
    parse: Callable[[str], Any] | None = None


Data = Flag("The folder of the data set.", is_argument=True)
Device = Annotated[str, Flag("auto, cpu, cuda, cuda:1, ...")]
Precision = Annotated[Literal["float32", "bfloat16"], Flag()]
Vectors = Annotated[Path | None, Flag("Word vectors: GloVe or fastText text, or .npz.")]
Cache = Annotated[Path | None, Flag("Where vectors of texts are kept.")]
Plot = Annotated[Path | None, Flag("Draw the paper's figure into this .svg, .png or .html.")]


@dataclass(kw_only=True)
class Desk:
    """Where an experiment works, and who hears of it."""

    name: str
    quiet: bool = False
    out: Path | None = None
    engine: str = "auto"
    workers: int | None = None
    address: str | None = None
    store: str | None = None
    minutes: float = float("inf")
    begin: float = field(default_factory=time.monotonic)
    interrupted: bool = False

    @property
    def folder(self) -> Path:
        """Of the study."""
        return self.out or Path(f"{self.name}-study")

    def tell(self, sentence: str) -> None:
        """On standard error: JSON may be on the other."""
        if not self.quiet:
            print(printable(f"... {sentence}"), file=sys.stderr)

    def tell_texts(self, done: int, total: int) -> None:
        """Every tenth of the texts that an encoder reads, or a little more."""
        if done == total or done * 10 // total > (done - 1) * 10 // total:
            self.tell(f"{done:,} of {total:,} texts encoded")

    def draw(self, figure: Callable[[], dict[str, Any]], path: Path | None) -> None:
        """A chart, where one is wanted."""
        if path is not None:
            write_chart(figure(), path)
            self.tell(f"drew {path}")

    @contextmanager
    def working(self, *, lean: bool = False) -> Iterator[tuple[Study, Executor]]:
        """The study and an executor, which Ctrl-C and `--minutes` stop; of lean ones scores alone."""
        study = own_study(self.folder, lean=lean)
        with ExitStack() as stack:
            workers = stack.enter_context(Workers(self.workers))
            before = {each: signal.signal(each, self._stop) for each in _SIGNALS}
            stack.callback(lambda: [signal.signal(each, old) for each, old in before.items()])
            observers = Observers(progress=self._watch, stop=self._is_over)
            if self.engine == "ray":
                stack.enter_context(cluster(self.address, workers=self.workers, store=self.store))
                yield study, Ray(workers=self.workers, observers=observers)
            else:
                kind = {"auto": Auto, "here": Here, "fleet": Fleet}[self.engine]
                yield study, kind(workers=workers, observers=observers)

    def _stop(self, *_: object) -> None:
        if self.interrupted:
            raise KeyboardInterrupt
        self.interrupted = True

    def _is_over(self) -> bool:
        return self.interrupted or time.monotonic() - self.begin > 60 * self.minutes

    @contextmanager
    def _watch(self, runs: Sequence[Run]) -> Iterator[Callable[[Progress], None]]:
        done: set[int] = set()

        def hear(progress: Progress) -> None:
            if progress.done and progress.run not in done:
                done.add(progress.run)
                if len(done) * 10 // len(runs) > (len(done) - 1) * 10 // len(runs):
                    self.tell(f"{len(done)} of {len(runs)} runs")

        yield hear


_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def run_experiment(name: str, run: Callable[[Any, Desk], list[PaperRow]], words: list[str]) -> None:
    """Reads the words, runs the experiment and prints its rows."""
    options = get_type_hints(run)["options"]
    typed = vars(make_parser(name, run).parse_args(words))
    as_json, quick = typed.pop("json"), typed.pop("quick")
    at = {each.name: typed.pop(each.name) for each in fields(Desk) if each.name in typed}
    desk = Desk(name=name, quiet=as_json, **at)
    if desk.engine != "ray" and (desk.address is not None or desk.store is not None):
        raise OptionError("`--address` and `--store` should go with --engine ray. Leave them out.")
    if "device" in typed:
        choose = choose_device
        if desk.engine == "ray":
            require("ray", purpose="`--engine ray`")
            choose = choose_cluster_device
        typed["device"] = choose(typed["device"])
    if typed.get("plot") is not None:
        check_chart_path(typed["plot"])
    if "encoder" in typed:
        _check_encoder(typed["encoder"])
    small = getattr(options, "QUICK", {}) if quick else {}
    try:
        rows = run(options(**{**small, **typed}), desk)
    finally:
        if desk.interrupted:
            print("Stopped. Run the same command again to go on.", file=sys.stderr)
            sys.exit(STOPPED)
    print_rows(name, rows, time.monotonic() - desk.begin, words if as_json else None)


def _check_encoder(word: str) -> None:
    require("transformers", "tokenizers", purpose=f"The Hugging Face encoder `{word}`")
    if (Path(word).is_absolute() or word.startswith(".")) and not Path(word).exists():
        raise OptionError(
            "`--encoder` should be a folder with a Hugging Face model, or a name on the hub. Found "
            f"nothing in {word}. Check the path."
        )


def print_rows(
    name: str, rows: Sequence[PaperRow], seconds: float, words: list[str] | None
) -> None:
    """The paper's figures beside ours, as a table, or as one object where `words` asked for it."""
    if words is not None:
        command = " ".join(["python -m papers", name, *words])
        found = {"experiment": name, "command": command, "seconds": round(seconds, 1)}
        plain = to_plain({**found, "rows": [row.as_json() for row in rows]})
        print(json.dumps(plain, indent=2, ensure_ascii=False))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1))
    table.add_column("quantity", overflow="fold")
    for title in ("paper", "ours", "interval", "n"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        is_known = row.low is not None and row.high is not None
        interval = f"{row.low:.3g} to {row.high:.3g}" if is_known else "-"
        table.add_row(
            printable(row.quantity), _shown(row.paper), _shown(row.ours), interval, str(row.n)
        )
    Console(markup=False, emoji=False).print(table)
    for row in rows:
        if row.formula is not None:
            print(printable(f"{row.quantity}: f1 = {row.formula}"))
    print(f"{seconds:.0f} s.")


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def make_parser(name: str, run: Callable[[Any, Desk], Any]) -> argparse.ArgumentParser:
    """What can be typed behind an experiment's name."""
    options = get_type_hints(run)["options"]
    parser = argparse.ArgumentParser(
        prog=f"python -m papers {name}",
        description=inspect.getdoc(run),
        argument_default=argparse.SUPPRESS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    hints = get_type_hints(options, include_extras=True)
    defaults = {each.name: each.default for each in fields(options)}
    for each, hint in hints.items():
        flag = next((known for known in get_args(hint)[1:] if isinstance(known, Flag)), None)
        if flag is not None and each in defaults:
            _add(parser, each, get_args(hint)[0], flag, defaults[each])
    if "device" in hints:
        parser.set_defaults(device="auto")
        parser.add_argument("--engine", choices=("auto", "here", "fleet", "ray"))
        parser.add_argument("--workers", type=int, help="Processes at once [one a core].")
        parser.add_argument("--address", help="The cluster of --engine ray: auto, or HOST:PORT.")
        parser.add_argument("--store", help="Copy finished runs of --engine ray to this path too.")
        parser.add_argument("--out", type=Path, help=f"The study [{name}-study].")
        parser.add_argument("--minutes", type=float, help="Stop after so many; go on later.")
        parser.set_defaults(engine=getattr(options, "ENGINE", "auto"))
    parser.add_argument("--quick", action="store_true", default=False, help="A small version.")
    parser.add_argument("--json", action="store_true", default=False, help="Print rows as JSON.")
    return parser


def _add(parser: Any, name: str, hint: Any, flag: Flag, default: Any) -> None:
    kind = _without_none(hint)
    how: dict[str, Any] = {"help": flag.help}
    if get_origin(kind) is Literal:
        how["choices"] = get_args(kind)
    elif kind is bool:
        how["action"] = argparse.BooleanOptionalAction
    elif flag.parse is not None or get_origin(kind) is tuple:
        how["type"] = flag.parse or _several(get_args(kind)[0])
    else:
        how["type"] = kind
    if flag.is_argument:
        parser.add_argument(name, **how, **({} if default is MISSING else _OPTIONAL))
    else:
        words = f"--{flag.name or name.replace('_', '-')}"
        parser.add_argument(words, dest=name, required=default is MISSING, **how)


_OPTIONAL: dict[str, Any] = {"nargs": "?", "default": None}


def _without_none(hint: Any) -> Any:
    if get_origin(hint) in (Union, UnionType):
        return next(each for each in get_args(hint) if each is not type(None))
    return hint


def _several(kind: type) -> Callable[[str], tuple[Any, ...]]:
    """Words with commas between them."""

    def parse(text: str) -> tuple[Any, ...]:
        words = [word.strip() for word in text.split(",")]
        if not all(words) or len(set(words)) != len(words):
            what = "names" if kind is str else "numbers"
            raise argparse.ArgumentTypeError(
                f"should be different {what} with commas. Found {text!r}."
            )
        try:
            return tuple(kind(word) for word in words)
        except ValueError:
            raise argparse.ArgumentTypeError(
                f"should be numbers with commas. Found {text!r}."
            ) from None

    return parse
