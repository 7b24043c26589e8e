"""Makes the readers and mutations importable, as the long run in benchmarks has them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "report"))  # synthetic studies
