"""taskmix: one model, several tasks, one budget."""

__version__ = "0.1.0"
