"""The commands. Words become objects here, and the seed becomes a generator; nowhere deeper."""

from taskmix.cli._app import main

__all__ = ["main"]
