"""From a folder, a file or the name of a data set to tasks.

`_folder.py` has `load_tasks`; `_discover.py` finds which files make which tasks, `_settings.py` what
`task.toml` says of them, and `_build.py` makes them: every row gets its task and split (`_layout.py`,
`_splits.py`), its inputs (`_inputs.py`) and its target (`_targets.py`).
"""
