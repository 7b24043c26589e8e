"""Where tables of mixtures come from."""

from taskmix.mixtures._reading._study import table_of_study

__all__ = ["table_of_study"]
