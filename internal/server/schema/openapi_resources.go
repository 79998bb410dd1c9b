package schema

import (
	"slices"
	"strconv"
)

// typed is a schema with only a type.
func typed(name string) object { return object{member("type", name)} }

// nullableText is the schema of a text or null.
func nullableText() object { return object{member("type", []string{"string", "null"})} }

// sessionID is the schema of the id of a session.
func sessionID() object {
	return object{member("type", "string"), member("minLength", 1), member("maxLength", 256), member("pattern", "^[!-~]*$")}
}

func listOf(items any) object { return object{member("type", "array"), member("items", items)} }

// closed is an object without other members.
func closed(name string, properties object, required []string) object {
	return append(described(name, properties, required), member("additionalProperties", false))
}

// sessionPaths describes the stored conversations.
func sessionPaths() object {
	id := []object{pathParameter("session")}
	ofMemory := slices.Concat(id, []object{queryParameter("memory", typed("string"))})
	message := slices.Concat(ofMemory, []object{pathParameter("message")})
	one := object{member("200", response("The session", jsonContent(ref("Session"))))}
	made := object{member("201", response("The new session", jsonContent(ref("Session"))))}
	limit := queryParameter("limit", object{member("type", "integer"), member("minimum", 1), member("maximum", 200)})
	searched := queryParameter("search", object{member("type", "string"), member("minLength", 1)})
	imported := path("import_session", "sessions", "Store a conversation that was exported",
		[]object{queryParameter("flow", typed("string")), queryParameter("memory", typed("string")), queryParameter("id", sessionID())}, nil, made,
		400, 401, 404, 409, 413, 415, 422, 429, 503)
	imported = append(imported, member("requestBody", object{member("required", true), member("content", object{member("application/octet-stream", object{})})}))
	exported := object{member("200", response("The messages as JSON lines", object{member("application/jsonl", object{})}))}
	return object{
		member("/sessions", object{member("get", path("list_sessions", "sessions", "List the sessions of the caller, those used last first",
			[]object{queryParameter("flow", typed("string")), queryParameter("q", typed("string")), limit, queryParameter("cursor", typed("string"))}, nil,
			object{member("200", response("The sessions", jsonContent(ref("SessionList"))))}, 400, 401, 429, 503))}),
		member("/sessions/import", object{member("post", imported)}),
		member("/sessions/{session}", object{
			member("get", path("get_session", "sessions", "A session", id, nil, one, 401, 404, 429, 503)),
			member("patch", path("rename_session", "sessions", "Rename a session", id,
				closed("Rename", object{member("title", typed("string"))}, []string{"title"}), one, 400, 401, 403, 404, 409, 413, 415, 422, 429, 503)),
			member("delete", path("delete_session", "sessions", "Delete a session", id, nil,
				object{member("204", object{member("description", "It was deleted")})}, 401, 404, 409, 429, 503)),
		}),
		member("/sessions/messages", object{member("get", path("search_messages", "sessions", "Messages of all sessions of the caller that fit a text, the best first",
			[]object{{member("name", "search"), member("in", "query"), member("required", true), member("schema", object{member("type", "string"), member("minLength", 1)})}, queryParameter("memory", typed("string")), limit}, nil,
			object{member("200", response("The messages", jsonContent(ref("FoundMessages"))))}, 400, 401, 404, 429, 503))}), // 404: without search it is the session "messages"
		member("/sessions/{session}/messages", object{member("get", path("list_messages", "sessions", "The messages of a session; with search, those that fit a text, the best first",
			append(ofMemory[:2:2], searched, queryParameter("before", object{member("type", "integer"), member("minimum", 1)}), limit), nil,
			object{member("200", response("The messages", jsonContent(object{member("anyOf", []object{typed("object"), ref("FoundMessages")})})))}, 400, 401, 404, 429, 503))}),
		member("/sessions/{session}/messages/{message}", object{
			member("patch", path("edit_message", "sessions", "Give a message another text", message,
				closed("EditMessage", object{member("text", typed("string"))}, []string{"text"}), one, 400, 401, 404, 409, 413, 415, 422, 429, 503)),
			member("delete", path("delete_message", "sessions", "Remove a message from the conversation", message, nil, one, 400, 401, 403, 404, 409, 422, 429, 503)),
		}),
		member("/sessions/{session}/context", object{member("get", path("get_context", "sessions", "What the next call of the model sends", ofMemory, nil,
			object{member("200", response("The context", jsonContent(typed("object"))))}, 400, 401, 404, 429, 503))}),
		member("/sessions/{session}/fork", object{member("post", path("fork_session", "sessions", "Copy the turns up to one to a new session", id,
			closed("Fork", object{member("turn", typed("integer")), member("id", sessionID())}, []string{"turn"}), made, 400, 401, 404, 409, 413, 415, 422, 429, 503))}),
		member("/sessions/{session}/rewind", object{member("post", path("rewind_session", "sessions", "Undo a turn and those after it, or those after the turn keep", id,
			append(closed("Rewind", object{member("turn", typed("integer")), member("keep", typed("integer"))}, []string{}), member("minProperties", 1), member("maxProperties", 1)), one, 400, 401, 404, 409, 413, 415, 422, 429, 503))}),
		member("/sessions/{session}/test", object{member("get", path("test_session", "sessions", "A test of the conversation up to a turn, from a server on loopback without authentication",
			append(ofMemory[:2:2], queryParameter("turn", object{member("type", "integer"), member("minimum", 1)})), nil,
			object{member("200", response("The test", object{member("application/yaml", object{member("schema", typed("string"))})}))}, 400, 401, 404, 409, 429, 503))}),
		member("/sessions/{session}/export", object{member("get", path("export_session", "sessions", "The messages of a session, for import",
			ofMemory, nil, exported, 400, 401, 404, 429, 503))}),
	}
}

