"""The commands. Words become objects here, and the seed becomes a generator; nowhere deeper."""

from taskmix.cli._app import run_command

__all__ = ["run_command"]
