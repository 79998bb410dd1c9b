from langgraph.graph import StateGraph
x = trim_messages(max_tokens=get(), strategy="first", token_counter=len, allow_partial=True, unknown=1)
y = trim_messages(max_tokens=1000)
g = StateGraph(Plan)
g.add_node("plan", plan)
a = create_react_agent(model="unknown-model", tools=[, prompt="x"
def broken(
