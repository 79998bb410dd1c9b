"""Splits documents with LlamaIndex.

Each line of standard input is a JSON object: the class of a node parser, its arguments
and a text. For each of them, a line of standard output has the chunks, with the metadata
that the parser added, and the seconds of processor time. The document has no metadata:
QType (Python) adds it to the chunks later.
"""

import json
import logging
import sys
import time

from llama_index.core import node_parser
from llama_index.core.schema import Document

logging.disable(logging.CRITICAL)
answers = sys.stdout
sys.stdout = sys.stderr  # the parsers print warnings

parsers = {}
for line in sys.stdin:
    job = json.loads(line)
    key = json.dumps([job["class"], job["args"]], sort_keys=True)
    if key not in parsers:
        parsers[key] = getattr(node_parser, job["class"])(**job["args"])
    document = Document(text=job["text"])
    start = time.process_time()
    nodes = parsers[key].get_nodes_from_documents([document])
    seconds = time.process_time() - start
    chunks = [{"text": n.text, "metadata": n.metadata} for n in nodes]
    print(json.dumps({"chunks": chunks, "seconds": seconds}), file=answers, flush=True)
