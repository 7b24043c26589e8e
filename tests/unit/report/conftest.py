"""Makes the synthetic study importable; the browser tests use it too."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
