"""Asks for structured answers and for calls with the libraries that programs use:

    python structured.py BASE

It prints one JSON object with the results of each scenario.
"""

import json
import sys

import instructor
import openai
from langchain_openai import ChatOpenAI
from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput, PromptedOutput
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

base, key = sys.argv[1] + "/v1", "ada-key-0123456789"
client = openai.OpenAI(base_url=base, api_key=key, max_retries=0)


class Person(BaseModel):
    name: str
    age: int


def instructed(mode, text):
    return instructor.from_openai(client, mode=mode).chat.completions.create(
        model="plain", response_model=Person, max_retries=0, messages=[{"role": "user", "content": text}])


def lang(method, text):
    llm = ChatOpenAI(model="plain", base_url=base, api_key=key, max_retries=0)
    return llm.with_structured_output(Person, method=method).invoke(text)


def agent(output, text):
    model = OpenAIChatModel("plain", provider=OpenAIProvider(base_url=base, api_key=key))
    return Agent(model, output_type=output).run_sync(text).output


def parsed():
    messages = [{"role": "user", "content": "a person"}]
    return client.chat.completions.parse(model="plain", messages=messages, response_format=Person).choices[0].message.parsed


def parsed_response():
    return client.responses.parse(model="plain", input="a person", text_format=Person).output_parsed


def tools():
    """The tools of a program, for a flow without an Agent; the results are a further request."""
    llm = ChatOpenAI(model="plain", base_url=base, api_key=key, max_retries=0)
    model = OpenAIChatModel("plain", provider=OpenAIProvider(base_url=base, api_key=key))
    a = Agent(model)

    @a.tool_plain
    def get_weather(city: str) -> str:
        return "rain in " + city

    call = llm.bind_tools([get_weather], tool_choice="any").invoke("weather in Rome").tool_calls[0]
    return {"langchain": [call["name"], call["args"]], "pydantic_ai": a.run_sync("weather in Oslo").output}


def unknown():
    raw = client.chat.completions.with_raw_response.create(
        model="plain", messages=[{"role": "user", "content": "hi"}], extra_body={"num_ctx": 8, "repeat_last_n": 3})
    return raw.headers["X-Ignored-Parameters"]


def text(make):
    return lambda: json.dumps(make().model_dump(), sort_keys=True)


scenarios = {
    "parse": text(parsed),
    "responses.parse": text(parsed_response),
    "instructor tools": text(lambda: instructed(instructor.Mode.TOOLS, "call Person")),
    "instructor json": text(lambda: instructed(instructor.Mode.JSON, "write a person")),
    "instructor json_schema": text(lambda: instructed(instructor.Mode.JSON_SCHEMA, "a person")),
    "langchain json_schema": text(lambda: lang("json_schema", "a person")),
    "langchain json_mode": text(lambda: lang("json_mode", "write a person in json")),
    "langchain function_calling": text(lambda: lang("function_calling", "call Person")),
    "pydantic-ai tool": text(lambda: agent(Person, "call final_result")),
    "pydantic-ai native": text(lambda: agent(NativeOutput(Person), "a person")),
    "pydantic-ai prompted": text(lambda: agent(PromptedOutput(Person), "write a person")),
    "tools": tools,
    "unknown": unknown,
}
out = {}
for name, run in scenarios.items():
    try:
        out[name] = run()
    except Exception as e:  # reported by the test
        out[name] = f"{type(e).__name__}: {e}"
print(json.dumps(out))
