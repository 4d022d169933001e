"""Ratios of PML and a baseline, measured in one run on one machine: `python -m benchmarks`."""
