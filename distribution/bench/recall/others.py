"""Ranks the messages of conversations for their questions with LlamaIndex, mem0 and LangMem.

    python3 others.py llamaindex|mem0|langmem http://HOST/v1 conversations.jsonl ranked.jsonl [--names]

The address is that of a server of embeddings with the interface of OpenAI, the same that
qtype is measured with. Each message is stored as one item; with --names its text begins with
the name of its author. mem0 stores messages as they are (infer=False): extracting facts
needs a language model. LangMem searches the store of LangGraph. A line of the result is {conversation, question, ids}, the best
message first, for `go run . -window 4000 -ranked ranked.jsonl`.

Needs the packages llama-index-core and llama-index-embeddings-openai-like, or mem0ai, or langmem and langchain-openai. With
fastembed, and the files of its model Qdrant/bm25 in the folder QTYPE_BM25, mem0 compares
words too; with spaCy and en_core_web_sm it compares lemmas.
"""

import asyncio
import json
import os
import shutil
import sys
import tempfile

MODEL = "all-MiniLM-L6-v2"
MOST = 200  # messages of a question


def conversations(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def message_of(conversation, turn, names):
    """Returns role, author and text; a turn has its id, time, author and text."""
    _, _, author, text = turn.values()
    _, _, first, _ = conversation["turns"][0].values()
    return "user" if author == first else "assistant", author, f"{author}: {text}" if names else text


async def llamaindex(conversation, url, names):
    from llama_index.core.base.llms.types import ChatMessage
    from llama_index.core.memory import VectorMemoryBlock
    from llama_index.core.vector_stores import SimpleVectorStore
    from llama_index.embeddings.openai_like import OpenAILikeEmbedding

    class Texts(SimpleVectorStore):
        """LlamaIndex's vectors in the process, which keep their texts too."""

        stores_text: bool = True

        async def async_add(self, nodes, **kwargs):
            for node in nodes:
                TEXTS[node.node_id] = node
            return self.add(nodes, **kwargs)

        async def aquery(self, query, **kwargs):
            result = self.query(query, **kwargs)
            result.nodes = [TEXTS[i] for i in result.ids]
            found.append([IDS[i] for i in result.ids])
            return result

    TEXTS, IDS, found = {}, {}, []
    embedding = OpenAILikeEmbedding(model_name=MODEL, api_base=url, api_key="none", embed_batch_size=64)
    block = VectorMemoryBlock(vector_store=Texts(), embed_model=embedding, similarity_top_k=MOST, retrieval_context_window=1)
    for turn in conversation["turns"]:
        before = set(TEXTS)
        role, _, text = message_of(conversation, turn, names)
        await block.aput([ChatMessage(role=role, content=text)])
        (new,) = set(TEXTS) - before
        IDS[new] = turn["id"]
    for question in conversation["questions"]:
        await block.aget([ChatMessage(role="user", content=question["question"])])
    return found


def bm25(folder):
    """Lets fastembed take the files of its model of words from a folder."""
    from fastembed.common.model_management import ModelManagement

    ModelManagement.download_model = classmethod(lambda *args, **kwargs: __import__("pathlib").Path(folder))


async def mem0(conversation, url, names):
    os.environ["MEM0_TELEMETRY"] = "False"
    os.environ["MEM0_DIR"] = folder = tempfile.mkdtemp()
    from mem0 import Memory

    if os.environ.get("QTYPE_BM25"):
        bm25(os.environ["QTYPE_BM25"])
    memory = Memory.from_config({
        "vector_store": {"provider": "qdrant", "config": {"path": folder + "/qdrant", "embedding_model_dims": 384, "on_disk": False}},
        "embedder": {"provider": "openai", "config": {"model": MODEL, "api_key": "none", "openai_base_url": url}},
        "llm": {"provider": "openai", "config": {"api_key": "none", "openai_base_url": url}},  # never called
        "history_db_path": folder + "/history.db",
    })
    for turn in conversation["turns"]:
        role, author, text = message_of(conversation, turn, names)
        memory.add([{"role": role, "name": author, "content": text}], user_id="s", metadata={"turn": turn["id"]}, infer=False)
    found = []
    for question in conversation["questions"]:
        results = memory.search(question["question"], filters={"user_id": "s"}, top_k=MOST, threshold=0.0)["results"]
        found.append([r["metadata"]["turn"] for r in results])
    memory.close()
    shutil.rmtree(folder)
    return found


async def langmem(conversation, url, names):
    from langchain_openai import OpenAIEmbeddings
    from langgraph.store.memory import InMemoryStore
    from langmem import create_search_memory_tool

    embed = OpenAIEmbeddings(model=MODEL, base_url=url, api_key="none", check_embedding_ctx_length=False)
    store = InMemoryStore(index={"dims": 384, "embed": embed})
    for turn in conversation["turns"]:
        await store.aput(("s",), turn["id"], {"content": message_of(conversation, turn, names)[2]})
    search = create_search_memory_tool(namespace=("s",), store=store, response_format="content_and_artifact")
    found = []
    for question in conversation["questions"]:
        call = {"type": "tool_call", "id": "1", "name": search.name, "args": {"query": question["question"], "limit": MOST}}
        found.append([item.key for item in (await search.ainvoke(call)).artifact])
    return found


def main():
    system, url, source, target, *rest = sys.argv[1:]
    rank = {"llamaindex": llamaindex, "mem0": mem0, "langmem": langmem}[system]
    with open(target, "w", encoding="utf-8") as out:
        for conversation in conversations(source):
            found = asyncio.run(rank(conversation, url, "--names" in rest))
            for question, ids in zip(conversation["questions"], found, strict=True):
                out.write(json.dumps({"conversation": conversation["id"], "question": question["question"], "ids": ids}) + "\n")
            print(conversation["id"], len(found), flush=True)


if __name__ == "__main__":
    main()
