"""Rows that are not in files: whatever Python holds that has columns, as if a file had been read.

One protocol covers most of it, the Arrow PyCapsule interface (polars, duckdb, pyarrow and others have
`__arrow_c_stream__`); pandas is gone over column by column, because a column of its objects may hold
anything. Neither is imported here: whoever gives a frame has done so.
"""
