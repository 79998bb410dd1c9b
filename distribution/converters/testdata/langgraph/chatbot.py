from langchain_core.messages import SystemMessage, trim_messages
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph

llm = ChatOpenAI(model="gpt-4o-mini", temperature=0.5, model_kwargs={"user": "x"})
LIMIT = 2000


def chatbot(state: MessagesState):
    messages = trim_messages(
        state["messages"],
        max_tokens=LIMIT,
        strategy="last",
        token_counter=llm,
        include_system=True,
        start_on="human",
    )
    return {"messages": [llm.invoke([SystemMessage(content="You are brief.")] + messages)]}


def log(state):
    print(state)


builder = StateGraph(MessagesState)
builder.add_node("chatbot", chatbot)
builder.add_node(log)
builder.add_edge(START, "chatbot")
builder.add_conditional_edges("chatbot", route, ["log", END])

with SqliteSaver.from_conn_string("chat.db") as memory:
    graph = builder.compile(checkpointer=memory, interrupt_before=["log"])
    graph.invoke({"messages": [("user", "hi")]}, {"configurable": {"thread_id": "1"}})
