"""Write the record of a runtime."""

import sys
from pathlib import Path

from tests.runtimes.measured import write

print(write(sys.argv[1], Path(sys.argv[2])), "cases")
