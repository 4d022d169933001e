"""What tools give to each other; pure."""
