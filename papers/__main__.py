"""`python -m papers bandit`: runs a published experiment, and prints the paper's figures beside ours."""

from __future__ import annotations

import json
import sys
import warnings
from importlib import import_module
from typing import Any

from papers.runner import run_experiment
from taskmix.errors import InputError, TaskmixError, TaskmixWarning, printable

EXPERIMENTS = {
    "bandit": "selection, Figure 1: policies on the multitask bandit; about a minute",
    "glue": "selection, Tables 1 to 3: eight GLUE tasks on one encoder; hours, or minutes on a GPU",
    "transfer-theory": "transfer, Theorems 1 and 2: linear sources, related or not; half a minute",
    "census": "transfer: which states help to predict income in which; half an hour on a core",
    "weak-supervision": "transfer: which labelling functions to learn from; minutes",
    "nlp25": "transfer: which text tasks to learn together; an hour on a core, less on a GPU",
    "sequences": "generators: shared sequence generators on known and real tasks; a quarter of an hour",
    "laws-balanced": "laws, Figure 3 and eqs. 3 to 6: 5,010 taggers; an hour on a GPU",
    "laws-unbalanced": "laws, eqs. 7 to 11: 7,775 taggers with fewer words for the real task; the same",
    "newsgroups": "BanditMTL, Figures 3 to 9: loss weightings on four topic tasks; a GPU for hours",
    "reviews": "BanditMTL, Figures 2 and 4 to 9: loss weightings on 14 review tasks; a GPU for hours",
}
MODULES = {"laws-balanced": "laws_table", "laws-unbalanced": "laws_table"}
MODULES |= {"newsgroups": "texts", "reviews": "texts"}


def find_experiment(name: str) -> Any:
    """Its `run`; whatever it needs is imported with it."""
    return import_module(f"papers.{MODULES.get(name, name.replace('-', '_'))}").run


def main(words: list[str]) -> int:
    """The exit code: 0 done, 1 a run failed, 2 the input was wrong, 130 stopped."""
    name, rest = words[0] if words else "--list", words[1:]
    if "--list" in words or name == "--json":
        if "--json" in words:
            found = [{"name": name, "what": what} for name, what in EXPERIMENTS.items()]
            print(json.dumps(found, indent=2))
        else:
            print("\n".join(f"{name:16} {what}" for name, what in EXPERIMENTS.items()))
        return 0
    if name in ("-h", "--help"):
        print(f"{__doc__}\n\nEvery experiment has its own --help. --list says which there are.")
        return 0
    try:
        if name not in EXPERIMENTS:
            known = ", ".join(EXPERIMENTS)
            raise InputError(f"An experiment should be one of {known}. Found {name!r}.")
        run_experiment(name, find_experiment(name), rest)
    except InputError as error:
        print(printable(f"papers: {error}"), file=sys.stderr)
        return 2
    except TaskmixError as error:
        print(printable(f"papers: {error}"), file=sys.stderr)
        return 1
    return 0


def _note(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
    words = f"Note: {message}" if issubclass(category, TaskmixWarning) else str(message)
    print(printable(words), file=sys.stderr)


if __name__ == "__main__":
    warnings.showwarning = _note
    sys.exit(main(sys.argv[1:]))
