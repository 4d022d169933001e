"""`python -m tests.simulation --seeds N`.

Python orders sets of texts differently in every process. So that a seed is the same everywhere, the
command starts itself once more with that order fixed.
"""

import os
import sys

from tests.simulation.command import main

ORDER = "PYTHONHASHSEED"

if __name__ == "__main__":
    if os.environ.get(ORDER) != "0":
        again = [sys.executable, "-m", "tests.simulation", *sys.argv[1:]]
        os.execve(sys.executable, again, {**os.environ, ORDER: "0"})
    sys.exit(main(sys.argv[1:]))
