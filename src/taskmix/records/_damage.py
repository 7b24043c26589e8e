"""The error of a record whose bytes are not those that were written."""

from taskmix.errors import RecordError


class DamageError(RecordError):
    """What lies on the disk is not what was written. Any other `RecordError` may pass by itself."""
