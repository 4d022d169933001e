"""Episodic memory: what happened before in a context like this one (the spike, §2)."""
