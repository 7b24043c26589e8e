"""`taskmix train` under a launcher: every process trains every run, each on its part of a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskmix.cli._engines import Engine
from taskmix.errors import InputError, OptionError, TaskmixError

if TYPE_CHECKING:
    from taskmix.engine import Executed, Run
    from taskmix.records import Study


def carry_out_together(
    runs: list[Run], study: Study, *, engine: Engine, fresh: bool, quiet: bool
) -> list[Executed]:
    """The runs, one after the other; one that fails is told in its result, in every process."""
    import torch

    from taskmix.cli._display import one_run_bar
    from taskmix.cli._stopping import clean_stop
    from taskmix.engine import Executed, execute_together, joined_ranks

    if engine is not Engine.HERE:
        raise OptionError(
            "Several processes for one model should train it here. Found --engine "
            f"{engine.value}. Leave it out, or start one process."
        )
    torch.set_num_threads(1)
    results: list[Executed] = []
    with joined_ranks(runs[0].device) as ranks, clean_stop(patient=True) as should_stop:
        for run in runs:
            if ranks.any(should_stop()):
                results.append(Executed(outcome="stopped", summary=None))
                continue
            with one_run_bar(run, run.load().names, quiet=quiet) as listen:
                try:
                    results.append(
                        execute_together(
                            run,
                            study,
                            ranks,
                            listener=listen,
                            should_stop=should_stop,
                            fresh=fresh,
                        )
                    )
                except InputError:
                    raise
                except TaskmixError as error:
                    results.append(Executed(outcome="failed", summary=None, error=str(error)))
    return results
