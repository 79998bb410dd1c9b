package schema

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/qtype-dev/qtype/internal/typeschema"
	"github.com/qtype-dev/qtype/spec"
)

// member abbreviates schemas.
func member(name string, v any) typeschema.Member { return typeschema.Member{Name: name, Value: v} }

// OpenAPI returns the OpenAPI 3.1 description of a server for the flows of an application.
func OpenAPI(app *spec.Application, flows []*Flow) []byte {
	s := typeschema.New(typeschema.Style{Refs: "#/components/schemas/", Clients: true})
	paths := object{}
	var schemas object
	for _, f := range flows {
		request, result := f.ID()+"Request", f.ID()+"Result"
		schemas = append(schemas, member(request, f.request(s)), member(result, f.result(s)), member(f.ID()+"Response", responseSchema(result)))
		paths = append(paths, member("/flows/"+f.ID(), object{member("post", f.operation())}))
		if f.Interface() != "" {
			paths = append(paths, f.streamPaths()...)
		}
	}
	schemas = append(schemas, s.Defs()...)
	for _, shared := range []struct{ paths, schemas object }{{commonPaths(), commonSchemas()}, {sessionPaths(), sessionSchemas()}, {feedbackPaths(), nil}, {openAIPaths(), openAISchemas()}} {
		paths, schemas = append(paths, shared.paths...), append(schemas, shared.schemas...)
	}
	doc := object{
		member("openapi", "3.1.0"),
		member("info", object{member("title", app.ID), member("description", app.Description), member("version", "1.0.0")}),
		member("servers", []object{{member("url", "./"), member("description", "This server")}}),
		member("tags", []object{{member("name", "flows")}, {member("name", "runs")}, {member("name", "sessions")}, {member("name", "openai")}, {member("name", "server")}}),
		member("paths", paths),
		member("components", object{member("schemas", schemas), member("securitySchemes", object{
			member("bearer", object{member("type", "http"), member("scheme", "bearer")}),
			member("key", object{member("type", "apiKey"), member("in", "header"), member("name", "X-API-Key")}),
		})}),
		member("security", []object{{}, {member("bearer", []string{})}, {member("key", []string{})}}),
	}
	raw, err := json.MarshalIndent(doc, "", "  ")
	if err != nil { // objects, lists and texts always encode
		return []byte("{}")
	}
	return append(raw, '\n')
}

// ref returns a reference to a schema of the document.
func ref(name string) object { return object{member("$ref", "#/components/schemas/"+name)} }

func jsonContent(schema any) object {
	return object{member("application/json", object{member("schema", schema)})}
}

// operation describes POST /flows/{id}.
func (f *Flow) operation() object {
	request := ref(f.ID() + "Request")
	body := object{member("anyOf", []any{request, object{member("type", "array"), member("items", request)}})}
	if spec.VariableByID(f.Inputs, "rows") == nil {
		body[0].Value = append(body[0].Value.([]any), f.rowsSchema())
	}
	return object{
		member("operationId", "run_"+f.ID()), member("tags", []string{"flows"}), member("summary", "Run "+f.ID()), member("description", f.Spec.Description),
		member("parameters", []object{
			header("X-Session-Id", "The conversation; a new one without it.", "", 256),
			header("Idempotency-Key", "A request with the same key is run once.", "^[!-~]*$", 255),
			{member("name", "Prefer"), member("in", "header"), member("required", false), member("description", "respond-async returns the run instead of its result."),
				member("schema", object{member("type", "string")})},
		}),
		member("requestBody", object{member("required", true), member("content", jsonContent(body))}),
		member("responses", responses(object{
			member("200", response("The results of the rows", jsonContent(ref(f.ID()+"Response")))),
			member("202", response("The run, which has not ended", jsonContent(ref("Run")))),
		}, 400, 401, 403, 404, 409, 413, 415, 422, 429, 500, 503)),
	}
}

// rowsSchema describes a body with a list of rows.
func (f *Flow) rowsSchema() object {
	batch := object{member("type", "boolean"), member("description", "Calls of models are made in batches of their providers, which cost half as much and take up to a day. It needs the header Prefer: respond-async.")}
	properties := object{member("rows", listOf(ref(f.ID()+"Request"))), member(batchMember, batch)}
	return described(f.ID()+"Rows", properties, []string{"rows"})
}

