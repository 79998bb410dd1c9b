package mcp

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/qtype-dev/qtype/internal/httpx"
)

// asker answers the requests of a server to this program: those for a model and those for
// the user. They belong to the call that is made meanwhile: to its run, with its budget
// and its user. The protocol does not name the call, so that calls are made one by one.
type asker struct {
	turn chan struct{} // a mutex that a call holds

	mu      sync.Mutex
	call    context.Context // the call in progress; nil for none
	samples int             // calls of the model for it
}

// errNoCall refuses a request that belongs to no call.
var errNoCall = refuse("requests are answered only while one of the server's tools is called")

// begin waits until no other call is made. The caller sets the context of the call, and
// calls end after it.
func (a *asker) begin(ctx context.Context) (end func(), err error) {
	select {
	case a.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	return func() {
		a.mu.Lock()
		a.call = nil
		a.mu.Unlock()
		<-a.turn
	}, nil
}

// set begins to answer requests for the call of a context.
func (a *asker) set(ctx context.Context) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.call, a.samples = ctx, 0
}

// current returns the context of the call in progress, which ends with that of a request, too.
func (a *asker) current(request context.Context) (context.Context, context.CancelFunc, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.call == nil {
		return nil, nil, errNoCall
	}
	ctx, cancel := context.WithCancel(a.call)
	stop := context.AfterFunc(request, cancel)
	return ctx, func() { stop(); cancel() }, nil
}

// refuse returns the error of a request that is not answered.
func refuse(format string, args ...any) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: fmt.Sprintf(format, args...)}
}

// refused returns the error of a request as the server gets it.
func refused(err error) error {
	if own, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return own
	}
	return refuse("%s", httpx.SingleLine(err.Error(), 300))
}

// mayRequest reports whether the document lets the server make requests.
func (s *Server) mayRequest() bool { return s.declared.Sampling != nil || s.declared.Elicitation }

// clientOptions returns what the server may request.
func (s *Server) clientOptions() *sdk.ClientOptions {
	changed := s.catalog.expire
	o := &sdk.ClientOptions{
		Capabilities:               &sdk.ClientCapabilities{},
		ToolListChangedHandler:     func(context.Context, *sdk.ToolListChangedRequest) { changed() },
		PromptListChangedHandler:   func(context.Context, *sdk.PromptListChangedRequest) { changed() },
		ResourceListChangedHandler: func(context.Context, *sdk.ResourceListChangedRequest) { changed() },
	}
	if s.declared.Sampling != nil {
		o.CreateMessageHandler = s.sample //nolint:staticcheck // deprecated by the newest protocol; servers use it
	}
	if s.declared.Elicitation {
		o.Capabilities.Elicitation = &sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{}}
		o.ElicitationHandler = s.elicit
	}
	return o
}

// refuseUndeclared returns a clear error for requests that the document does not allow.
func (s *Server) refuseUndeclared(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		switch {
		case method == "sampling/createMessage" && s.declared.Sampling == nil:
			return nil, refuse("this client calls no model for servers: the MCPTool %s has no sampling", s.declared.ID)
		case method == "elicitation/create" && !s.declared.Elicitation:
			return nil, refuse("this client requests no answers of users for servers: the MCPTool %s has no elicitation", s.declared.ID)
		}
		return next(ctx, method, req)
	}
}
