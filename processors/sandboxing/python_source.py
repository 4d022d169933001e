"""Python as the sandbox takes it: `result.field` reads a field of a tool's result, as in the analysis.

Results are dictionaries. What is read with a dot is read by a function of the sandbox, `FIELD`, that knows
them; the tree is written out again, and the lines of what is written are kept beside it.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import accumulate
from keyword import iskeyword

from pml.processors.capabilities.program import source_error
from pml.processors.sandboxing.prepared import GIVEN, Entry, Part, Prepared, entry_of
from pml.schemas.stepping import Linked

FIELD = "_pml_field"
"""The function of the sandbox that reads a field: of a dictionary by its key, of all else by its name."""
GATHER, BEGIN = "_pml_gather", "_pml_begin"
"""What stands for `asyncio.gather` and for what begins a task, in the sandbox."""
ARGUMENTS, TAKEN = "_pml_arguments", "_pml_taken"
"""What a capability is given, out of a call of it, and what its function takes of that."""
_CAPABILITY = "_pml_capability_"
_TOOLS = frozenset({"mcp", "capabilities"})
_FLAGS = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
_MODULE = {"gather": GATHER, "create_task": BEGIN, "ensure_future": BEGIN}


def prepared_python(source: str, given: Collection[str], linked: Sequence[Linked] = ()) -> Prepared:
    """The source for the sandbox; `given` are the names of what the caller gives.

    Args:
        linked: capabilities that become functions of the program, each before those that call it.

    Raises:
        SourceError: it is not Python, or nested too deeply.
        WorkflowInvalid: the caller does not give all that the program takes.
    """
    entry = entry_of(source, "python")
    functions = {name: f"{_CAPABILITY}{number}" for number, each in enumerate(linked) for name in each.names}
    try:
        tree = _Rewriting(functions).visit(_parsed(source))
        if entry is not None:
            tree.body.append(_beginning(entry, given))
        parts = _parts(source, linked)
        first = _after_imports(tree)
        tree.body[first:first] = [
            _function(each, functions, part.offset) for each, part in zip(linked, parts, strict=True)
        ]
        ast.fix_missing_locations(tree)
        code = ast.unparse(tree)
        return Prepared(code, lines=_lines(tree, _parsed(code)), parts=parts)
    except RecursionError:
        raise source_error("it is nested too deeply", 1, 1) from None
    except (SyntaxError, ValueError) as error:
        raise source_error(str(error), getattr(error, "lineno", None) or 1, 1) from None


def _parsed(source: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = compile(source, "<code>", "exec", _FLAGS)
    assert isinstance(tree, ast.Module)
    return tree


class _Rewriting(ast.NodeTransformer):
    """Fields by `FIELD`, tools in brackets by `getattr`, and what the interpreter has by another name."""

    def __init__(self, functions: Mapping[str, str]) -> None:
        self._functions = functions

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """A method is called as it is: only what it is called on may be a field."""
        function = self._functions.get(_capability(node.func) or "")
        if function is not None:
            self.generic_visit(node)
            arguments = ast.Call(ast.Name(ARGUMENTS, ast.Load()), node.args, node.keywords)
            return _call(function, ast.copy_location(arguments, node), at=node)
        if isinstance(node.func, ast.Attribute):
            renamed = _renamed(node.func)
            if renamed is not None:
                node.func = renamed
            else:
                node.func.value = self.visit(node.func.value)
        else:
            node.func = self.visit(node.func)
        node.args = [self.visit(each) for each in node.args]
        node.keywords = [self.visit(each) for each in node.keywords]
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """A field that is read; one that is written stays."""
        node.value = self.visit(node.value)
        if not isinstance(node.ctx, ast.Load):
            return node
        return _call(FIELD, node.value, ast.Constant(node.attr), at=node)

    def visit_MatchValue(self, node: ast.MatchValue) -> ast.AST:
        """A name in a pattern is no expression."""
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """Nor is what a variable is said to be."""
        node.target = self.visit(node.target)
        node.value = None if node.value is None else self.visit(node.value)
        return node

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        """The interpreter's errors are made of a text."""
        self.generic_visit(node)
        match node.exc:
            case ast.Call(func=ast.Name(), args=[given], keywords=[]) as made:
                made.args = [_call("str", given, at=given)]
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """`mcp["server"]["tool"]`: the sandbox has no brackets for what the host gives it."""
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load) and _of_tools(node.value):
            return _call("getattr", node.value, node.slice, at=node)
        return node


def _capability(function: ast.expr) -> str | None:
    """The name under which a capability is called."""
    match function:
        case ast.Attribute(value=ast.Name(id="capabilities"), attr=name):
            return name
        case ast.Subscript(value=ast.Name(id="capabilities"), slice=ast.Constant(value=str(name))):
            return name
    return None


