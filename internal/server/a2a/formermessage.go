package a2a

import (
	"context"
	"encoding/base64"
	"errors"
	"iter"
	"maps"
	"strings"

	former "github.com/a2aproject/a2a-go/a2a"
	sdk "github.com/a2aproject/a2a-go/v2/a2a"
)

// wrappedData is the member of the metadata of a data part whose data is not an object, which
// formerVersion requires: the value is in the member "value" of an object.
const wrappedData = "data_part_compat"

// formerStates maps the states of tasks: the names in formerVersion are shorter.
var formerStates = map[sdk.TaskState]former.TaskState{
	sdk.TaskStateWorking:       former.TaskStateWorking,
	sdk.TaskStateInputRequired: former.TaskStateInputRequired,
	sdk.TaskStateCompleted:     former.TaskStateCompleted,
	sdk.TaskStateFailed:        former.TaskStateFailed,
	sdk.TaskStateCanceled:      former.TaskStateCanceled,
}

// formerEvent converts an event of a stream; nil for one that formerVersion does not have.
func formerEvent(event sdk.Event) former.Event {
	switch e := event.(type) {
	case *sdk.Message:
		return formerMessage(e)
	case *sdk.Task:
		return formerTask(e)
	case *sdk.TaskStatusUpdateEvent:
		final := e.Status.State.Terminal() || e.Status.State == sdk.TaskStateInputRequired
		return &former.TaskStatusUpdateEvent{TaskID: former.TaskID(e.TaskID), ContextID: e.ContextID, Final: final,
			Status: formerStatus(e.Status), Metadata: e.Metadata}
	case *sdk.TaskArtifactUpdateEvent:
		return &former.TaskArtifactUpdateEvent{TaskID: former.TaskID(e.TaskID), ContextID: e.ContextID, Append: e.Append,
			LastChunk: e.LastChunk, Artifact: formerArtifact(e.Artifact), Metadata: e.Metadata}
	}
	return nil
}

func formerTask(t *sdk.Task) *former.Task {
	out := &former.Task{ID: former.TaskID(t.ID), ContextID: t.ContextID, Status: formerStatus(t.Status), Metadata: t.Metadata}
	for _, a := range t.Artifacts {
		out.Artifacts = append(out.Artifacts, formerArtifact(a))
	}
	for _, m := range t.History {
		out.History = append(out.History, formerMessage(m))
	}
	return out
}

func formerStatus(s sdk.TaskStatus) former.TaskStatus {
	return former.TaskStatus{State: formerStates[s.State], Message: formerMessage(s.Message), Timestamp: s.Timestamp}
}

func formerArtifact(a *sdk.Artifact) *former.Artifact {
	return &former.Artifact{ID: former.ArtifactID(a.ID), Name: a.Name, Description: a.Description, Extensions: a.Extensions,
		Metadata: a.Metadata, Parts: formerParts(a.Parts)}
}

// formerMessage converts a message of the agent or of a user; nil for nil.
func formerMessage(m *sdk.Message) *former.Message {
	if m == nil {
		return nil
	}
	out := &former.Message{ID: m.ID, ContextID: m.ContextID, TaskID: former.TaskID(m.TaskID), Role: former.MessageRoleAgent,
		Extensions: m.Extensions, Metadata: m.Metadata, Parts: formerParts(m.Parts)}
	if m.Role == sdk.MessageRoleUser {
		out.Role = former.MessageRoleUser
	}
	for _, id := range m.ReferenceTasks {
		out.ReferenceTasks = append(out.ReferenceTasks, former.TaskID(id))
	}
	return out
}

func formerParts(parts sdk.ContentParts) former.ContentParts {
	out := make(former.ContentParts, len(parts))
	for i, p := range parts {
		out[i] = formerPart(p)
	}
	return out
}

