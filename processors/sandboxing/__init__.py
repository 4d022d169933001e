"""What a sandbox is given of a program: its source as an interpreter takes it, and what it begins with."""
