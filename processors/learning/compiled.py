"""Functions over arrays, compiled by numba (DESIGN §7).

What is compiled is a plain function of arrays and numbers: without the decorator it runs as it is, slowly,
which is how its twin in the tests may call it (`function.py_func`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., object])


def compiled(function: F) -> F:
    """Compile at the first call with these types; the machine code is kept beside the module."""
    return cast(F, numba.njit(cache=True)(function))


def compiled_reordered(function: F) -> F:
    """As `compiled`; sums may be added up in another order, several terms at once. Not a number stays so.

    What is divided by 0 is infinite, as in NumPy: a loop that may raise is not done several terms at once.
    It becomes part of whatever calls it. Left apart, a caller that was compiled just now could take another
    copy of it than one that was kept, with another order of terms, and so with other last bits.
    """
    fastmath = {"reassoc", "contract", "nsz"}
    return cast(F, numba.njit(cache=True, fastmath=fastmath, error_model="numpy", forceinline=True)(function))


def compiled_parallel(function: F) -> F:
    """As `compiled`, with `numba.prange` over threads, for loops whose turns write apart."""
    return cast(F, numba.njit(cache=True, parallel=True)(function))