func formerPart(p *sdk.Part) former.Part {
	meta := former.FileMeta{MimeType: p.MediaType, Name: p.Filename}
	switch v := p.Content.(type) {
	case sdk.Text:
		return former.TextPart{Text: string(v), Metadata: p.Metadata}
	case sdk.Raw:
		return former.FilePart{File: former.FileBytes{FileMeta: meta, Bytes: base64.StdEncoding.EncodeToString(v)}, Metadata: p.Metadata}
	case sdk.URL:
		return former.FilePart{File: former.FileURI{FileMeta: meta, URI: string(v)}, Metadata: p.Metadata}
	case sdk.Data:
		if data, ok := v.Value.(map[string]any); ok {
			return former.DataPart{Data: data, Metadata: p.Metadata}
		}
		metadata := map[string]any{}
		maps.Copy(metadata, p.Metadata)
		metadata[wrappedData] = true
		return former.DataPart{Data: map[string]any{"value": v.Value}, Metadata: metadata}
	}
	return former.TextPart{Metadata: p.Metadata}
}

// currentRequest converts the parameters of a call that sends a message.
func currentRequest(p *former.MessageSendParams) (*sdk.SendMessageRequest, error) {
	req := &sdk.SendMessageRequest{Metadata: p.Metadata}
	if c := p.Config; c != nil {
		req.Config = &sdk.SendMessageConfig{AcceptedOutputModes: c.AcceptedOutputModes, HistoryLength: c.HistoryLength,
			ReturnImmediately: c.Blocking != nil && !*c.Blocking}
		if c.PushConfig != nil {
			req.Config.PushConfig = &sdk.PushConfig{URL: c.PushConfig.URL}
		}
	}
	m := p.Message
	if m == nil {
		return req, nil
	}
	req.Message = &sdk.Message{ID: m.ID, ContextID: m.ContextID, TaskID: sdk.TaskID(m.TaskID), Extensions: m.Extensions, Metadata: m.Metadata}
	switch m.Role {
	case former.MessageRoleUser:
		req.Message.Role = sdk.MessageRoleUser
	case former.MessageRoleAgent:
		req.Message.Role = sdk.MessageRoleAgent
	}
	for _, id := range m.ReferenceTasks {
		req.Message.ReferenceTasks = append(req.Message.ReferenceTasks, sdk.TaskID(id))
	}
	for i, part := range m.Parts {
		converted, err := currentPart(part)
		if err != nil {
			return nil, invalid("part %d: %s", i, err)
		}
		req.Message.Parts = append(req.Message.Parts, converted)
	}
	return req, nil
}

// currentPart converts a part of a message of a client.
func currentPart(p former.Part) (*sdk.Part, error) {
	out := &sdk.Part{Metadata: p.Meta()}
	switch v := p.(type) {
	case former.TextPart:
		out.Content = sdk.Text(v.Text)
	case former.DataPart:
		out.Content = sdk.Data{Value: v.Data}
		if wrapped, _ := v.Metadata[wrappedData].(bool); wrapped {
			out.Content = sdk.Data{Value: v.Data["value"]}
			out.Metadata = maps.Clone(v.Metadata)
			delete(out.Metadata, wrappedData)
		}
	case former.FilePart:
		switch f := v.File.(type) {
		case former.FileBytes:
			data, err := base64.StdEncoding.DecodeString(f.Bytes)
			if err != nil {
				return nil, err
			}
			out.Content, out.MediaType, out.Filename = sdk.Raw(data), f.MimeType, f.Name
		case former.FileURI:
			out.Content, out.MediaType, out.Filename = sdk.URL(f.URI), f.MimeType, f.Name
		}
	}
	return out, nil
}

