"""Validates and runs documents with QType (Python), for the comparison of this package.

It reads one request as JSON for each line of standard input, and writes one answer for
each to standard output. A request has a working directory, a document, and for a run a
flow and its inputs. Each runs in a separate process, so that none changes another.
"""

import argparse
import importlib
import io
import json
import logging
import os
import pkgutil
import signal
import sys
import traceback

from pydantic import BaseModel

import qtype.commands.validate as validate_command


def import_for_runs():
    """Imports what runs need once, before their processes begin: it takes most of their time."""
    for name in (
        "aioboto3", "boto3", "fsspec", "openai", "phoenix.otel", "pyarrow.parquet", "qtype.commands.run",
        "llama_index.embeddings.bedrock", "llama_index.llms.bedrock_converse", "llama_index.llms.openai", "llama_index.llms.vertex",
        "qtype.interpreter.conversions", "qtype.interpreter.converters", "qtype.interpreter.flow", "qtype.interpreter.telemetry",
    ):
        try:
            importlib.import_module(name)
        except ImportError:
            pass
    executors = importlib.import_module("qtype.interpreter.executors")
    for module in pkgutil.iter_modules(executors.__path__, "qtype.interpreter.executors."):
        importlib.import_module(module.name)


def plain(value):
    """Returns a value in the form of JSON."""
    if isinstance(value, BaseModel):
        return plain(value.model_dump(mode="json", exclude_none=True))
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items() if v is not None}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, bool) or value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, float):
        return None if value != value else value
    if hasattr(value, "item"):
        return plain(value.item())
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return str(value)


def answer(request):
    """Serves a request in this process."""
    signal.alarm(60)
    os.chdir(request["folder"])
    kept = {}
    log = io.StringIO()
    logging.basicConfig(stream=log, level=logging.ERROR, force=True)
    result = {"name": request["name"], "status": 0}
    try:
        if request.get("run"):
            import qtype.commands.run as run_command
            execute = run_command.execute_workflow

            async def keep(*args, **kwargs):
                kept["frame"] = await execute(*args, **kwargs)
                return kept["frame"]

            run_command.execute_workflow = keep
            run_command.run_flow(argparse.Namespace(
                spec=request["document"], flow=request["flow"], input=json.dumps(request["inputs"]),
                input_file=None, output=None, progress=False, show_output=False))
        else:
            validate_command.main(argparse.Namespace(spec=request["document"], print=False))
    except SystemExit as e:
        result["status"] = e.code if isinstance(e.code, int) else 1
    except BaseException as e:
        result["status"] = 1
        result["crash"] = type(e).__name__
        log.write("".join(traceback.format_exception_only(e)))
    result["log"] = log.getvalue()[-4000:]
    frame = kept.get("frame")
    if frame is not None:
        import pandas as pd
        frame = frame.astype(object).where(pd.notnull(frame), None) if len(frame) else frame
        rows = [{k: plain(v) for k, v in row.items() if k != "row"} for row in frame.to_dict("records")]
        result["rows"] = [{k: v for k, v in row.items() if v is not None} for row in rows]
    return result


def serve(request):
    """Serves a request in another process and returns its answer."""
    if request.get("run"):
        import_for_runs()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        sink = os.open(os.devnull, os.O_WRONLY)
        os.dup2(sink, 1)
        os.dup2(sink, 2)
        with os.fdopen(write, "w") as out:
            json.dump(answer(request), out)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as text:
        raw = text.read()
    _, status = os.waitpid(child, 0)
    if not raw:
        return {"name": request["name"], "status": 1, "crash": f"process ended with {status}", "log": ""}
    return json.loads(raw)


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(serve(json.loads(line))), flush=True)
