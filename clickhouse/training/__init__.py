"""The training set: every run that has ended, as columns for whoever trains on them (DESIGN §7)."""