// streamOperation describes POST /flows/{id}/stream.
func (f *Flow) streamOperation() object {
	body := ref(f.ID() + "Request")
	if f.Conversational() {
		body = f.chatSchema()
	}
	return object{
		member("operationId", "stream_"+f.ID()), member("tags", []string{"flows"}), member("summary", "Stream "+f.ID()),
		member("description", "The UI message stream of the AI SDK, version 1. The body is that of its chat transport, or {\"prompt\": text}."),
		member("requestBody", object{member("required", true), member("content", jsonContent(body))}),
		member("responses", responses(object{
			member("200", response("Server-sent events", object{member("text/event-stream", object{})})),
		}, 400, 401, 403, 404, 409, 413, 415, 422, 429, 500, 503)),
	}
}

// streamPaths describes the streams of a flow with an interface.
func (f *Flow) streamPaths() object {
	at := "/flows/" + f.ID()
	paths := object{
		member(at+"/stream", object{member("post", f.streamOperation())}),
		member(at+"/stream/{chat}", object{member("get", path("resume_"+f.ID(), "flows", "Continue the stream of a chat",
			[]object{pathParameter("chat"), lastEventID()}, nil,
			append(eventStream(), member("204", object{member("description", "No run of the chat is active on this server")})), 400, 401, 403, 404, 429, 503))}),
	}
	if f.Conversational() && f.Message != nil {
		paths = append(paths, member(at+"/agui", object{member("post", path("agui_"+f.ID(), "flows", "Talk to "+f.ID()+" by the Agent-User Interaction Protocol", nil,
			aguiSchema(), eventStream(), 400, 401, 403, 404, 409, 413, 415, 422, 429, 503))}))
	}
	return paths
}

// eventStream is the good response of a stream.
func eventStream() object {
	return object{member("200", response("Server-sent events", object{member("text/event-stream", object{})}))}
}

// lastEventID is the header with the newest event that a client has.
func lastEventID() object {
	return header("Last-Event-ID", "The id of the last event that the client has.", "", 256)
}

// aguiSchema describes the body of an AG-UI client, whose documentation describes the rest.
func aguiSchema() object {
	message := described("AGUIMessage", object{
		member("id", typed("string")), member("role", object{member("enum", []string{"user", "assistant", "system", "developer", "tool"})}), member("content", object{}),
	}, []string{"id", "role"})
	resume := append(typed("object"), member("properties", object{member("interruptId", typed("string")), member("status", object{member("enum", []string{"resolved", "cancelled"})})}),
		member("required", []string{"interruptId", "status"}))
	return described("AGUIInput", object{
		member("threadId", sessionID()), member("runId", object{member("type", "string"), member("minLength", 1), member("maxLength", 256)}),
		member("messages", listOf(message)), member("tools", listOf(typed("object"))), member("context", listOf(typed("object"))),
		member("state", object{}), member("forwardedProps", object{}), member("resume", listOf(resume)),
	}, []string{"threadId", "runId", "messages"})
}

// chatSchema describes the body of a chat client: its messages, and the flow's other inputs.
func (f *Flow) chatSchema() object {
	text := object{member("type", "string")}
	part := object{member("anyOf", []object{
		{member("type", "object"), member("properties", object{member("type", object{member("const", "text")}), member("text", text)}), member("required", []string{"type", "text"})},
		{member("type", "object"), member("properties", object{member("type", object{member("const", "file")}), member("mediaType", text), member("filename", object{member("type", []string{"string", "null"})}),
			member("url", object{member("type", "string"), member("pattern", "^data:[a-z]+/[a-z]+;base64,([A-Za-z0-9+/]{4})*$")})}), member("required", []string{"type", "url"})},
	})}
	message := object{member("type", "object"), member("properties", object{
		member("id", text), member("role", object{member("type", "string"), member("enum", []string{"user", "assistant"})}),
		member("parts", object{member("type", "array"), member("minItems", 1), member("items", part)}),
	}), member("required", []string{"role", "parts"})}
	s := typeschema.New(typeschema.Style{Refs: "#/components/schemas/", Clients: true})
	properties := object{
		member("id", object{member("type", "string"), member("maxLength", 256), member("pattern", "^[!-~]*$"), member("description", "the chat, which is the session")}),
		member("messages", object{member("type", "array"), member("minItems", 1), member("items", message)}),
		member("trigger", object{member("enum", []any{"submit-message", "regenerate-message", "", nil})}),
		member("messageId", object{member("type", []string{"string", "null"})}),
	}
	required := []string{"messages"}
	for _, v := range f.Inputs {
		if v == f.Message {
			continue
		}
		properties = append(properties, member(v.ID, annotated(v, f.input(s, v))))
		if !v.IsOptional() {
			required = append(required, v.ID)
		}
	}
	return described(f.ID()+"Chat", properties, required)
}

