"""Describes the public functions and data classes of a Python module, as JSON.

The source is read from standard input and parsed; it is not imported or run.
"""
import ast
import json
import sys

SIMPLE = {
    "str": "text", "int": "int", "float": "float", "bool": "boolean", "bytes": "file",
    "date": "date", "datetime": "datetime", "time": "time",
    "ChatMessage": "ChatMessage", "RAGDocument": "RAGDocument", "RAGChunk": "RAGChunk",
    "RAGSearchResult": "RAGSearchResult", "SearchResult": "SearchResult", "Embedding": "Embedding",
}


class Unsupported(Exception):
    pass


def parts(node):
    """Returns the alternatives of a union."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return parts(node.left) + parts(node.right)
    if isinstance(node, ast.Subscript) and name(node.value) == "Union":
        return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if isinstance(node, ast.Subscript) and name(node.value) == "Optional":
        return [node.slice, ast.Constant(None)]
    return [node]


def name(node):
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    return ""


def type_of(node, classes):
    """Returns the type of an annotation, with ? if it may be None."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        node = ast.parse(node.value, mode="eval").body
    if isinstance(node, ast.Subscript) and name(node.value) == "Annotated" and isinstance(node.slice, ast.Tuple):
        return type_of(node.slice.elts[0], classes)
    given = parts(node)
    rest = [p for p in given if not (isinstance(p, ast.Constant) and p.value is None)]
    if len(rest) != 1:
        raise Unsupported(ast.unparse(node))
    if len(rest) < len(given):
        return type_of(rest[0], classes).rstrip("?") + "?"
    node = rest[0]
    if isinstance(node, ast.Subscript) and name(node.value) in ("list", "List") and not isinstance(node.slice, ast.Tuple):
        return "list[" + type_of(node.slice, classes) + "]"
    found = name(node)
    if found in classes:
        return found
    if found in SIMPLE:
        return SIMPLE[found]
    raise Unsupported(ast.unparse(node))


def first_line(node):
    return (ast.get_docstring(node) or "").strip().split("\n")[0]


def is_record(node):
    bases = [name(b) for b in node.bases]
    decorators = [name(d.func if isinstance(d, ast.Call) else d) for d in node.decorator_list]
    return "BaseModel" in bases or "TypedDict" in bases or "dataclass" in decorators


def fields(node, classes, where):
    found = []
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name) and not item.target.id.startswith("_"):
            found.append({"name": item.target.id, "type": typed(item.annotation, classes, f"{where}.{item.target.id}", item.value is not None)})
    return found


def typed(annotation, classes, where, has_default):
    if annotation is None:
        raise Unsupported(f"{where} has no type annotation")
    try:
        found = type_of(annotation, classes)
    except Unsupported as e:
        raise Unsupported(f"{where}: the type {e} has no counterpart") from None
    return found.rstrip("?") + "?" if has_default else found


def function(node, classes):
    a = node.args
    positional = a.posonlyargs + a.args
    inputs = []
    for i, p in enumerate(positional):
        inputs.append((p, i >= len(positional) - len(a.defaults)))
    for p, default in zip(a.kwonlyargs, a.kw_defaults):
        inputs.append((p, default is not None))
    if a.vararg or a.kwarg:
        raise Unsupported(f"{node.name} takes any number of arguments")
    return {
        "name": node.name, "description": first_line(node),
        "inputs": [{"name": p.arg, "type": typed(p.annotation, classes, f"{node.name}, parameter {p.arg}", d)} for p, d in inputs],
        "result": typed(node.returns, classes, f"{node.name}, result", False),
    }


def each(nodes, describe, skipped):
    """Describes what can be described, and notes the rest with its line and the reason."""
    found = []
    for node in nodes:
        try:
            found.append(describe(node))
        except (Unsupported, SyntaxError) as e:
            skipped[node.name] = {"name": node.name, "line": node.lineno, "reason": str(e)}
    return found


def main():
    source = sys.stdin.buffer.read()
    try:
        module = ast.parse(source)
    except (SyntaxError, ValueError) as e:
        return {"error": f"the module cannot be parsed: {getattr(e, 'msg', e)}, line {getattr(e, 'lineno', '?')}"}
    records = [n for n in module.body if isinstance(n, ast.ClassDef) and is_record(n)]
    functions = [n for n in module.body if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)) and not n.name.startswith("_")]
    skipped = {}
    while True:  # without a class that cannot be described, others that name it cannot be either
        classes = {n.name for n in records} - skipped.keys()
        before = len(skipped)
        types = each([n for n in records if n.name not in skipped],
                     lambda n: {"name": n.name, "description": first_line(n), "fields": fields(n, classes, n.name)}, skipped)
        if len(skipped) == before:
            break
    found = each(functions, lambda n: function(n, classes), skipped)
    return {"functions": found, "types": types, "skipped": sorted(skipped.values(), key=lambda s: s["line"])}


json.dump(main(), sys.stdout)
