"""Calls a server with OpenAI's package for Python: client.py BASE. It prints one JSON
object with what each scenario has returned."""

import asyncio
import json
import sys
import threading

import openai
from openai import AsyncOpenAI, OpenAI
from openai.lib.responses_tool_runner import RegisteredFunction, ResponsesToolRunner

BASE = sys.argv[1] + "/v1"
client = OpenAI(base_url=BASE, api_key="ada-key-0123456789", max_retries=0)
TOOL = {"type": "function", "function": {"name": "get_weather", "description": "The weather of a city", "strict": True,
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False}}}
FUNCTION = {"type": "function", **TOOL["function"]}


def user(text):
    return {"role": "user", "content": text}


def chat():
    """The client keeps the conversation."""
    messages, texts = [{"role": "system", "content": "Be kind."}], []
    for text in ["one", "two", "three"]:
        messages.append(user(text))
        answer = client.chat.completions.create(model="talk", messages=messages, temperature=0.5)
        messages.append(answer.choices[0].message)
        texts.append(answer.choices[0].message.content)
    return texts


def chat_stream():
    messages, texts, usage = [], [], []
    for text in ["one", "two"]:
        messages.append(user(text))
        content = ""
        for chunk in client.chat.completions.create(model="talk", messages=messages, stream=True, stream_options={"include_usage": True}):
            if chunk.usage:
                usage.append(chunk.usage.total_tokens)
            for choice in chunk.choices:
                content += choice.delta.content or ""
        messages.append({"role": "assistant", "content": content})
        texts.append(content)
    return {"texts": texts, "usage": usage}


def chat_helper():
    """The helper that accumulates a stream."""
    with client.chat.completions.stream(model="talk", messages=[user("think")]) as stream:
        kinds = []
        for event in stream:
            if event.type not in kinds:
                kinds.append(event.type)
        done = stream.get_final_completion()
    message = done.choices[0].message
    return {"kinds": kinds, "text": message.content, "reasoning": message.model_extra.get("reasoning_content")}


def session():
    headers = {"X-Session-Id": "python"}
    texts = [client.chat.completions.create(model="talk", messages=[user(t)], extra_headers=headers).choices[0].message.content for t in ["a", "b"]]
    texts.append(client.chat.completions.create(model="talk", messages=[user("c")], metadata={"session_id": "python"}).choices[0].message.content)
    return texts


def inputs():
    return client.chat.completions.create(model="greet", messages=[user("hi")], extra_body={"inputs": {"name": "Ada", "stars": 5}}).choices[0].message.content


def tools():
    messages, rounds = [user("weather in Rome and Oslo")], []
    while True:
        answer = client.chat.completions.create(model="work", messages=messages, tools=[TOOL], tool_choice="auto", parallel_tool_calls=True).choices[0]
        messages.append(answer.message)
        rounds.append(answer.finish_reason)
        if answer.finish_reason != "tool_calls":
            return {"rounds": rounds, "text": answer.message.content, "calls": len(messages[1].tool_calls)}
        for call in answer.message.tool_calls:
            messages.append({"role": "tool", "tool_call_id": call.id, "content": "sunny in " + json.loads(call.function.arguments)["city"]})


def tools_stream():
    messages = [user("stock and weather in Rome")]
    with client.chat.completions.stream(model="work", messages=messages, tools=[TOOL]) as stream:
        stream.until_done()
        first = stream.get_final_completion().choices[0]
    messages.append(first.message)
    for call in first.message.tool_calls:
        messages.append({"role": "tool", "tool_call_id": call.id, "content": "sunny"})
    with client.chat.completions.stream(model="work", messages=messages, tools=[TOOL]) as stream:
        stream.until_done()
        last = stream.get_final_completion().choices[0]
    return {"names": [c.function.name for c in first.message.tool_calls], "parsed": first.message.tool_calls[0].function.parsed_arguments,
            "reasons": [first.finish_reason, last.finish_reason], "text": last.message.content}


def responses():
    first = client.responses.create(model="talk", input="one", instructions="Be kind.")
    second = client.responses.create(model="talk", input="two", previous_response_id=first.id)
    with client.responses.stream(model="talk", input="three", previous_response_id=second.id) as stream:
        deltas = [e.delta for e in stream if e.type == "response.output_text.delta"]
        third = stream.get_final_response()
    return {"texts": [first.output_text, second.output_text, third.output_text], "same": "".join(deltas) == third.output_text,
            "status": third.status, "usage": third.usage.total_tokens > 0}


