"""Reads and writes Parquet files with pyarrow, DuckDB and polars.

tables.py read FILE    prints, as JSON, the types of the columns and the rows, as each library has them
tables.py write FILE   writes a file with pyarrow that has columns of many types
"""

import datetime
import decimal
import json
import sys

import duckdb
import polars
import pyarrow
import pyarrow.parquet


def text(value):
    """A value in a form that all three libraries share."""
    if isinstance(value, dict):
        return {k: text(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [text(v) for v in value]
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(datetime.timezone.utc)
        return value.isoformat()
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    return value


def read(path):
    table = pyarrow.parquet.read_table(path)
    frame = polars.read_parquet(path)
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    relation = connection.execute("SELECT * FROM read_parquet(?)", [path])
    names = [d[0] for d in relation.description]
    print(json.dumps({
        "types": {f.name: str(f.type) for f in table.schema},
        "pyarrow": [text(r) for r in table.to_pylist()],
        "polars": [text(r) for r in frame.to_dicts()],
        "duckdb": [text(dict(zip(names, r))) for r in relation.fetchall()],
    }))


def write(path):
    utc = datetime.timezone.utc
    noon = datetime.datetime(2024, 2, 29, 12, 30, 0, 1)
    columns = {
        "price": pyarrow.array([decimal.Decimal("12345678901234567890.123456789"), None], pyarrow.decimal128(38, 9)),
        "wide": pyarrow.array([decimal.Decimal("-" + "9" * 60 + ".5"), decimal.Decimal("0.0")], pyarrow.decimal256(70, 1)),
        "day": pyarrow.array([datetime.date(2024, 2, 29), datetime.date(1, 1, 1)]),
        "before": pyarrow.array([-719529, -735000], pyarrow.int32()).cast(pyarrow.date32()),
        "clock": pyarrow.array([datetime.time(12, 30, 5, 6), None], pyarrow.time64("us")),
        "local": pyarrow.array([noon, None], pyarrow.timestamp("us")),
        "zoned": pyarrow.array([noon.replace(tzinfo=utc), None], pyarrow.timestamp("ns", "Europe/Berlin")),
        "numbers": pyarrow.array([[1, None, 3], []], pyarrow.list_(pyarrow.int32())),
        "vector": pyarrow.array([[0.5, 0.25], [1.0, 2.0]], pyarrow.list_(pyarrow.float32(), 2)),
        "order": pyarrow.array([{"no": 1, "lines": [{"sku": "a"}]}, None]),
        "map": pyarrow.array([[("k", 1)], []], pyarrow.map_(pyarrow.string(), pyarrow.int64())),
        "raw": pyarrow.array([b"\x00\xff", b""], pyarrow.large_binary()),
        "word": pyarrow.array(["x", "y"]).dictionary_encode(),
        "big": pyarrow.array([2**64 - 1, 0], pyarrow.uint64()),
        "half": pyarrow.array([1.5, None], pyarrow.float16()),
        "ratio": pyarrow.array([float("nan"), float("-inf")]),
        "took": pyarrow.array([datetime.timedelta(hours=49, minutes=30, milliseconds=500), None], pyarrow.duration("us")),
        "nanos": pyarrow.array([-1, 3_600_000_000_000], pyarrow.duration("ns")),
        "days": pyarrow.array([[{"late": -90061}], []], pyarrow.list_(pyarrow.struct([("late", pyarrow.duration("s"))]))),
        "most": pyarrow.array([-(2**63) + 1, 2**63 - 1], pyarrow.duration("s")),
        "none": pyarrow.array([None, None]),
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), path)


{"read": read, "write": write}[sys.argv[1]](sys.argv[2])
