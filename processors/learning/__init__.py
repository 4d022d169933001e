"""What is learned from traces, offline, and what may be used of it (Epic 11, DESIGN §7): pure functions of arrays."""
