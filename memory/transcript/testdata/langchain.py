import json
from langchain_core.messages import *
from langchain_core.messages import messages_to_dict
from langchain_core.load import dumps
ms=[SystemMessage("be brief"),HumanMessage("weather in Oslo?", id="h1", name="ada"),
 AIMessage("", tool_calls=[{"name":"weather","args":{"city":"Oslo"},"id":"c1"}], id="a1"),
 ToolMessage("sunny", tool_call_id="c1", name="weather"),
 HumanMessage([{"type":"text","text":"and this?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}]),
 AIMessage([{"type":"text","text":"a picture"}])]
print(json.dumps(messages_to_dict(ms)))
print(dumps(ms))
from langgraph.graph import StateGraph, MessagesState, START, END
from langgraph.checkpoint.memory import InMemorySaver
g=StateGraph(MessagesState); g.add_node("n",lambda s:{"messages":[AIMessage("hi")]}); g.add_edge(START,"n"); g.add_edge("n",END)
cp=InMemorySaver(); app=g.compile(checkpointer=cp)
cfg={"configurable":{"thread_id":"t"}}
app.invoke({"messages":[HumanMessage("q")]},cfg)
print(dumps(cp.get_tuple(cfg).checkpoint))
