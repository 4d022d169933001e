"""What speculation is worth: real workflows through the real stack, beside what nobody could beat."""
