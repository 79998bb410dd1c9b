"""Fills LlamaIndex's own vector store with the chunks of a folder of texts; see run.sh."""

import sys

from llama_index.core import SimpleDirectoryReader, StorageContext, VectorStoreIndex
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.node_parser import SentenceSplitter

folder, store = sys.argv[1:]
documents = SimpleDirectoryReader(folder, recursive=True, required_exts=[".txt"]).load_data()
vectors = MockEmbedding(embed_dim=384, embed_batch_size=128)
for document in documents:  # QType (Python) splits documents without their metadata
    document.metadata = {}
pipeline = IngestionPipeline(transformations=[SentenceSplitter(chunk_size=256, chunk_overlap=20), vectors])
nodes = pipeline.run(documents=documents)
storage = StorageContext.from_defaults()
VectorStoreIndex(nodes, storage_context=storage, embed_model=vectors)
storage.persist(persist_dir=store)
print(len(nodes), "chunks")