// formerCard returns the card of an agent in formerVersion.
func formerCard(c *sdk.AgentCard) *former.AgentCard {
	out := &former.AgentCard{
		Name: c.Name, Description: c.Description, Version: c.Version, ProtocolVersion: formerVersion,
		Capabilities:                      former.AgentCapabilities{Streaming: c.Capabilities.Streaming},
		DefaultInputModes:                 c.DefaultInputModes,
		DefaultOutputModes:                c.DefaultOutputModes,
		Skills:                            []former.AgentSkill{},
		SupportsAuthenticatedExtendedCard: c.Capabilities.ExtendedAgentCard,
	}
	for _, i := range c.SupportedInterfaces {
		if string(i.ProtocolVersion) == formerVersion {
			out.URL, out.PreferredTransport = i.URL, former.TransportProtocol(i.ProtocolBinding)
		}
	}
	for _, s := range c.Skills {
		out.Skills = append(out.Skills, former.AgentSkill{ID: s.ID, Name: s.Name, Description: s.Description, Tags: s.Tags,
			Examples: s.Examples, InputModes: s.InputModes, OutputModes: s.OutputModes})
	}
	for _, alternative := range c.SecurityRequirements {
		required := former.SecurityRequirements{}
		for name, scopes := range alternative {
			required[former.SecuritySchemeName(name)] = former.SecuritySchemeScopes(scopes)
		}
		out.Security = append(out.Security, required)
	}
	for name, scheme := range c.SecuritySchemes {
		if out.SecuritySchemes == nil {
			out.SecuritySchemes = former.NamedSecuritySchemes{}
		}
		out.SecuritySchemes[former.SecuritySchemeName(name)] = formerScheme(scheme)
	}
	return out
}

// formerScheme converts the kinds of credentials that secure declares.
func formerScheme(scheme sdk.SecurityScheme) former.SecurityScheme {
	switch s := scheme.(type) {
	case sdk.APIKeySecurityScheme:
		return former.APIKeySecurityScheme{Name: s.Name, In: former.APIKeySecuritySchemeIn(strings.ToLower(string(s.Location))), Description: s.Description}
	case sdk.HTTPAuthSecurityScheme:
		return former.HTTPAuthSecurityScheme{Scheme: s.Scheme, BearerFormat: s.BearerFormat, Description: s.Description}
	}
	return former.HTTPAuthSecurityScheme{Scheme: "Bearer"}
}

// formerVersion is the version of the protocol before 1.0. Its handler is the SDK's handler
// for that version: the compatibility package of the SDK for 1.0 imports gRPC.
const formerVersion = "0.3"

// formerRequests handles the calls of a client of formerVersion by those of today.
type formerRequests struct{ requests *requests }

// formerErrors maps the errors of the protocol to those of formerVersion.
var formerErrors = []struct{ current, former error }{
	{sdk.ErrParseError, former.ErrParseError},
	{sdk.ErrInvalidRequest, former.ErrInvalidRequest},
	{sdk.ErrMethodNotFound, former.ErrMethodNotFound},
	{sdk.ErrInvalidParams, former.ErrInvalidParams},
	{sdk.ErrInternalError, former.ErrInternalError},
	{sdk.ErrServerError, former.ErrServerError},
	{sdk.ErrTaskNotFound, former.ErrTaskNotFound},
	{sdk.ErrTaskNotCancelable, former.ErrTaskNotCancelable},
	{sdk.ErrPushNotificationNotSupported, former.ErrPushNotificationNotSupported},
	{sdk.ErrUnsupportedOperation, former.ErrUnsupportedOperation},
	{sdk.ErrUnsupportedContentType, former.ErrUnsupportedContentType},
	{sdk.ErrExtendedCardNotConfigured, former.ErrAuthenticatedExtendedCardNotConfigured},
	{sdk.ErrUnauthenticated, former.ErrUnauthenticated},
	{sdk.ErrUnauthorized, former.ErrUnauthorized},
}

// formerError returns an error of formerVersion with the text of err; nil for nil.
func formerError(err error) error {
	if err == nil {
		return nil
	}
	for _, e := range formerErrors {
		if errors.Is(err, e.current) {
			return former.NewError(e.former, err.Error())
		}
	}
	return former.NewError(former.ErrInternalError, errInternal.Error())
}

// formerResult converts the result of a call that returns a task.
func formerResult(t *sdk.Task, err error) (*former.Task, error) {
	if err != nil {
		return nil, formerError(err)
	}
	return formerTask(t), nil
}

