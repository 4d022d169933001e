"""The names that a language itself has: what they compute may be written into an argument.

What reads a clock, a random number or the world is no value of the program: it gives another value each time.
"""

from __future__ import annotations

from pml.processors.capabilities.program import Language

_PURE: dict[Language, frozenset[str]] = {
    "python": frozenset(
        [
            "abs",
            "all",
            "any",
            "ascii",
            "bin",
            "bool",
            "chr",
            "dict",
            "divmod",
            "enumerate",
            "filter",
            "float",
            "format",
            "frozenset",
            "hex",
            "int",
            "isinstance",
            "len",
            "list",
            "map",
            "max",
            "min",
            "next",
            "iter",
            "oct",
            "ord",
            "pow",
            "range",
            "repr",
            "reversed",
            "round",
            "set",
            "sorted",
            "slice",
            "str",
            "sum",
            "tuple",
            "type",
            "zip",
            "json",
            "math",
            "re",
            "True",
            "False",
            "None",
            "Exception",
            "ValueError",
            "KeyError",
            "TypeError",
        ]
    ),
    "typescript": frozenset(
        [
            "Array",
            "BigInt",
            "Boolean",
            "Infinity",
            "JSON",
            "Map",
            "Math",
            "NaN",
            "Number",
            "Object",
            "RegExp",
            "Set",
            "String",
            "Error",
            "TypeError",
            "decodeURI",
            "decodeURIComponent",
            "encodeURI",
            "encodeURIComponent",
            "isFinite",
            "isNaN",
            "parseFloat",
            "parseInt",
            "structuredClone",
            "undefined",
        ]
    ),
}
_IMPURE: dict[Language, frozenset[str]] = {
    "python": frozenset(
        [
            "__import__",
            "breakpoint",
            "compile",
            "delattr",
            "eval",
            "exec",
            "exit",
            "getattr",
            "globals",
            "hash",
            "help",
            "id",
            "input",
            "locals",
            "open",
            "quit",
            "setattr",
            "vars",
            "asyncio",
            "datetime",
            "os",
            "pathlib",
            "random",
            "requests",
            "secrets",
            "subprocess",
            "sys",
            "threading",
            "time",
            "uuid",
            "urllib",
        ]
    ),
    "typescript": frozenset(
        [
            "Bun",
            "Date",
            "Deno",
            "Function",
            "Promise",
            "Proxy",
            "Reflect",
            "WebSocket",
            "XMLHttpRequest",
            "crypto",
            "document",
            "eval",
            "fetch",
            "global",
            "globalThis",
            "import",
            "localStorage",
            "navigator",
            "performance",
            "process",
            "queueMicrotask",
            "require",
            "setInterval",
            "setTimeout",
            "window",
        ]
    ),
}
_IMPURE_FIELDS = frozenset(
    ["Math.random", "Object.defineProperty", "Object.defineProperties", "Object.setPrototypeOf"]
)
_TAKING = frozenset(["next", "Object.assign"])
_ITERATORS = frozenset(["enumerate", "filter", "iter", "map", "reversed", "zip"])
_SILENT = frozenset(
    {"print", "console.log", "console.error", "console.warn", "console.info", "console.debug"}
)
_CHANGING = frozenset(
    [
        "append",
        "extend",
        "insert",
        "pop",
        "remove",
        "clear",
        "sort",
        "reverse",
        "update",
        "setdefault",
        "popitem",
        "add",
        "discard",
        "appendleft",
        "popleft",
        "extendleft",
        "rotate",
        "difference_update",
        "intersection_update",
        "symmetric_difference_update",
        "push",
        "shift",
        "unshift",
        "splice",
        "fill",
        "copyWithin",
        "set",
        "delete",
    ]
)


def is_pure(name: str, language: Language) -> bool:
    """Whether a name of the language only computes: `len`, `JSON.parse`, and not `Math.random`."""
    first, *fields = name.split(".")
    changes = any(each == "prototype" or changes_its_receiver(each) for each in fields)
    return first in _PURE[language] and name not in _IMPURE_FIELDS and not changes


def is_impure(name: str, language: Language) -> bool:
    """Whether a name of the language reads or changes more than its arguments."""
    return name.split(".", maxsplit=1)[0] in _IMPURE[language] or name in _IMPURE_FIELDS


def is_silent(name: str) -> bool:
    """Whether a function only says something to whoever watches."""
    return name in _SILENT


def takes_from(name: str) -> bool:
    """Whether a function that else only computes changes what it is given first."""
    return name in _TAKING


def is_used_up(name: str, language: Language) -> bool:
    """Whether what a function gives can be gone through only once."""
    return language == "python" and name in _ITERATORS


def is_random(source: str, name: str) -> bool:
    """Whether what is written reads a random number by a name that also computes."""
    return name == "Math" and "random" in source


def is_known(name: str, language: Language) -> bool:
    """Whether a variable that nobody assigned is a name of the language."""
    return name in _PURE[language] or name in _IMPURE[language] or name in {"print", "console"}


def changes_its_receiver(method: str) -> bool:
    """Whether a method of this name changes the list or object that it is called on."""
    return method in _CHANGING
