"""Runs functions for qtype: frames of JSON come in on standard input, one
response for each goes out on standard output. All output of a function goes to
standard error, so that it is never taken for a response.

A frame is its length in four bytes, the most significant first, and then that many bytes
of JSON. A value that JSON has is written as such; anything else is an object with one
key: d date, dt datetime, t time, b bytes in base64, f a number that is not
finite, m an object, r a record as [type, fields].
"""

import base64
import collections
import collections.abc
import dataclasses
import datetime
import decimal
import difflib
import enum
import importlib
import inspect
import json
import math
import os
import pathlib
import pkgutil
import queue
import struct
import sys
import threading
import typing
import uuid

LIMIT = 32 << 20  # bytes of a frame, as the other side has it
DEPTH = 200  # levels of lists and objects in a value


class Record(dict):
    """A value with named fields: value.name, value["name"], and all that a dict does."""

    __slots__ = ()
    _type = ""

    def __getattribute__(self, name):
        if not name.startswith("_") and dict.__contains__(self, name):
            return dict.__getitem__(self, name)
        return super().__getattribute__(name)

    def __getattr__(self, name):
        near = difflib.get_close_matches(name, [str(k) for k in dict.keys(self)], 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise AttributeError(f"{self._type or 'the object'} has no field {name!r}{hint}")

    def __setattr__(self, name, value):
        self[name] = value

    def __repr__(self):
        fields = ", ".join(f"{k}={v!r}" for k, v in dict.items(self))
        return f"{self._type}({fields})" if self._type else dict.__repr__(self)

    def model_dump(self):
        """The record and what lies in it as plain dicts and lists."""
        return plain(self)


def plain(value):
    if isinstance(value, dict):
        return {k: plain(v) for k, v in dict.items(value)}
    if isinstance(value, list):
        return [plain(v) for v in value]
    return value


RECORDS = {"": Record}


def record_type(name):
    if name not in RECORDS:
        RECORDS[name] = type(name, (Record,), {"__slots__": (), "_type": name})
    return RECORDS[name]


# What comes in.


def decode(value):
    if isinstance(value, list):
        return [decode(v) for v in value]
    if not isinstance(value, dict):
        return value
    ((tag, v),) = value.items()
    if tag == "m":
        return Record((k, decode(x)) for k, x in v.items())
    if tag == "r":
        return record_type(v[0])((k, decode(x)) for k, x in v[1].items())
    if tag == "d":
        return datetime.date.fromisoformat(v)
    if tag == "dt":
        return datetime.datetime.fromisoformat(v)
    if tag == "t":
        return datetime.time.fromisoformat(v)
    if tag == "b":
        return base64.b64decode(v)
    return float(v)


def fit(value, want):
    """The value as the function's own annotation wants it, where that is a special type."""
    origin, args = typing.get_origin(want), typing.get_args(want)
    if value is None or want is inspect.Parameter.empty or want is typing.Any:
        return value
    if args and type(None) in args:  # Optional[T]
        rest = [a for a in args if a is not type(None)]
        return fit(value, rest[0]) if len(rest) == 1 else value
    if isinstance(value, list):
        items = [fit(v, args[0]) for v in value] if args and origin in (list, set, frozenset, tuple, collections.abc.Sequence) else value
        kind = origin if origin in (set, frozenset, tuple) else want
        return kind(items) if kind in (set, frozenset, tuple) else items
    if not isinstance(want, type):
        return value
    if issubclass(want, decimal.Decimal) and isinstance(value, (int, float)) and not isinstance(value, bool):
        return want(repr(value))
    if issubclass(want, enum.Enum) and not isinstance(value, want):
        return want(value)
    if issubclass(want, (uuid.UUID, pathlib.PurePath)) and isinstance(value, str):
        return want(value)
    if not isinstance(value, Record):
        return value
    if hasattr(want, "model_validate"):  # pydantic
        return want.model_validate(plain(value))
    if dataclasses.is_dataclass(want) or (issubclass(want, tuple) and hasattr(want, "_fields")):
        hints = hints_of(want)
        return want(**{k: fit(v, hints.get(k, typing.Any)) for k, v in dict.items(value)})
    return value


def hints_of(of):
    try:
        return typing.get_type_hints(of)
    except Exception:  # a name that is only there for a type checker
        return getattr(of, "__annotations__", {})


# What goes out.


class Unfit(Exception):
    """A result that the language has no type for."""


def encode(value, where="the result", depth=0):
    if value is None or value is True or value is False:
        return value
    if isinstance(value, enum.Enum):
        return encode(value.value, where, depth)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, decimal.Decimal) and value.is_finite() and value.as_tuple().exponent >= 0:
        return int(value)
    if isinstance(value, (float, decimal.Decimal)):
        value = float(value)
        return value if math.isfinite(value) else {"f": repr(value)}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"b": base64.b64encode(bytes(value)).decode("ascii")}
    if isinstance(value, datetime.datetime):
        return {"dt": value.isoformat()}
    if isinstance(value, datetime.date):
        return {"d": value.isoformat()}
    if isinstance(value, datetime.time):
        return {"t": value.replace(tzinfo=None).isoformat()}
    if isinstance(value, (uuid.UUID, pathlib.PurePath)):
        return str(value)
    if depth >= DEPTH:
        raise Unfit(f"{where[:60]} is nested deeper than {DEPTH} levels, or holds itself")
    return compound(value, where, depth + 1)


