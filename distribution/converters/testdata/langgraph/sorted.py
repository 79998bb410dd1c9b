from typing import Literal, Optional
from pydantic import BaseModel, Field
from langchain_openai import ChatOpenAI
from langgraph.graph import MessagesState, StateGraph, START

llm = ChatOpenAI(model="gpt-4o-mini")


class Part(BaseModel):
    name: str


class Ticket(BaseModel):
    """What a letter is about."""
    title: str = Field(description="in one line", max_length=80)
    urgent: bool = False
    due: Optional[str] = Field(default=None)
    parts: list[Part]
    kind: Literal["question", "complaint"]

    def short(self):
        return self.title


def sort(state: MessagesState):
    ask = [{"role": "system", "content": "Sort the letter.", "name": "desk"}] + state["messages"] + [("user", "Be quick.")]
    return {"messages": [llm.with_structured_output(Ticket, strict=True).invoke(ask, config)]}


graph = StateGraph(MessagesState).add_node("sort", sort).add_edge(START, "sort").compile(name="Sorter")
