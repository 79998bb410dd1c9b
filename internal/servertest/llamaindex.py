"""Writes and reads collections as LlamaIndex does: python llamaindex.py STORE ADDRESS KEY NAME ACTION

ACTION write adds a chunk; read prints what a search finds, as JSON.
"""

import json
import sys

from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters, VectorStoreQuery


def open_store(store, address, key, name):
    if store == "qdrant":
        from llama_index.vector_stores.qdrant import QdrantVectorStore

        return QdrantVectorStore(collection_name=name, url=address, api_key=key)
    if store == "redis":
        from llama_index.vector_stores.redis import RedisVectorStore
        from redisvl.schema import IndexSchema

        vector = {"name": "vector", "type": "vector", "attrs": {"dims": 8, "algorithm": "flat", "distance_metric": "cosine"}}
        fields = [{"name": "id", "type": "tag"}, {"name": "doc_id", "type": "tag"}, {"name": "text", "type": "text"}, {"name": "lang", "type": "tag"}, vector]
        index = {"name": name, "prefix": name + "/vector", "key_separator": "_"}
        return RedisVectorStore(schema=IndexSchema.from_dict({"index": index, "fields": fields}), redis_url=address)
    if store == "weaviate":
        import weaviate
        from llama_index.vector_stores.weaviate import WeaviateVectorStore

        host, port, grpc = address.split("//")[1].split(":")
        client = weaviate.connect_to_local(host=host, port=int(port), grpc_port=int(grpc), skip_init_checks=True)
        return WeaviateVectorStore(weaviate_client=client, index_name=name)
    import chromadb
    from llama_index.vector_stores.chroma import ChromaVectorStore

    host, port = address.split("//")[1].split(":")
    client = chromadb.HttpClient(host=host, port=int(port))
    return ChromaVectorStore(chroma_collection=client.get_or_create_collection(name))


store, address, key, name, action = sys.argv[1:]
opened = open_store(store, address, key, name)
if action == "write":
    node = TextNode(id_="72fd9f54-e518-54d8-98a6-c2caa3dc3830", text="Written by LlamaIndex.", metadata={"lang": "en", "page": 7},
                    embedding=[1.0, 0, 0, 0, 0, 0, 0, 0])
    node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id="guide.md")
    opened.add([node])
else:
    filters = MetadataFilters(filters=[MetadataFilter(key="lang", value="en")])
    found = opened.query(VectorStoreQuery(query_embedding=[1.0, 0, 0, 0, 0, 0, 0, 0], similarity_top_k=2, filters=filters))
    print(json.dumps([{"id": n.node_id, "text": n.get_content(), "metadata": n.metadata, "document": n.ref_doc_id} for n in found.nodes]))
