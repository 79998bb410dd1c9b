package qtype

import (
	"log/slog"

	"github.com/qtype-dev/qtype/internal/server"
	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/runtime"
)

// Server serves an application over HTTP: it is the http.Handler of qtype serve. Its
// Shutdown ends it; the application stays open.
type Server = server.Server

// Access authenticates the callers of a Server and limits what they may use.
type Access = access.Control

// AccessConfig configures an Access.
type AccessConfig = access.Config

// NewAccess returns an Access for a Handler. An error means that a key, a certificate or
// another setting is invalid.
func NewAccess(cfg AccessConfig) (*Access, error) { return access.New(cfg) }

// HandlerOptions configures a Handler. The zero value serves all callers: use it only on
// loopback, or behind a proxy with authentication.
type HandlerOptions struct {
	Access *Access      // authentication and limits; nil: none
	Store  memory.Store // state of the server, such as runs that wait; nil: the store of the application's memories
	Log    *slog.Logger // nil: nothing is logged
	NoUI   bool         // no web interface

	// MaxRuns is the number of runs at once, beyond which requests are refused; 0: 4,096.
	MaxRuns int
}

// Handler returns the http.Handler of an application, for a Go program that serves it in
// its own server:
//
//	handler := qtype.Handler(app, qtype.HandlerOptions{})
//	defer handler.Shutdown(ctx)
//	mux.Handle("/assistant/", http.StripPrefix("/assistant", handler))
func Handler(app *runtime.App, o HandlerOptions) *Server {
	return server.New(app, server.Options{Access: o.Access, Store: o.Store, Log: o.Log, NoUI: o.NoUI, MaxRuns: o.MaxRuns})
}
