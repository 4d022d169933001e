"""`python -m tests.mutation`: started once more with a fixed order of sets, for fates that last."""

import os
import sys

from tests.mutation.command import main

ORDER = "PYTHONHASHSEED"

if __name__ == "__main__":
    if os.environ.get(ORDER) != "0":
        again = [sys.executable, "-m", "tests.mutation", *sys.argv[1:]]
        os.execve(sys.executable, again, {**os.environ, ORDER: "0"})
    sys.exit(main(sys.argv[1:]))
