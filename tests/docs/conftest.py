"""Makes the builder of the site, and the messy files, importable."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "site"))
sys.path.insert(0, str(Path(__file__).parent))
