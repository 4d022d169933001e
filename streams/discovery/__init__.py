"""Models that turn texts into points: loading their weights reads files, so they live in the shell."""