// formerEvents converts the events of a stream.
func formerEvents(events iter.Seq2[sdk.Event, error]) iter.Seq2[former.Event, error] {
	return func(yield func(former.Event, error) bool) {
		for event, err := range events {
			if err != nil {
				yield(nil, formerError(err))
				return
			}
			if converted := formerEvent(event); converted != nil && !yield(converted, nil) {
				return
			}
		}
	}
}

// OnGetTask returns a task.
func (q formerRequests) OnGetTask(ctx context.Context, p *former.TaskQueryParams) (*former.Task, error) {
	return formerResult(q.requests.GetTask(ctx, &sdk.GetTaskRequest{ID: sdk.TaskID(p.ID), HistoryLength: p.HistoryLength}))
}

// OnListTasks is not part of JSON-RPC in formerVersion.
func (q formerRequests) OnListTasks(context.Context, *former.ListTasksRequest) (*former.ListTasksResponse, error) {
	return nil, former.ErrMethodNotFound
}

// OnCancelTask ends a task.
func (q formerRequests) OnCancelTask(ctx context.Context, p *former.TaskIDParams) (*former.Task, error) {
	return formerResult(q.requests.CancelTask(ctx, &sdk.CancelTaskRequest{ID: sdk.TaskID(p.ID), Metadata: p.Metadata}))
}

// OnSendMessage starts or continues a task.
func (q formerRequests) OnSendMessage(ctx context.Context, p *former.MessageSendParams) (former.SendMessageResult, error) {
	req, err := currentRequest(p)
	if err != nil {
		return nil, formerError(err)
	}
	result, err := q.requests.SendMessage(ctx, req)
	if err != nil {
		return nil, formerError(err)
	}
	converted, ok := formerEvent(result).(former.SendMessageResult)
	if !ok {
		return nil, formerError(errInternal)
	}
	return converted, nil
}

// OnSendMessageStream is OnSendMessage with the events of the task.
func (q formerRequests) OnSendMessageStream(ctx context.Context, p *former.MessageSendParams) iter.Seq2[former.Event, error] {
	req, err := currentRequest(p)
	if err != nil {
		return func(yield func(former.Event, error) bool) { yield(nil, formerError(err)) }
	}
	return formerEvents(q.requests.SendStreamingMessage(ctx, req))
}

// OnResubscribeToTask returns the task and its changes.
func (q formerRequests) OnResubscribeToTask(ctx context.Context, p *former.TaskIDParams) iter.Seq2[former.Event, error] {
	return formerEvents(q.requests.SubscribeToTask(ctx, &sdk.SubscribeToTaskRequest{ID: sdk.TaskID(p.ID)}))
}

// OnGetTaskPushConfig is not supported.
func (q formerRequests) OnGetTaskPushConfig(context.Context, *former.GetTaskPushConfigParams) (*former.TaskPushConfig, error) {
	return nil, former.ErrPushNotificationNotSupported
}

// OnListTaskPushConfig is not supported.
func (q formerRequests) OnListTaskPushConfig(context.Context, *former.ListTaskPushConfigParams) ([]*former.TaskPushConfig, error) {
	return nil, former.ErrPushNotificationNotSupported
}

// OnSetTaskPushConfig is not supported.
func (q formerRequests) OnSetTaskPushConfig(context.Context, *former.TaskPushConfig) (*former.TaskPushConfig, error) {
	return nil, former.ErrPushNotificationNotSupported
}

// OnDeleteTaskPushConfig is not supported.
func (q formerRequests) OnDeleteTaskPushConfig(context.Context, *former.DeleteTaskPushConfigParams) error {
	return former.ErrPushNotificationNotSupported
}

// OnGetExtendedAgentCard returns the card with the flows that the caller may call.
func (q formerRequests) OnGetExtendedAgentCard(ctx context.Context) (*former.AgentCard, error) {
	card, err := q.requests.GetExtendedAgentCard(ctx, &sdk.GetExtendedAgentCardRequest{})
	if errors.Is(err, sdk.ErrUnsupportedOperation) {
		return nil, former.ErrAuthenticatedExtendedCardNotConfigured
	}
	if err != nil {
		return nil, formerError(err)
	}
	return formerCard(card), nil
}