def compound(value, where, depth):
    fields = fields_of(value)
    if fields is not None:
        return {"m": {name_of(k, where): encode(v, f"{where}.{k}", depth) for k, v in fields}}
    if isinstance(value, (set, frozenset)):
        try:
            value = sorted(value)  # the same every time
        except TypeError:
            value = list(value)
    if hasattr(value, "tolist") and not isinstance(value, (list, tuple)):  # numpy's scalars and arrays
        return encode(value.tolist(), where, depth)
    if isinstance(value, (list, tuple, range, collections.deque, collections.abc.Iterator, collections.abc.KeysView, collections.abc.ValuesView)):
        return [encode(v, f"{where}[{i}]", depth) for i, v in enumerate(value)]
    raise Unfit(f"{where} is a {type(value).__name__}, which is none of the language's types")


def fields_of(value):
    if isinstance(value, dict):
        return dict.items(value)
    if isinstance(value, type):
        return None
    if hasattr(value, "model_dump"):  # pydantic 2
        return type(value).model_dump(value).items()
    if dataclasses.is_dataclass(value):
        return [(f.name, getattr(value, f.name)) for f in dataclasses.fields(value)]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return zip(value._fields, value)
    if isinstance(value, collections.abc.Mapping):
        return value.items()
    return None


def name_of(key, where):
    if isinstance(key, enum.Enum):
        key = key.value
    if isinstance(key, (str, int, float)):
        return str(key)
    raise Unfit(f"a name in {where} is a {type(key).__name__}; names are text")


# Search and call of a function.


class Refused(Exception):
    """A call that cannot be made, for a reason of the given kind."""

    def __init__(self, kind, message, file="", line=0):
        super().__init__(message)
        self.kind, self.file, self.line = kind, file, line


def load(path):
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError as e:
        missing = e.name or ""
        if path != missing and not path.startswith(missing + "."):
            file, line = place(e)
            raise Refused("module", f"module {path} imports {missing}, which {sys.executable} does not have", file, line) from None
        near = difflib.get_close_matches(path, modules(path), 1)
        hint = f'; did you mean "{near[0]}"?' if near else ""
        raise Refused("module", f"there is no module {path} next to the document or in PYTHONPATH{hint}") from None


def modules(path):
    parent = path.rpartition(".")[0]
    folders = SETTING["path"]
    if parent:
        try:
            folders = importlib.import_module(parent).__path__
        except Exception:
            return []
    before = parent + "." if parent else ""
    found = [before + m.name for m in pkgutil.iter_modules(list(folders))]
    return found if parent else found + sorted(getattr(sys, "stdlib_module_names", ()))


def find(module, name):
    function = getattr(module, name, None)
    if callable(function):
        return function
    if function is not None:
        raise Refused("function", f"{name} of module {module.__name__} is a {type(function).__name__}, not a function")
    there = [n for n, v in vars(module).items() if callable(v) and not n.startswith("_")]
    near = difflib.get_close_matches(name, there, 1)
    hint = f'; did you mean "{near[0]}"?' if near else f"; it has {', '.join(there[:10]) or 'none'}"
    raise Refused("function", f"module {module.__name__} has no function {name}{hint}")


def prepare(function, given):
    """The arguments as the function wants them, or what does not fit its signature."""
    signature, hints = known(function)
    if signature is None:
        return given
    try:
        signature.bind(**given)
    except TypeError as e:
        code = getattr(inspect.unwrap(function), "__code__", None)
        raise Refused("arguments", f"{function.__name__}{signature}: {e}", getattr(code, "co_filename", ""), getattr(code, "co_firstlineno", 0)) from None
    return {k: fit(v, hints.get(k, typing.Any)) for k, v in given.items()} if hints else given


