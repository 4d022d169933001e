"""Who stands at this machine, as commands name them."""

from __future__ import annotations

import getpass
import os

from pml.schemas.principals import PERSON


def local_person() -> str:
    """The user that this process runs as."""
    try:
        return PERSON + getpass.getuser()
    except (KeyError, OSError):
        return f"{PERSON}{os.getuid()}"
