"""What prediction is worth to an agent that decides call by call."""