func header(name, description, pattern string, most int) object {
	schema := object{member("type", "string"), member("maxLength", most)}
	if pattern != "" {
		schema = append(schema, member("pattern", pattern))
	}
	return object{member("name", name), member("in", "header"), member("required", false), member("description", description), member("schema", schema)}
}

func response(description string, content object) object {
	return object{member("description", description), member("content", content)}
}

// responses adds the problems that an operation may answer.
func responses(good object, problems ...int) object {
	for _, status := range problems {
		good = append(good, member(strconv.Itoa(status), response("A problem", object{member("application/problem+json", object{member("schema", ref("Problem"))})})))
	}
	return good
}

func responseSchema(result string) object {
	return described(result+"s", object{
		member("run", object{member("type", "string")}),
		member("errors", object{member("type", "array"), member("items", ref("RowError"))}),
		member("outputs", object{member("type", "array"), member("items", ref(result))}),
	}, []string{"run", "errors", "outputs"})
}

// path describes a resource that is the same for all applications.
func path(id, tag, summary string, parameters []object, body any, good object, problems ...int) object {
	o := object{member("operationId", id), member("tags", []string{tag}), member("summary", summary)}
	if len(parameters) > 0 {
		o = append(o, member("parameters", parameters))
	}
	if body != nil {
		o = append(o, member("requestBody", object{member("required", true), member("content", jsonContent(body))}))
	}
	return append(o, member("responses", responses(good, problems...)))
}

func pathParameter(name string) object {
	return object{member("name", name), member("in", "path"), member("required", true), member("schema", object{member("type", "string"), member("minLength", 1)})}
}

func queryParameter(name string, schema object) object {
	return object{member("name", name), member("in", "query"), member("required", false), member("schema", schema)}
}

// commonPaths describes the resources that are the same for all applications.
func commonPaths() object {
	text := object{member("type", "string")}
	anything := object{member("type", "object")}
	run := response("The run", jsonContent(ref("Run")))
	limit := object{member("type", "integer"), member("minimum", 1), member("maximum", 500)}
	return object{
		member("/flows", object{member("get", path("list_flows", "flows", "List the flows", nil, nil,
			object{member("200", response("The flows", jsonContent(object{member("type", "array"), member("items", anything)})))}, 401, 429))}),
		member("/flows/{flow}/graph", object{member("get", path("get_graph", "flows", "The steps of a flow", []object{pathParameter("flow")}, nil,
			object{member("200", response("The graph", jsonContent(anything)))}, 401, 403, 404, 429))}),
		member("/runs", object{member("get", path("list_runs", "runs", "List the runs of the caller",
			[]object{queryParameter("flow", text), queryParameter("session", text), queryParameter("status", text), queryParameter("limit", limit), queryParameter("cursor", text)}, nil,
			object{member("200", response("The runs", jsonContent(anything)))}, 400, 401, 429))}),
		member("/runs/{run}", object{member("get", path("get_run", "runs", "The state of a run", []object{pathParameter("run")}, nil,
			object{member("200", run)}, 401, 404, 429, 503))}),
		member("/runs/{run}/events", object{member("get", path("follow_run", "runs", "Follow the events of a run",
			[]object{pathParameter("run"), queryParameter("from", object{member("type", "integer"), member("minimum", 0)}), lastEventID()}, nil,
			eventStream(), 400, 401, 404, 429, 503))}),
		member("/runs/{run}/trace", object{member("get", path("get_trace", "runs", "The spans of a run", []object{pathParameter("run")}, nil,
			object{member("200", response("The spans", jsonContent(anything)))}, 401, 404, 429, 503))}),
		member("/runs/{run}/answer", object{member("post", path("answer_run", "runs", "Answer a request of a run", []object{pathParameter("run")}, ref("Answer"),
			object{member("200", run)}, 400, 401, 403, 404, 409, 413, 415, 422, 429, 503))}),
		member("/approvals", object{member("get", path("list_approvals", "runs", "List the calls that the caller may decide about by a role", nil, nil,
			object{member("200", response("The calls", jsonContent(anything)))}, 401, 429, 503))}),
		member("/approvals/{run}", object{member("post", path("decide", "runs", "Decide about a call of a run", []object{pathParameter("run")}, ref("Answer"),
			object{member("200", response("The decision", jsonContent(anything)))}, 400, 401, 403, 404, 409, 413, 415, 422, 429, 503))}),
		member("/runs/{run}/cancel", object{member("post", path("cancel_run", "runs", "Cancel a run", []object{pathParameter("run")}, nil,
			object{member("202", run)}, 401, 404, 429, 503))}),
		member("/app", object{member("get", path("get_app", "server", "The application", nil, nil,
			object{member("200", response("The application", jsonContent(anything)))}, 401, 429))}),
		member("/healthz", object{member("get", path("get_health", "server", "Whether the process can answer", nil, nil,
			object{member("200", response("It can", jsonContent(anything)))}))}),
		member("/readyz", object{member("get", path("get_readiness", "server", "Whether the server accepts runs", nil, nil,
			object{member("200", response("It does", jsonContent(anything)))}, 503))}),
	}
}

