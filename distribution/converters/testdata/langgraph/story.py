"""A node that fills a prompt from the state, and what has no counterpart."""
from typing import Optional, TypedDict
from dotenv import load_dotenv
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph

load_dotenv()
UNUSED = "unused"
MODEL = "gpt-4o-mini"


class State(TypedDict):
    hero: str
    chapters: int
    story: str


llm = ChatOpenAI(model=MODEL, timeout=20, max_retries=4, api_key="k", stop=["END"], n=2)


def write(state: State):
    """Writes the story."""
    print("writing")
    reply = llm.invoke(f"Write about {state['hero']} in {state.get('chapters')} parts {{as JSON}}, {MODEL!r}")
    return {"story": reply.content, "log": 1}


def helper(x):
    return x


if True:
    flow = StateGraph(State, context_schema=Other)
    flow.add_node("write", write, retry_policy=None)
    flow.add_edge(START, "write")
    flow.add_edge("write", END)
    app = flow.compile(cache=1)
    app.invoke({"hero": "Ada", "chapters": 3})
