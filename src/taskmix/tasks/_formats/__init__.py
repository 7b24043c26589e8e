"""From the bytes of a file to Arrow tables.

One module a format. Those of text are on the checked streams of `_streams.py`, which gunzip, decode,
count and refuse what no honest file has. What a cell of text says as a number is here too
(`_values.py`), because JSON has to spell numbers back as they stood in the file.
"""