// commonSchemas are the schemas that are the same for all applications.
func commonSchemas() object {
	text, number := object{member("type", "string")}, object{member("type", "integer")}
	list := func(items object) object { return object{member("type", "array"), member("items", items)} }
	record := object{member("type", "object")}
	return object{
		member("RowError", described("RowError", object{
			member("row", number), member("step_id", text), member("error_message", text), member("exception_type", text),
		}, []string{"row", "step_id", "error_message", "exception_type"})),
		member("Run", described("Run", object{
			member("id", text), member("flow", text), member("session", text),
			member("status", object{member("type", "string"), member("enum", []string{"running", "waiting", "succeeded", "failed", "cancelled"})}),
			member("created", text), member("updated", text), member("rows", record), member("pending", list(record)),
			member("batch", batchSchema()), member("error", text), member("errors", list(ref("RowError"))), member("outputs", list(record)),
		}, []string{"id", "flow", "session", "status", "created", "updated", "rows", "pending", "errors", "outputs"})),
		member("Answer", append(described("Answer", object{
			member("id", object{member("type", "string"), member("minLength", 1)}), member("approved", object{member("type", "boolean")}),
			member("reason", text), member("result", object{}), member("error", text),
		}, []string{"id"}), member("additionalProperties", false))),
		member("Problem", described("Problem", object{
			member("status", number), member("code", text), member("title", text), member("detail", text),
			member("errors", list(object{member("type", "object"), member("properties", object{member("pointer", text), member("detail", text)})})),
		}, []string{"status", "code", "title"})),
	}
}

// batchSchema describes what a run whose calls are made in batches waits for.
func batchSchema() object {
	return described("RunBatch", object{
		member("wave", typed("integer")), member("gathered", typed("integer")), member("calls", typed("integer")), member("batches", typed("integer")),
		member("expected", typed("string")), member("cost", typed("number")), member("saved", typed("number")),
	}, []string{"wave", "gathered", "calls", "batches", "cost", "saved"})
}

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
	feedback := described("GivenFeedback", append(answerProperties(), member("verdict", object{member("enum", []string{"up", "down"})}), member("memory", typed("string")),
		member("turn", typed("integer")), member("run", typed("string")), member("time", typed("string"))), []string{"type", "memory", "turn", "time"})
	return object{
		member("Session", described("Session", object{
			member("id", typed("string")), member("title", typed("string")), member("flow", typed("string")), member("created", typed("string")), member("updated", typed("string")),
			member("memories", listOf(memory)), member("run", nullableText()), member("feedback", listOf(feedback)),
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

// answerProperties are what a user says of an answer.
func answerProperties() object {
	return object{member("type", object{member("enum", []string{"thumbs", "rating", "category"})}), member("value", typed("boolean")),
		member("score", object{member("type", "number")}), member("categories", listOf(typed("string"))), member("explanation", typed("string"))}
}

// feedbackPaths describes the feedback on answers.
func feedbackPaths() object {
	answer := closed("FeedbackAnswer", answerProperties(), []string{"type"})
	body := described("Feedback", object{
		member("run", typed("string")), member("session", typed("string")), member("memory", typed("string")), member("turn", typed("integer")), member("trace_id", typed("string")), member("span_id", typed("string")), member("explanation", typed("string")), member("feedback", answer),
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
