"""What each task's loss counts."""

from taskmix.weighting._equal import Equal
from taskmix.weighting._fixed import FixedWeights
from taskmix.weighting._weighting import AnyLossWeighting, LossWeighting

__all__ = ["AnyLossWeighting", "Equal", "FixedWeights", "LossWeighting"]
