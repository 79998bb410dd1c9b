package a2a

import (
	"context"
	"errors"
	"iter"

	former "github.com/a2aproject/a2a-go/a2a"
	sdk "github.com/a2aproject/a2a-go/v2/a2a"
)

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
