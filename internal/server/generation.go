package server

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"iter"
	"net/http"

	"github.com/qtype-dev/qtype/internal/mcpserver"
	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/server/host"
	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/internal/server/schema"
	"github.com/qtype-dev/qtype/internal/telemetry"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/tool"
)

// generation is one version of the application, with what is made of it for clients.
type generation struct {
	*host.Application
	state    store.Application
	mcp      *mcpserver.Server   // nil if it could not be made
	exporter *telemetry.Exporter // nil if traces are not sent
	feedback *telemetry.Feedback // nil if the telemetry accepts none
}

// newGeneration prepares an application. What cannot be prepared is logged and missing.
func (s *Server) newGeneration(app *runtime.App) *generation {
	g := &generation{Application: host.NewApplication(app), state: app.State()}
	if s.opts.Batches != nil {
		makeBatchModels(app)
	}
	if s.opts.Store != nil {
		g.state = store.NewApplication(s.opts.Store, g.state.ID)
	}
	warn := func(line string) { s.log.Warn(line) }
	var err error
	if g.exporter, err = telemetry.Open(telemetry.WithParts(context.Background(), s.opts.Telemetry), app, telemetry.Options{Version: s.opts.Version, Warn: warn}); err != nil {
		s.log.Error("traces are not sent", "error", err)
	}
	if g.feedback, err = telemetry.NewFeedback(app, ""); err != nil {
		s.log.Error("feedback is not accepted", "error", err)
	}
	allowed := func(ctx context.Context, flow *spec.Flow) bool { return access.Allowed(flow, access.PrincipalOf(ctx)) }
	if g.mcp, err = mcpserver.Application(app, mcpserver.ApplicationOptions{Version: s.opts.Version, HostChecked: s.opts.Access != nil, Allowed: allowed, Run: s.runForMCP(app), ErrorText: s.errorText}); err != nil {
		s.log.Error("flows are not offered to MCP clients", "error", err)
	}
	return g
}

// runForMCP runs flows for MCP clients, which answer approvals and client tools
// themselves.
func (s *Server) runForMCP(app *runtime.App) func(context.Context, string, iter.Seq[runtime.Input], ...runtime.RunOption) iter.Seq2[*runtime.Result, error] {
	if s.opts.Engine != nil {
		return func(ctx context.Context, flow string, rows iter.Seq[runtime.Input], _ ...runtime.RunOption) iter.Seq2[*runtime.Result, error] {
			call := runs.Call{App: app, Flow: flow, Rows: rows, Approve: mcpserver.Approve, Client: mcpserver.HandleClientTool}
			return call.Run(ctx, s.opts.Engine)
		}
	}
	handlers := tool.Handlers{Approve: mcpserver.Approve, Client: func(string) tool.ClientHandler { return mcpserver.HandleClientTool }}
	return func(ctx context.Context, flow string, rows iter.Seq[runtime.Input], opts ...runtime.RunOption) iter.Seq2[*runtime.Result, error] {
		ctx = s.lease(tool.WithHandlers(ctx, handlers), rand.Text(), nil)
		return app.Run(s.observe(ctx, ""), flow, rows, opts...)
	}
}

// errorText returns what a client of MCP, whose runs have no id, reads about an error.
func (s *Server) errorText(ctx context.Context, err error) string {
	text, complete := runtime.PublicText(err)
	if complete {
		return text
	}
	id := "mcp_" + rand.Text()
	s.log.ErrorContext(ctx, "a part of a run failed", "run", id, "error", err.Error())
	return text + "; the log of the server has the details of run " + id
}

// lease returns a context in which turns wait for turns of the session that other servers, or
// the application before a reload, run.
func (s *Server) lease(ctx context.Context, work string, lost func()) context.Context {
	if s.opts.Reload {
		return memory.WithLease(ctx, work, lost)
	}
	return memory.WithServerLease(ctx, work, lost)
}

// close releases what the generation has besides the application.
func (g *generation) close() {
	if g.mcp != nil {
		g.mcp.Close()
	}
	g.exporter.Close(context.Background())
}

// serveMCP answers requests for /mcp.
func (s *Server) serveMCP(w http.ResponseWriter, r *http.Request) {
	g := s.current.Load()
	if g.mcp == nil {
		s.fail(w, r, errNoMCP)
		return
	}
	if r.Method == http.MethodPost {
		body, err := host.ReadBody(w, r)
		if err == nil {
			_, err = schema.ParseBody(body)
		}
		if err != nil {
			respondMCP(w, problem.Of(err))
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	g.mcp.ServeHTTP(w, r)
}

// respondMCP answers a request to MCP whose body cannot be read.
func respondMCP(w http.ResponseWriter, p *problem.Problem) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(p.Status)
	b := appendJSON([]byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":`), "Parse error: "+p.Error())
	_, _ = w.Write(append(b, "}}\n"...)) //nolint:gosec // JSON; it fails only if the client is gone
}
