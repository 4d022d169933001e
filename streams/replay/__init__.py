"""`pml replay`: every projection again from the log, compared with what the running roles hold."""
