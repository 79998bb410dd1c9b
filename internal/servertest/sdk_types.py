"""Checks requests and responses with the types of the providers' official Python packages.

Reads a JSON list of {"types", "kind", "path", "body"} from standard input, and writes a list
with the errors of each. A key that a type does not have is an error too.
"""

import base64
import collections.abc
import functools
import json
import sys
import types
import typing
import urllib.parse
import warnings

import typing_extensions as extensions

import anthropic.types as anthropic
import botocore.session
import botocore.validate
import google.genai.types as genai
import mistralai.client.models as mistral
import ollama._types as ollama
import openai.types as openai
import openai.types.chat as openai_chat
import openai.types.responses as openai_responses
import pydantic


def check(kind, value, at=""):
    """Returns the errors of a value of a type: a TypedDict, a union, a list and so on."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Annotated, extensions.Annotated, extensions.Required, extensions.NotRequired):
        return check(arguments[0], value, at)
    if isinstance(kind, typing.TypeAliasType if sys.version_info >= (3, 12) else extensions.TypeAliasType):
        return check(kind.__value__, value, at)
    if kind in (object, typing.Any):
        return []
    if origin in (typing.Union, types.UnionType):
        tried = [check(a, value, at) for a in arguments]
        return [] if [] in tried else min(tried, key=rank)
    if origin in (typing.Literal, extensions.Literal):
        return [] if value in arguments else [f"{at}: {value!r} is none of {arguments}"]
    if extensions.is_typeddict(kind):
        return check_object(kind, value, at)
    if origin in (list, collections.abc.Iterable, collections.abc.Sequence):
        if not isinstance(value, list):
            return [f"{at}: no list"]
        return [e for i, v in enumerate(value) for e in check(arguments[0], v, f"{at}[{i}]")]
    if origin in (dict, collections.abc.Mapping):
        if not isinstance(value, dict):
            return [f"{at}: no object"]
        return [e for k, v in value.items() for e in check(arguments[1], v, f"{at}.{k}")]
    if kind in (None, type(None)):
        return [] if value is None else [f"{at}: not null"]
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return []
    if isinstance(kind, type) and type(value) is kind:
        return []
    return [f"{at}: {value!r} is no {kind}"]


def rank(errors):
    """Orders the members of a union: that with the fewest errors is meant, unless its type is another one."""
    return any(" is none of " in e and e.split(":")[0].endswith(".type") for e in errors), len(errors)


def check_object(kind, value, at):
    if not isinstance(value, dict):
        return [f"{at}: no object"]
    hints = typing.get_type_hints(kind, include_extras=True)
    errors = [f"{at}.{k}: missing" for k in kind.__required_keys__ if k not in value]
    for k, v in value.items():
        errors += check(hints[k], v, f"{at}.{k}") if k in hints else [f"{at}.{k}: unknown"]
    return errors


def lost(sent, kept, at=""):
    """Returns what a type has not kept of a value."""
    if isinstance(sent, dict) and isinstance(kept, dict):
        return [e for k, v in sent.items() for e in (lost(v, kept[k], f"{at}.{k}") if k in kept else [f"{at}.{k}: unknown"])]
    if isinstance(sent, list) and isinstance(kept, list) and len(sent) == len(kept):
        return [e for i, v in enumerate(sent) for e in lost(v, kept[i], f"{at}[{i}]")]
    return [] if sent == kept else [f"{at}: {sent!r} is read as {kept!r}"]


def round_trip(kind, value):
    """Reads a value as a model of pydantic and compares what that has kept."""
    read = pydantic.TypeAdapter(kind).validate_python(value)
    return lost(value, json.loads(pydantic.TypeAdapter(kind).dump_json(read, by_alias=True, exclude_unset=True)))


def gemini(body):
    parts = {"contents": list[genai.Content], "systemInstruction": genai.Content, "tools": list[genai.Tool], "toolConfig": genai.ToolConfig,
             "generationConfig": genai.GenerationConfig, "safetySettings": list[genai.SafetySetting]}
    return [e for k, v in body.items() for e in (round_trip(parts[k], v) if k in parts else [f".{k}: unknown"])]


def ollama_request(body, _):
    """Checks messages and options as well, which ChatRequest takes as any mapping."""
    messages = []
    for m in body["messages"]:
        images = [{"value": base64.b64decode(i, validate=True)} for i in m.get("images", [])]
        # The types of the server have ids, those of the package do not.
        calls = [{k: v for k, v in c.items() if k != "id"} for c in m.get("tool_calls", [])]
        messages.append({k: v for k, v in m.items() if k not in ("images", "tool_calls", "tool_call_id")} | ({"tool_calls": calls} if calls else {}))
        pydantic.TypeAdapter(list[ollama.Image]).validate_python(images)
    return round_trip(ollama.ChatRequest, body) + round_trip(list[ollama.Message], messages) + round_trip(ollama.Options, body.get("options", {}))


def converse_value(shape, value):
    """Decodes the bytes of a JSON value, which botocore gets as such."""
    if shape.type_name == "structure" and isinstance(value, dict) and not getattr(shape, "document_type", False):
        return {k: converse_value(shape.members[k], v) if k in shape.members else v for k, v in value.items()}
    if shape.type_name == "list" and isinstance(value, list):
        return [converse_value(shape.member, v) for v in value]
    return base64.b64decode(value) if shape.type_name == "blob" else value


@functools.cache
def aws_operation(service, operation):
    return botocore.session.get_session().get_service_model(service).operation_model(operation)


def aws(service, operation):
    """Checks a body as botocore checks the parameters of an operation, and that botocore sends the same body."""
    def run(body, path):
        model = aws_operation(service, operation)
        values = converse_value(model.input_shape, body)
        uri = model.http["requestUri"]
        if "{modelId}" in uri:
            values["modelId"] = urllib.parse.unquote(path.removeprefix("/model/").rsplit("/", 1)[0])
        report = botocore.validate.ParamValidator().validate(values, model.input_shape)
        if report.has_errors():
            return [report.generate_report()]
        serialized = botocore.serialize.create_serializer(model.metadata["protocol"]).serialize_to_request(values, model)
        errors = [] if serialized["url_path"] == path else [f"path {path}, botocore has {serialized['url_path']}"]
        return errors + lost(body, json.loads(serialized["body"])) + lost(json.loads(serialized["body"]), body)
    return run


def aws_response(service, operation):
    def run(body, _):
        shape = aws_operation(service, operation).output_shape
        report = botocore.validate.ParamValidator().validate(converse_value(shape, body), shape)
        return [report.generate_report()] if report.has_errors() else []
    return run


def typed(kind):
    return lambda body, _: check(kind, body)


def read(kind):
    return lambda body, _: round_trip(kind, body)


def on_vertex(body, _):
    """Messages of Anthropic on Vertex AI: the model is in the address, the version in the body."""
    version = body.pop("anthropic_version", None)
    return check(anthropic.message_create_params.MessageCreateParams, {"model": "claude", **body}) + \
        ([] if version == "vertex-2023-10-16" else [f".anthropic_version: {version!r}"])


CHECKS = {
    ("openai", "request"): typed(openai_chat.completion_create_params.CompletionCreateParams),
    ("openai", "response"): read(openai_chat.ChatCompletion),
    ("openai", "embeddings"): typed(openai.EmbeddingCreateParams),
    ("responses", "request"): typed(openai_responses.response_create_params.ResponseCreateParams),
    ("anthropic", "request"): typed(anthropic.message_create_params.MessageCreateParams),
    ("anthropic", "response"): read(anthropic.Message),
    ("anthropic on Vertex AI", "request"): on_vertex,
    ("gemini", "request"): lambda body, _: gemini(body),
    ("gemini", "response"): read(genai.GenerateContentResponse),
    ("mistral", "request"): read(mistral.ChatCompletionRequest),
    ("mistral", "response"): read(mistral.ChatCompletionResponse),
    ("mistral", "embeddings"): read(mistral.EmbeddingRequest),
    ("ollama", "request"): ollama_request,
    ("ollama", "response"): read(ollama.ChatResponse),
    ("ollama", "embeddings"): read(ollama.EmbedRequest),
    ("converse", "request"): aws("bedrock-runtime", "Converse"),
    ("converse", "stream"): aws("bedrock-runtime", "ConverseStream"),
    ("converse", "response"): aws_response("bedrock-runtime", "Converse"),
}


def main():
    warnings.simplefilter("ignore")  # of words that a type does not list, such as a reason for the end
    out = []
    for case in json.load(sys.stdin):
        try:
            out.append(CHECKS[case["types"], case["kind"]](case["body"], case.get("path", "")))
        except pydantic.ValidationError as e:
            out.append([f"{'.'.join(map(str, x['loc']))}: {x['msg']}" for x in e.errors()])
    json.dump(out, sys.stdout)


main()
