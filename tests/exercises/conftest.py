"""The exercises' tests import what they share by name, whatever the import mode is."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
