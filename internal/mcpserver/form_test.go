package mcpserver_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/mcpserver"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// formDocument has a client tool with an output of each kind of type.
const formDocument = `id: forms
types: [{id: Line, properties: {sku: text, photo: image?}}]
tools:
  - type: ClientTool
    id: fill
    name: fill
    description: Fills a form.
    outputs: &all
      - {id: t, type: text}
      - {id: i, type: int}
      - {id: f, type: float}
      - {id: b, type: boolean}
      - {id: d, type: date}
      - {id: dt, type: datetime}
      - {id: tm, type: time}
      - {id: p, type: image}
      - {id: l, type: "list[image]"}
      - {id: r, type: Line}
      - {id: o, type: int?}
flows:
  - id: form
    variables: *all
    outputs: [t, i, f, b, d, dt, tm, p, l, r, o]
    steps: [{type: InvokeTool, id: ask, tool: fill, input_bindings: {}, output_bindings: {t: t, i: i, f: f, b: b, d: d, dt: dt, tm: tm, p: p, l: l, r: r, o: o}}]
`

// A form has a field for each output, and its values arrive with their types.
func TestHandleClientTool_Fields(t *testing.T) {
	app, err := qtype.Open(t.Context(), testkit.WriteFile(t, "app.qtype.yaml", formDocument))
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, app.Close(context.Background())) })
	url := serveHTTP(t, serveApp(t, app, mcpserver.ApplicationOptions{}))
	inVersions(t, func(t *testing.T, version string) {
		schemas := make(chan any, 1)
		opts := &sdk.ClientOptions{ElicitationHandler: func(_ context.Context, req *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			schemas <- req.Params.RequestedSchema
			return &sdk.ElicitResult{Action: "accept", Content: object{"t": "x", "i": 5, "f": 1.5, "b": true, "d": "2026-11-22", "dt": "2026-11-22T12:00:00Z", "tm": "12:30:00",
				"p": "/9j/", "l": `["/9j/"]`, "r": `{"sku": "a", "photo": "/9j/"}`}}, nil
		}}
		s := connect(t, url, "", version, opts)
		params := &sdk.CallToolParams{Name: "form"}
		params.SetProgressToken("p")
		r, err := s.CallTool(t.Context(), params)
		testkit.Must(t, err)
		want := object{"t": "x", "i": 5.0, "f": 1.5, "b": true, "d": "2026-11-22", "dt": "2026-11-22T12:00:00Z", "tm": "12:30:00", "p": "/9j/", "l": []any{"/9j/"},
			"r": object{"sku": "a", "photo": "/9j/"}}
		if diff := cmp.Diff(want, r.StructuredContent); diff != "" {
			t.Errorf("-want +got\n%s\n%+v", diff, resultOf(r))
		}
		raw, err := json.Marshal(<-schemas)
		testkit.Must(t, err)
		const schema = `{"properties":{"b":{"type":"boolean"},"d":{"format":"date","type":"string"},"dt":{"format":"date-time","type":"string"},"f":{"type":"number"},"i":{"type":"integer"},` +
			`"l":{"description":"list[image], as JSON","type":"string"},"o":{"type":"integer"},"p":{"description":"a file, as base64","type":"string"},"r":{"description":"Line, as JSON","type":"string"},` +
			`"t":{"type":"string"},"tm":{"type":"string"}},"required":["t","i","f","b","d","dt","tm","p","l","r"],"type":"object"}`
		if string(raw) != schema {
			t.Errorf("got  %s\nwant %s", raw, schema)
		}
	})
}
