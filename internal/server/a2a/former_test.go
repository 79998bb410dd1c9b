package a2a_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	former "github.com/a2aproject/a2a-go/a2a"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
)

// The card and the answers have the form of version 0.3, which its SDK reads.
func TestFormer_CardAndData(t *testing.T) {
	_, address := serve(t, memory.NewInProcess(), keys(t))
	get := func(method, path, body string, into any) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, address+path, strings.NewReader(body))
		testkit.Must(t, err)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-API-Key", strings.Repeat("a", 32))
		res, err := http.DefaultClient.Do(req)
		testkit.Must(t, err)
		defer http.DefaultClient.CloseIdleConnections()
		defer func() { _ = res.Body.Close() }()
		raw, err := io.ReadAll(res.Body)
		testkit.Must(t, err)
		if err := json.Unmarshal(raw, into); err != nil {
			t.Fatalf("%s: %v in %s", path, err, raw)
		}
	}
	var public former.AgentCard
	get(http.MethodGet, "/.well-known/agent-card.json", "", &public)
	var extended struct{ Result former.AgentCard }
	get(http.MethodPost, "/a2a", `{"jsonrpc":"2.0","id":1,"method":"agent/getAuthenticatedExtendedCard"}`, &extended)
	for name, card := range map[string]former.AgentCard{"public": public, "extended": extended.Result} {
		key, _ := card.SecuritySchemes["apiKey"].(former.APIKeySecurityScheme)
		bearer, _ := card.SecuritySchemes["bearer"].(former.HTTPAuthSecurityScheme)
		if card.URL != address+"/a2a" || card.ProtocolVersion != "0.3" || len(card.Skills) == 0 || len(card.Security) != 2 ||
			key.Name != "X-API-Key" || key.In != former.APIKeySecuritySchemeInHeader || bearer.Scheme != "Bearer" || !card.SupportsAuthenticatedExtendedCard {
			t.Errorf("%s card: %+v", name, card)
		}
	}
	var sent struct{ Result former.Task }
	get(http.MethodPost, "/a2a", `{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{"messageId":"1","role":"user",
		"metadata":{"skill":"help"},"parts":[{"kind":"data","data":{"value":{"order":"8812"}},"metadata":{"data_part_compat":true}},
		{"kind":"text","text":"refund order 8812"}]}}}`, &sent)
	if sent.Result.Status.State != former.TaskStateInputRequired || sent.Result.Status.Message == nil || len(sent.Result.Status.Message.Parts) != 2 {
		t.Fatalf("task %+v", sent.Result)
	}
	data, ok := sent.Result.Status.Message.Parts[1].(former.DataPart)
	if !ok || data.Data["requests"] == nil {
		t.Errorf("the requests are %+v", sent.Result.Status.Message.Parts)
	}
}
