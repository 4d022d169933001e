"""What is learned from real traces, beside plain baselines."""
