"""From outcomes to what a study taught (`_learn`): lessons, and the plan they advise (`_lessons`)."""

from taskmix.transfer._learning._learn import LearningOptions, learn
from taskmix.transfer._learning._lessons import TargetLesson, TransferLessons

__all__ = ["LearningOptions", "TargetLesson", "TransferLessons", "learn"]
