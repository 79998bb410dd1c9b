"""Counts tokens with the Python packages tokenizers and sentencepiece.

Reads lines {"path": …, "texts": […]} and writes the list of counts of each. A file that
does not end with .json is a model of SentencePiece.
"""
import json
import sys

import sentencepiece
import tokenizers

known = {}


def counter(path):
    if path.endswith(".json"):
        t = tokenizers.Tokenizer.from_file(path)
        t.no_truncation()
        t.no_padding()
        return lambda text: len(t.encode(text, add_special_tokens=False).ids)
    p = sentencepiece.SentencePieceProcessor(model_file=path)
    return lambda text: len(p.encode(text))


for line in sys.stdin:
    job = json.loads(line)
    if job["path"] not in known:
        known[job["path"]] = counter(job["path"])
    print(json.dumps([known[job["path"]](text) for text in job["texts"]]), flush=True)
