"""An agent that knows the weather."""
import os
from langchain.chat_models import init_chat_model
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.prebuilt import create_react_agent

PROMPT = (
    "You are a helpful assistant. "
    'Use the tools: {"city": "Rome"}.'
)


@tool
def get_weather(city: str, days: int = 1) -> str:
    """Returns the weather of a city.

    Args: city, days.
    """
    return f"It is sunny in {city}"


def convert(amount: float, currencies: list[str], config: RunnableConfig) -> float:
    """Converts an amount."""
    return amount


model = init_chat_model("anthropic:claude-sonnet-4-5", temperature=0, max_tokens=1_000)
checkpointer = InMemorySaver()
agent = create_react_agent(
    model=model,
    tools=[get_weather, convert, TavilySearch(max_results=2)],
    prompt=PROMPT,
    checkpointer=checkpointer,
    response_format=Weather,
    name="weather",
)

config = {"configurable": {"thread_id": "1"}}
print(agent.invoke({"messages": [{"role": "user", "content": "Rome?"}]}, config))
