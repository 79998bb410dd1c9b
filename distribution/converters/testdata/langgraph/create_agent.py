from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langgraph.checkpoint.postgres import PostgresSaver

helper = create_agent("openai:gpt-4o", tools=make_tools(), system_prompt=f"It is {now()}.", checkpointer=PostgresSaver(conn),
                      middleware=[SummarizationMiddleware(model="openai:gpt-4o-mini")])
second = create_agent(model=ChatGroq(model="llama-3.3-70b"), tools=[])
