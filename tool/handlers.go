package tool

import "context"

// Handlers answer for the caller of one run, in place of the handlers of the
// application. They may be called by several goroutines at the same time.
type Handlers struct {
	Approve Approver                      // decides about calls that require approval; nil: the application's
	Client  func(id string) ClientHandler // returns the handler of the ClientTool with an id; nil, or a nil handler: the application's
}

type handlersKey struct{}

// WithHandlers returns a context in which h answers for the caller.
func WithHandlers(ctx context.Context, h Handlers) context.Context {
	return context.WithValue(ctx, handlersKey{}, &h)
}

// ApproverOf returns the approver of the run, otherwise app.
func ApproverOf(ctx context.Context, app Approver) Approver {
	if h, _ := ctx.Value(handlersKey{}).(*Handlers); h != nil && h.Approve != nil {
		return h.Approve
	}
	return app
}

// ClientHandlerOf returns the run's handler of the ClientTool with an id, otherwise app.
func ClientHandlerOf(ctx context.Context, id string, app ClientHandler) ClientHandler {
	h, _ := ctx.Value(handlersKey{}).(*Handlers)
	if h == nil || h.Client == nil {
		return app
	}
	if own := h.Client(id); own != nil {
		return own
	}
	return app
}

// RawTool is a Tool that takes its arguments as the model wrote them. It is not
// declared in the document: the caller of a run offers it to Agents.
type RawTool interface {
	Tool
	// CallRaw runs the tool with a JSON object that was not checked.
	CallRaw(ctx context.Context, args string) (any, error)
}

type callerToolsKey struct{}

// WithCallerTools returns a context in which Agents offer more tools to their models.
func WithCallerTools(ctx context.Context, tools []RawTool) context.Context {
	return context.WithValue(ctx, callerToolsKey{}, tools)
}

// CallerTools returns the tools of WithCallerTools.
func CallerTools(ctx context.Context) []RawTool {
	tools, _ := ctx.Value(callerToolsKey{}).([]RawTool)
	return tools
}