def responses_runner():
    """The helper that calls functions until there is an answer."""
    called = []

    def weather(arguments):
        called.append(arguments["city"])
        return "sunny"

    texts = []
    for stream in [False, True]:
        runner = ResponsesToolRunner(functions=[RegisteredFunction(FUNCTION, weather)])
        texts.append(runner.run(client, {"model": "work", "input": "weather in Rome and Oslo"}, max_steps=4, stream=stream).output_text)
    return {"texts": texts, "called": sorted(called)}


def models():
    return {"ids": [m.id for m in client.models.list()], "one": client.models.retrieve("talk").object}


def embeddings():
    two = client.embeddings.create(model="vectors", input=["one two", "three"])
    plain = client.embeddings.create(model="vectors", input="one two", encoding_format="float")
    return {"dimensions": [len(d.embedding) for d in two.data], "tokens": two.usage.total_tokens,
            "same": all(abs(a - b) < 1e-6 for a, b in zip(two.data[0].embedding, plain.data[0].embedding))}


def name(call):
    try:
        call()
    except openai.OpenAIError as e:
        return type(e).__name__
    return "no error"


def conflict():
    """A second turn of a session whose memory refuses it."""
    headers, begun, leave = {"X-Session-Id": "busy"}, threading.Event(), threading.Event()

    def first():
        with client.chat.completions.create(model="once", messages=[user("slow")], stream=True, extra_headers=headers) as chunks:
            for _ in chunks:
                begun.set()
                if leave.is_set():
                    break

    thread = threading.Thread(target=first)
    thread.start()
    begun.wait()
    try:
        return name(lambda: client.chat.completions.create(model="once", messages=[user("x")], extra_headers=headers))
    finally:
        leave.set()
        thread.join()


def errors():
    create = client.chat.completions.create
    limit = {}
    try:
        create(model="talk", messages=[user("limit")])
    except openai.RateLimitError as e:
        limit = {"retry-after": e.response.headers["retry-after"], "code": e.code, "type": e.type}
    try:
        create(model="talk", messages=[user("x")], n=2)
    except openai.BadRequestError as e:
        param = e.param
    return {
        "BadRequestError": name(lambda: create(model="talk", messages=[user("x")], n=2)),
        "AuthenticationError": name(lambda: client.with_options(api_key="wrong").models.list()),
        "PermissionDeniedError": name(lambda: create(model="guarded", messages=[user("x")])),
        "NotFoundError": name(lambda: create(model="none", messages=[user("x")])),
        "ConflictError": conflict(),
        "UnprocessableEntityError": name(lambda: create(model="greet", messages=[user("x")])),
        "RateLimitError": name(lambda: create(model="talk", messages=[user("limit")], stream=True)),
        "InternalServerError": name(lambda: create(model="talk", messages=[user("broken")])),
        "limit": limit, "param": param,
        "responses": name(lambda: client.responses.create(model="talk", input="x", previous_response_id="resp_none")),
        "retrieve": name(lambda: client.responses.retrieve("resp_none")),
    }


def retries():
    """The package retries what the rate limit of a provider has refused."""
    return name(lambda: client.with_options(max_retries=1).chat.completions.create(model="talk", messages=[user("limit")]))


def stream_error():
    """An error after the first chunk."""
    texts = []
    try:
        for chunk in client.chat.completions.create(model="late", messages=[user("think")], stream=True):
            texts.append(chunk.choices[0].delta.content or "")
    except openai.APIError as e:
        return {"error": str(e), "texts": texts}
    return {"texts": texts}


def abort():
    stream = client.chat.completions.create(model="talk", messages=[user("slow")], stream=True)
    for chunk in stream:
        if chunk.choices[0].delta.content:
            stream.close()
            return chunk.choices[0].delta.content


def asynchronous():
    async def run():
        async with AsyncOpenAI(base_url=BASE, api_key="ada-key-0123456789", max_retries=0) as c:
            answers = await asyncio.gather(*[c.chat.completions.create(model="talk", messages=[user(str(i))]) for i in range(8)])
            return [a.choices[0].message.content.split('"')[1] for a in answers]

    return asyncio.run(run())


results = {}
for scenario in [chat, chat_stream, chat_helper, session, inputs, tools, tools_stream, responses, responses_runner, models, embeddings, errors, retries,
                 stream_error, abort, asynchronous]:
    try:
        results[scenario.__name__] = scenario()
    except Exception as e:  # the test reports it
        results[scenario.__name__] = {"exception": f"{type(e).__name__}: {e}"}
print(json.dumps(results))
