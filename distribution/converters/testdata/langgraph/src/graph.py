from langgraph.graph import StateGraph, MessagesState
from langgraph.prebuilt import ToolNode, tools_condition


async def search(query: str) -> str:
    """Searches the pages."""
    return query

tools = [search]
llm = ChatOllama(model="llama3.2", base_url="http://localhost:11434")
llm_with_tools = llm.bind_tools(tools)


async def respond(state: MessagesState):
    answer = await llm_with_tools.ainvoke([{"role": "system", "content": "Use the search."}] + state["messages"])
    return {"messages": [answer]}


def ask(state):
    return interrupt("sure?")


graph = (
    StateGraph(MessagesState)
    .add_node(respond)
    .add_node("tools", ToolNode(tools))
    .add_node("ask", ask)
    .add_edge("__start__", "respond")
    .add_conditional_edges("respond", tools_condition)
    .compile()
)
