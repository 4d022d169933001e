"""`python -m tests.simulation --seeds N`."""

import sys

from tests.simulation.command import main

sys.exit(main(sys.argv[1:]))
