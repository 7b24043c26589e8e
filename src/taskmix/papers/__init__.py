"""Published experiments, runnable, with the papers' figures beside ours."""

from taskmix.papers._glue import GlueOptions, reproduce_glue

__all__ = ["GlueOptions", "reproduce_glue"]
