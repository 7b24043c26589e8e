"""The small, fast model on which transfer is studied."""

from __future__ import annotations

from dataclasses import replace

from taskmix.engine import Run
from taskmix.models import Architecture, Perceptron, TextConvolution, WindowBiLSTM

STEPS = 200  # of every task in a run of the probe
EVALUATIONS = 4


def probe_of(template: Run) -> Run:
    """A run of the same tasks with a narrower model; one that is not known stays as it is.

    What helps what depends on the model, so the probe is of the same family: fewer filters, shorter
    texts, fewer hidden units.
    """
    architecture = _narrower(template.architecture)
    return replace(
        template,
        label="probe",
        architecture=architecture,
        steps=STEPS,
        evaluate_every=STEPS // EVALUATIONS,
        checkpoint_every=STEPS,
        patience=None,
    )


def _narrower(architecture: Architecture) -> Architecture:
    match architecture:
        case Perceptron():
            return replace(architecture, hidden=tuple(min(w, 32) for w in architecture.hidden))
        case TextConvolution():
            return replace(
                architecture,
                filters=min(architecture.filters, 20),
                max_length=min(architecture.max_length, 80),
            )
        case WindowBiLSTM():
            return replace(architecture, hidden=min(architecture.hidden, 32))
        case _:
            return architecture
