"""Starts a program again whenever it ends, as an operator's supervisor does: `respawn.py PROGRAM ARGS...`."""

from __future__ import annotations

import subprocess
import sys

while True:
    subprocess.run([sys.executable, *sys.argv[1:]], check=False)
