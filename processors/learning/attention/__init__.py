"""Attention over the hypergraph of tools and capabilities (SHGAT), and its scoring of candidates."""
