from langgraph.checkpoint.memory import InMemorySaver
from langgraph.prebuilt import create_react_agent


def find_order(number: int) -> str:
    """Finds the state of an order."""
    return "sent"


agent = create_react_agent("openai:gpt-6-luna", tools=[find_order], prompt="You help customers.", checkpointer=InMemorySaver())
