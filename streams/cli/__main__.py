"""`python -m pml.streams.cli`: the same as `pml`, for child processes of this very interpreter."""

from __future__ import annotations

from pml.streams.cli import main

if __name__ == "__main__":
    main()
