"""`python -m tests.simulation --seeds N`: with a fixed order of sets, so that a seed is the same for all."""

import sys

from tests.fixed_order import start_in_fixed_order
from tests.simulation.command import main

if __name__ == "__main__":
    start_in_fixed_order("tests.simulation")
    sys.exit(main(sys.argv[1:]))