def _parts(source: str, linked: Sequence[Linked]) -> tuple[Part, ...]:
    """Where the lines of each capability begin, one after the other behind the program's."""
    texts = [source, *(each.source for each in linked)]
    ends = accumulate(text.count("\n") + 1 for text in texts)
    return tuple(Part(each.names[0], offset) for each, offset in zip(linked, ends, strict=False))


def _after_imports(tree: ast.Module) -> int:
    """What is imported from the future stands before everything else."""
    places = [place for place, node in enumerate(tree.body, 1) if _is_of_future(node)]
    return max(places, default=0)


def _is_of_future(node: ast.AST) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _function(linked: Linked, functions: Mapping[str, str], offset: int) -> ast.stmt:
    """`async def capability(args): if "path" in args: path = args["path"]; …`, and what the program does."""
    entry = entry_of(linked.source, "python")
    body = _Rewriting(functions).visit(_parsed(linked.source)).body
    names = [item.name for item in linked.parameters if item.name.isidentifier() and item.name != GIVEN]
    taken = [_taken_if_given(name) for name in names if not iskeyword(name)]
    call = [] if entry is None else [_entered(entry)]
    given = ast.arguments(posonlyargs=[], args=[ast.arg(GIVEN)], kwonlyargs=[], kw_defaults=[], defaults=[])
    function = ast.AsyncFunctionDef(
        name=functions[linked.names[0]],
        args=given,
        body=[*taken, *(node for node in body if not _is_of_future(node)), *call, ast.Pass()],
        decorator_list=[],
        lineno=1,
        col_offset=0,
    )
    ast.fix_missing_locations(function)
    ast.increment_lineno(function, offset)
    return function


def _taken_if_given(name: str) -> ast.stmt:
    is_given = ast.Compare(ast.Constant(name), [ast.In()], [ast.Name(GIVEN, ast.Load())])
    return ast.If(is_given, [ast.Assign([ast.Name(name, ast.Store())], _taken(name))], [])


def _entered(entry: Entry) -> ast.stmt:
    """`return await main(**{…})`: of what it takes, that which is given when it is called."""
    everything = ast.Name(GIVEN, ast.Load())
    named = ast.List([ast.Constant(name) for name in entry.names if name != GIVEN], ast.Load())
    taken = ast.Call(ast.Name(TAKEN, ast.Load()), [everything, named], [])
    keywords = [ast.keyword(None, taken)]
    keywords += [ast.keyword(GIVEN, everything)] if GIVEN in entry.names else []
    call: ast.expr = ast.Call(ast.Name(entry.name, ast.Load()), [], keywords)
    return ast.Return(ast.Await(call) if entry.asynchronous else call)


def _renamed(function: ast.Attribute) -> ast.expr | None:
    match function:
        case ast.Attribute(value=ast.Name(id="asyncio"), attr=name) if name in _MODULE:
            return ast.copy_location(ast.Name(_MODULE[name], ast.Load()), function)
    return None


def _of_tools(node: ast.expr) -> bool:
    match node:
        case ast.Name(id=name):
            return name in _TOOLS
        case ast.Call(func=ast.Name(id="getattr"), args=[ast.Name(id=name), *_]):
            return name in _TOOLS
        case ast.Call(func=ast.Name(id=name), args=[value, *_]) if name == FIELD:
            return _of_tools(value)
    return False


def _call(name: str, *arguments: ast.expr, at: ast.expr) -> ast.Call:
    function = ast.Name(name, ast.Load())
    return ast.copy_location(ast.Call(func=function, args=list(arguments), keywords=[]), at)


def _beginning(entry: Entry, given: Collection[str]) -> ast.stmt:
    """`return await main(path=args["path"], …)`: what is not given has its default."""
    keywords = [ast.keyword(name, _taken(name)) for name, is_given in entry.given(given) if is_given]
    call: ast.expr = ast.Call(func=ast.Name(entry.name, ast.Load()), args=[], keywords=keywords)
    return ast.Return(ast.Await(call) if entry.asynchronous else call)


def _taken(name: str) -> ast.expr:
    everything = ast.Name(GIVEN, ast.Load())
    return everything if name == GIVEN else ast.Subscript(everything, ast.Constant(name), ast.Load())


def _lines(written: ast.AST, read: ast.AST) -> dict[int, int]:
    """Where each line of the new text stood: both trees have the same shape."""
    found: dict[int, int] = {}
    for old, new in zip(_placed(written), _placed(read), strict=False):
        found.setdefault(new.lineno, old.lineno)
    return found


def _placed(tree: ast.AST) -> Iterator[ast.stmt]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.stmt))