KNOWN = {}


def known(function):
    """A function's signature, none where it is one of C's, and its annotations."""
    key = id(function)  # not every callable can be the key of a dict
    if key not in KNOWN:
        try:
            KNOWN[key] = inspect.signature(function), hints_of(function), function
        except (TypeError, ValueError):
            KNOWN[key] = None, {}, function
    return KNOWN[key][:2]


async def gather(items):
    return [item async for item in items]


def finish(result):
    """What a coroutine or an asynchronous generator gives in the end."""
    if inspect.isasyncgen(result):
        result = gather(result)
    if inspect.isawaitable(result):
        result = loop().run_until_complete(waited(result))
    return result


async def waited(result):
    return await result


LOOP = []


def loop():
    if not LOOP:  # one for all calls, so that what a function keeps open stays usable
        import asyncio

        LOOP.append(asyncio.new_event_loop())
        asyncio.set_event_loop(LOOP[0])
    return LOOP[0]


def place(error):
    """The line of the user's code that raised the error."""
    if isinstance(error, SyntaxError) and error.filename:
        return error.filename, error.lineno or 0
    frames = []
    at = error.__traceback__
    while at is not None:
        frames.append((at.tb_frame.f_code.co_filename, at.tb_lineno))
        at = at.tb_next
    roots = tuple(os.path.join(os.path.realpath(p), "") for p in SETTING["path"])
    own = [f for f in frames if os.path.realpath(f[0]).startswith(roots) and "site-packages" not in f[0]]
    return own[-1] if own else ("", 0)


def answer(request):
    try:
        function = find(load(request["module"]), request["function"])
        if request.get("check"):
            return b'{"result": null}'
        given = prepare(function, {k: decode(v) for k, v in request["args"].items()})
        text = json.dumps({"result": encode(finish(function(**given)))}, allow_nan=False)
    except Refused as e:
        return failure(e.kind, "", str(e), (e.file, e.line))
    except Unfit as e:
        return failure("result", "", f"{request['function']} returned what cannot be taken: {e}")
    except MemoryError as e:
        return failure("memory", "MemoryError", str(e), place(e))
    except RecursionError as e:
        return failure("raised", "RecursionError", str(e), place(e))
    except SystemExit as e:
        return failure("raised", "SystemExit", f"the function called sys.exit({'' if e.code is None else repr(e.code)})", place(e))
    except BaseException as e:
        return failure("raised", type(e).__name__, message_of(e), place(e))
    if len(text) > LIMIT:
        return failure("result", "", f"{request['function']} returned more than {LIMIT >> 20} MiB")
    return text.encode("ascii")


def message_of(error):
    try:
        return str(error)[:2000]
    except Exception:
        return ""


def failure(kind, name, message, at=("", 0)):
    text = json.dumps({"error": {"kind": kind, "type": name, "message": message, "file": str(at[0] or ""), "line": int(at[1] or 0)}})
    return text.encode("ascii")


# The frames.


def read(stream):
    head = stream.read(4)
    if len(head) < 4:
        return None
    (size,) = struct.unpack(">I", head)
    body = stream.read(size)
    return json.loads(body) if len(body) == size else None


def write(stream, body):
    stream.write(struct.pack(">I", len(body)) + body)
    stream.flush()


SETTING = {"path": []}
BUSY = threading.Event()


def listen(stream, requests):
    """Hands requests on. When the other side is gone a function that still runs ends, too."""
    while True:
        request = read(stream)
        if request is None and BUSY.is_set():
            os._exit(1)
        requests.put(request)
        if request is None:
            return


def limit(megabytes):
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        size = megabytes << 20
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        if hard != resource.RLIM_INFINITY:
            size = min(size, hard)
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
    except (ImportError, ValueError, OSError):  # a system without such limits
        pass


def main():
    incoming, outgoing = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    SETTING.update(read(incoming) or sys.exit(0))
    sys.path[:] = SETTING["path"] + [p for p in sys.path if p]
    limit(SETTING["memory_mb"])
    write(outgoing, json.dumps({"python": "%d.%d.%d" % sys.version_info[:3]}).encode("ascii"))
    requests = queue.SimpleQueue()
    threading.Thread(target=listen, args=(incoming, requests), daemon=True).start()
    while True:
        request = requests.get()
        if request is None:
            return
        BUSY.set()
        text = answer(request)
        BUSY.clear()
        write(outgoing, text)


if __name__ == "__main__":
    main()
