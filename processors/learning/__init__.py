"""What is learned from traces, offline, and what of it may be used (Epic 11, DESIGN §7): pure."""
