"""A server with Qdrant's REST API over the in-memory mode of the official client.

The client checks the requests by its models and implements filters and distances.
Usage: python qdrant.py PORT [API_KEY]
"""

import json
import re
import sys
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock

from qdrant_client import QdrantClient
from qdrant_client.http import models as m

client = QdrantClient(":memory:")
lock = Lock()
api_key = sys.argv[2] if len(sys.argv) > 2 else ""


class Status(Exception):
    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


def dump(v):
    if isinstance(v, list):
        return [dump(x) for x in v]
    return v.model_dump(mode="json") if hasattr(v, "model_dump") else v


def scroll(name, b):
    r = m.ScrollRequest(**b)
    points, after = client.scroll(name, scroll_filter=r.filter, limit=r.limit, offset=r.offset,
                                  with_payload=r.with_payload, with_vectors=r.with_vector or False)
    return {"points": dump(points), "next_page_offset": after}


def query(name, b):
    r = m.QueryRequest(**b)
    found = client.query_points(name, query=r.query, using=r.using, query_filter=r.filter, limit=r.limit or 10,
                                with_payload=r.with_payload, with_vectors=r.with_vector or False)
    return {"points": dump(found.points)}


def search(name, b):
    r = m.SearchRequest(**b) if hasattr(m, "SearchRequest") else None
    vector = b["vector"]
    using = vector.get("name") or None if isinstance(vector, dict) else None
    found = client.query_points(name, query=vector["vector"] if isinstance(vector, dict) else vector, using=using,
                                query_filter=m.Filter(**b["filter"]) if b.get("filter") else None, limit=b["limit"],
                                with_payload=b.get("with_payload", False), with_vectors=b.get("with_vector", False))
    return dump(found.points)


def upsert(name, b):
    points = m.PointsList(**b).points
    size = client.get_collection(name).config.params.vectors
    for p in points:
        for key, vector in (p.vector.items() if isinstance(p.vector, dict) else [("", p.vector)]):
            want = (size[key] if isinstance(size, dict) else size).size
            if len(vector) != want:
                raise Status(400, f"Wrong input: Vector dimension error: expected dim: {want}, got {len(vector)}")
        if isinstance(p.vector, dict) and list(p.vector) == [""]:
            p.vector = p.vector[""]
    return dump(client.upsert(name, points, wait=True))


def facet(name, b):
    r = m.FacetRequest(**b)
    return dump(client.facet(name, key=r.key, facet_filter=r.filter, limit=r.limit or 10, exact=r.exact or False))


def delete(name, b):
    selector = m.PointIdsList(**b) if "points" in b else m.FilterSelector(**b)
    return dump(client.delete(name, points_selector=selector, wait=True))


def retrieve(name, b):
    r = m.PointRequest(**b)
    return dump(client.retrieve(name, r.ids, with_payload=r.with_payload, with_vectors=r.with_vector or False))


def create(name, b):
    r = m.CreateCollection(**b)
    if client.collection_exists(name):
        raise Status(409, f"Wrong input: Collection `{name}` already exists!")
    return client.create_collection(name, vectors_config=r.vectors)


def create_index(name, b):
    m.CreateFieldIndex(**b)
    return {"operation_id": 0, "status": "completed"}


ROUTES = [
    ("GET", "", lambda n, b: dump(client.get_collection(n))),
    ("PUT", "", create),
    ("DELETE", "", lambda n, b: client.delete_collection(n)),
    ("PUT", "/index", create_index),
    ("PUT", "/points", upsert),
    ("POST", "/points", retrieve),
    ("POST", "/points/delete", delete),
    ("POST", "/points/scroll", scroll),
    ("POST", "/points/search", search),
    ("POST", "/points/query", query),
    ("POST", "/points/count", lambda n, b: dump(client.count(n, count_filter=m.CountRequest(**b).filter))),
    ("POST", "/facet", facet),
]


def answer(method, path, body):
    if path == "/":
        return {"title": "qdrant - vector search engine", "version": "1.15.0", "commit": None}
    if path == "/collections":
        return {"result": dump(client.get_collections())}
    parts = re.fullmatch(r"/collections/([^/]+)(/.*)?", path)
    if not parts:
        raise Status(404, "")
    name, rest = urllib.parse.unquote(parts[1]), parts[2] or ""
    if rest == "/exists":
        return {"result": {"exists": client.collection_exists(name)}}
    for want, suffix, handle in ROUTES:
        if (want, suffix) == (method, rest):
            if (method, rest) != ("PUT", "") and not client.collection_exists(name):
                raise Status(404, f"Not found: Collection `{name}` doesn't exist!")
            return {"result": handle(name, body)}
    raise Status(404, "")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def serve(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status, result = 200, None
        try:
            if api_key and self.headers.get("api-key") != api_key and self.headers.get("Authorization") != "Bearer " + api_key:
                raise Status(401, "Must provide an API key or an Authorization bearer token")
            with lock:
                result = answer(self.command, self.path.split("?")[0], json.loads(body) if body else None)
            result.update({"status": "ok", "time": 0.0})
        except Status as e:
            status, result = e.status, {"status": {"error": str(e)}, "time": 0.0}
        except Exception as e:  # pydantic's errors and those of the client
            status, result = 400, {"status": {"error": f"Wrong input: {e}"}, "time": 0.0}
        data = json.dumps(result).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_PUT = do_POST = do_DELETE = do_PATCH = serve

    def log_message(self, *args):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True


Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
