"""Splits documents with LlamaIndex.

Each line of standard input is a JSON object: the class of a node parser, its arguments,
a text and, for SemanticSplitterNodeParser, the address of a server with OpenAI's
embeddings and the name of its model. For each of them, a line of standard output has the
chunks, with the metadata that the parser added, and the seconds of processor time; for
CodeSplitter also where the definitions of the text are, in bytes. The document has no
metadata: QType (Python) adds it to the chunks later.
"""

import json
import logging
import sys
import time
import urllib.request

from llama_index.core import node_parser
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.schema import Document

logging.disable(logging.CRITICAL)
answers = sys.stdout
sys.stdout = sys.stderr  # the parsers print warnings


class Remote(BaseEmbedding):
    """The embedding model of a server."""

    address: str

    def _get_text_embeddings(self, texts):
        body = json.dumps({"model": self.model_name, "input": texts}).encode()
        request = urllib.request.Request(self.address + "/embeddings", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as response:
            return [d["embedding"] for d in json.load(response)["data"]]

    def _get_text_embedding(self, text):
        return self._get_text_embeddings([text])[0]

    _get_query_embedding = _get_text_embedding

    async def _aget_query_embedding(self, query):
        return self._get_text_embedding(query)


def make(job):
    args = dict(job["args"])
    if job.get("embeddings"):
        args["embed_model"] = Remote(address=job["embeddings"], model_name=job["model"], embed_batch_size=256)
    return getattr(node_parser, job["class"])(**args)


def definitions(parser, text):
    """Returns the ranges of functions, methods and types."""
    found = []

    def walk(node):
        if node.is_named and node.type.endswith(("_declaration", "_definition")) and any(w in node.type for w in ("function", "method", "class", "type", "interface", "enum")):
            found.append([node.start_byte, node.end_byte])
        for child in node.children:
            walk(child)

    walk(parser._parser.parse(text.encode()).root_node)
    return found


parsers = {}
for line in sys.stdin:
    job = json.loads(line)
    key = json.dumps([job["class"], job["args"], job.get("embeddings")], sort_keys=True)
    if key not in parsers:
        parsers[key] = make(job)
    document = Document(text=job["text"])
    start = time.process_time()
    nodes = parsers[key].get_nodes_from_documents([document])
    seconds = time.process_time() - start
    chunks = [{"text": n.text, "metadata": n.metadata} for n in nodes]
    answer = {"chunks": chunks, "seconds": seconds}
    if job["class"] == "CodeSplitter":
        answer["definitions"] = definitions(parsers[key], job["text"])
    print(json.dumps(answer), file=answers, flush=True)
