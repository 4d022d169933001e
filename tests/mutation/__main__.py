"""`python -m tests.mutation`: with a fixed order of sets, for fates that last."""

import sys

from tests.fixed_order import start_in_fixed_order
from tests.mutation.command import main

if __name__ == "__main__":
    start_in_fixed_order("tests.mutation")
    sys.exit(main(sys.argv[1:]))
