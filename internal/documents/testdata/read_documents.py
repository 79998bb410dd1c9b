"""Prints the documents that LlamaIndex reads, as JSON: a list of cases is read from stdin."""

import json
import sys

from llama_index.core import SimpleDirectoryReader
from llama_index.readers.json import JSONReader

results = []
for case in json.load(sys.stdin):
    try:
        if case["reader"] == "json":
            docs = JSONReader(**case["args"]).load_data(**case["loader_args"])
        else:
            docs = SimpleDirectoryReader(**case["args"]).load_data()
    except Exception as e:
        results.append({"error": str(e)})
        continue
    results.append({"documents": [{"id": d.doc_id, "text": d.text, "metadata": d.metadata} for d in docs]})
json.dump(results, sys.stdout)
