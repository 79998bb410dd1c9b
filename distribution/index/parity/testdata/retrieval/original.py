"""Runs flows with QType (Python): python original.py APP

Standard input has a line of JSON for each run, {"flow": ..., "inputs": [...]}; for each of
them, a line of standard output has the rows.
"""

import asyncio
import json
import sys
from pathlib import Path

import pandas
from pydantic import BaseModel

answers = sys.stdout
sys.stdout = sys.stderr  # the program prints warnings

from qtype.commands.run import execute_workflow  # noqa: E402


def plain(value):
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


async def main():
    for line in sys.stdin:
        job = json.loads(line)
        inputs = pandas.DataFrame(job["inputs"]) if job["inputs"] else {}
        result = await execute_workflow(Path(sys.argv[1]), flow_name=job["flow"], inputs=inputs)
        rows = [{key: plain(value) for key, value in row.items()} for row in result.to_dict("records")]
        print(json.dumps(rows), file=answers, flush=True)


asyncio.run(main())
