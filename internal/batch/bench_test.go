package batch_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/batch"
	"github.com/qtype-dev/qtype/internal/records"
	"github.com/qtype-dev/qtype/internal/terminal"
)

const computingDocument = `id: app
flows:
  - id: main
    variables:
      - {id: name, type: text}
      - {id: list, type: text}
      - {id: json, type: text}
      - {id: items, type: 'list[text]'}
      - {id: item, type: text}
      - {id: all, type: 'list[text]'}
      - {id: out, type: text}
    inputs: [name, list]
    outputs: [out]
    steps:
      - {type: PromptTemplate, id: write, template: '{{"items":{list}}}', inputs: [list], outputs: [json]}
      - {type: Decoder, id: read, format: json, inputs: [json], outputs: [items]}
      - {type: Explode, id: each, inputs: [items], outputs: [item]}
      - {type: Collect, id: join, inputs: [item], outputs: [all], batch_config: {batch_size: 4}}
      - {type: PromptTemplate, id: fill, template: '{name}: {all}', inputs: [name, all], outputs: [out]}
`

// BenchmarkRun runs a flow of five computing steps over the rows of a file, as the
// command does; an operation is a row.
func BenchmarkRun(b *testing.B) {
	b.Chdir(b.TempDir())
	if err := os.WriteFile("app.qtype.yaml", []byte(computingDocument), 0o600); err != nil {
		b.Fatal(err)
	}
	app, err := qtype.Open(b.Context(), "app.qtype.yaml", qtype.WithEphemeral())
	if err != nil {
		b.Fatal(err)
	}
	defer app.Close(context.Background())
	streams := &terminal.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard, Width: 80}
	for _, format := range []string{"jsonl", "json", "csv"} {
		b.Run(format, func(b *testing.B) {
			in := writeRows(b, "in."+format, b.N)
			b.ReportAllocs()
			b.ResetTimer()
			if err := batch.Run(b.Context(), app, batch.Config{InputFile: in, Output: "out.jsonl", Streams: streams}); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// writeRows writes a file of n rows.
func writeRows(b *testing.B, path string, n int) string {
	b.Helper()
	w, err := records.Create(b.Context(), path, []records.Column{{Name: "name"}, {Name: "list"}})
	if err != nil {
		b.Fatal(err)
	}
	for i := range n {
		if err := w.Write(fmt.Sprint("row ", i), `["a parcel", "that is late", "and a \"quote\"", "x"]`); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	return path
}
