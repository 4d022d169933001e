"""Training from recorded sessions: what is read, judged, kept as a model and promoted."""
