package mcpserver_test

import (
	"context"
	"net/http/httptest"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/mcpserver"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// BenchmarkApplication_HTTP measures calls of a flow without a model over HTTP, client
// included.
func BenchmarkApplication_HTTP(b *testing.B) {
	app, err := qtype.Open(b.Context(), "testdata/app.qtype.yaml", qtype.WithEphemeral())
	testkit.Must(b, err)
	defer app.Close(context.Background())
	server, err := mcpserver.Application(app, mcpserver.ApplicationOptions{})
	testkit.Must(b, err)
	h := httptest.NewServer(server)
	defer h.Close()
	defer server.Close()
	for _, version := range versions() {
		b.Run(version, func(b *testing.B) {
			session, err := sdk.NewClient(&sdk.Implementation{Name: "bench"}, nil).Connect(b.Context(),
				&sdk.StreamableClientTransport{Endpoint: h.URL}, &sdk.ClientSessionOptions{ProtocolVersion: version})
			testkit.Must(b, err)
			defer session.Close()
			b.ReportAllocs()
			b.SetParallelism(32)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := session.CallTool(b.Context(), &sdk.CallToolParams{Name: "pay_back", Arguments: object{"order": 1}}); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}
