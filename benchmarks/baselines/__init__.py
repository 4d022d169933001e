"""Programs that know nothing of PML: what its figures are divided by."""