// sessionSchemas are the schemas of sessionPaths.
func sessionSchemas() object {
	memory := described("SessionMemory", object{
		member("id", typed("string")), member("policy", typed("string")), member("messages", typed("integer")), member("in_window", typed("integer")), member("used", typed("integer")),
		member("limit", typed("integer")), member("unit", typed("string")), member("tokens", typed("integer")), member("flushes", typed("integer")), member("turns", typed("integer")),
	}, []string{"id", "policy", "messages", "in_window", "used", "limit", "unit", "tokens", "flushes", "turns"})
	return object{
		member("Session", described("Session", object{
			member("id", typed("string")), member("title", typed("string")), member("flow", typed("string")), member("created", typed("string")), member("updated", typed("string")),
			member("memories", listOf(memory)), member("run", nullableText()),
			member("not_undone", listOf(described("ToolEffect", object{member("tool", typed("string")), member("arguments", typed("string")), member("step", typed("string"))}, []string{"tool", "arguments"}))),
		}, []string{"id", "title", "flow", "created", "updated", "memories", "run"})),
		member("FoundMessages", described("FoundMessages", object{
			member("messages", listOf(described("FoundMessage", object{
				member("session", typed("string")), member("id", typed("string")), member("seq", typed("integer")), member("turn", typed("integer")), member("time", typed("string")),
				member("role", typed("string")), member("name", typed("string")), member("content", typed("string")), member("passage", typed("string")), member("score", typed("number")),
			}, []string{"session", "id", "seq", "turn", "time", "role", "content", "score"}))),
			member("problem", nullableText()),
		}, []string{"messages", "problem"})),
		member("SessionList", described("SessionList", object{
			member("sessions", listOf(described("ListedSession", object{
				member("id", typed("string")), member("title", typed("string")), member("flow", typed("string")), member("messages", typed("integer")), member("updated", typed("string")),
				member("memories", listOf(typed("string"))),
			}, []string{"id", "title", "flow", "messages", "updated", "memories"}))),
			member("next", nullableText()),
		}, []string{"sessions", "next"})),
	}
}

// feedbackPaths describes the feedback on answers.
func feedbackPaths() object {
	answer := closed("FeedbackAnswer", object{
		member("type", object{member("enum", []string{"thumbs", "rating", "category"})}), member("value", typed("boolean")),
		member("score", object{member("type", "number")}), member("categories", listOf(typed("string"))), member("explanation", typed("string")),
	}, []string{"type"})
	body := described("Feedback", object{
		member("run", typed("string")), member("trace_id", typed("string")), member("span_id", typed("string")), member("explanation", typed("string")), member("feedback", answer),
	}, []string{"feedback"})
	return object{member("/feedback", object{member("post", path("send_feedback", "server", "Rate an answer", nil, body,
		object{member("200", response("It was stored", jsonContent(typed("object"))))}, 400, 401, 403, 404, 413, 415, 422, 429, 502, 503))})}
}

// openAIPaths describes the resources of OpenAI's API, whose documentation describes their
// bodies; here are the parameters that the server needs.
func openAIPaths() object {
	text := typed("string")
	model := append(typed("string"), member("minLength", 1))
	message := described("ChatMessageParam", object{member("role", text), member("content", object{})}, []string{"role"})
	chat := described("ChatCompletionRequest", object{
		member("model", model), member("messages", object{member("type", "array"), member("minItems", 1), member("items", message)}), member("stream", typed("boolean")),
	}, []string{"model", "messages"})
	input := object{member("anyOf", []object{text, listOf(typed("object"))})}
	respond := described("ResponseRequest", object{member("model", model), member("input", input), member("stream", typed("boolean"))}, []string{"model", "input"})
	embed := described("EmbeddingRequest", object{member("model", model), member("input", object{member("anyOf", []object{text, listOf(text)})})}, []string{"model", "input"})
	models := []object{pathParameter("model")}
	return object{
		member("/v1/chat/completions", object{member("post", openAIOperation("create_chat_completion", "Answer a conversation with a flow", chat, true))}),
		member("/v1/responses", object{member("post", openAIOperation("create_response", "Answer with a flow", respond, true))}),
		member("/v1/embeddings", object{member("post", openAIOperation("create_embeddings", "Embed texts with an embedding model", embed, false))}),
		member("/v1/models", object{member("get", openAIOperation("list_models", "The conversational flows and the embedding models", nil, false))}),
		member("/v1/models/{model}", object{member("get", append(openAIOperation("get_model", "One of them", nil, false), member("parameters", models)))}),
	}
}

func openAIOperation(id, summary string, body any, streams bool) object {
	o := object{member("operationId", id), member("tags", []string{"openai"}), member("summary", summary)}
	if body != nil {
		o = append(o, member("requestBody", object{member("required", true), member("content", jsonContent(body))}))
	}
	content := jsonContent(typed("object"))
	if streams {
		content = append(content, member("text/event-stream", object{}))
	}
	answers := object{member("200", response("The answer", content))}
	for _, status := range []int{400, 401, 403, 404, 409, 413, 415, 422, 429, 500, 502, 503, 504} {
		answers = append(answers, member(strconv.Itoa(status), response("An error", jsonContent(ref("OpenAIError")))))
	}
	return append(o, member("responses", answers))
}

// openAISchemas are the schemas of openAIPaths.
func openAISchemas() object {
	failure := described("OpenAIErrorDetail", object{
		member("message", typed("string")), member("type", typed("string")), member("param", nullableText()), member("code", nullableText()),
	}, []string{"message", "type", "param", "code"})
	return object{member("OpenAIError", described("OpenAIError", object{member("error", failure)}, []string{"error"}))}
}
