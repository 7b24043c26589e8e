"""What stays on disk: fits that can be gone on with, models, and the folder of a command.

`_record` makes a fit a run of a study; `_storage` writes a fitted model as one file; `_folder` is
where a command puts both; `_types` names the dataclasses that may come back out of a file.
"""

from taskmix.sequences._keeping._document import MixtureDocument
from taskmix.sequences._keeping._folder import MixtureFolder
from taskmix.sequences._keeping._record import FitStoppedError, RecordedFits
from taskmix.sequences._keeping._storage import load_mixture, save_mixture

__all__ = [
    "FitStoppedError",
    "MixtureDocument",
    "MixtureFolder",
    "RecordedFits",
    "load_mixture",
    "save_mixture",
]
