package temporal

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/runtime"
)

// echoes has a flow without a memory, and one with a memory whose conversations users share.
const echoes = `id: echoes
models: [{type: Model, id: m, provider: mock}]
memories: [{id: talk, policy: message_window, max_messages: 4, scope: user}]
flows:
  - id: plain
    variables: [{id: n, type: int}, {id: text, type: text}]
    inputs: [n]
    outputs: [n, text]
    steps: [{type: PromptTemplate, id: write, template: "number {n}", inputs: [n], outputs: [text]}]
  - id: talks
    variables: [{id: text, type: text}, {id: answer, type: text}]
    inputs: [text]
    outputs: [answer]
    steps: [{type: LLMInference, id: say, model: m, memory: talk, inputs: [text], outputs: [answer]}]
`

func openEchoes(t *testing.T) *runtime.App {
	t.Helper()
	path := filepath.Join(t.TempDir(), "app.qtype.yaml")
	if err := os.WriteFile(path, []byte(echoes), 0o600); err != nil {
		t.Fatal(err)
	}
	app, err := qtype.Open(t.Context(), path, qtype.WithEphemeral())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := app.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return app
}

// numbersOf returns n rows; every fifth is not a number.
func numbersOf(n int) []runtime.Input {
	var rows []runtime.Input
	for i := range n {
		value := any(i)
		if i%5 == 4 {
			value = "none"
		}
		rows = append(rows, runtime.Input{Values: map[string]any{"n": value}, Number: int64(i) + 1})
	}
	return rows
}

// textOf returns what is visible of a result.
func textOf(res *runtime.Result) string {
	if res.Err != nil {
		return fmt.Sprint(res.Number, res.Session, runtime.ErrorCode(res.Err), res.Err)
	}
	return fmt.Sprint(res.Number, res.Session, res.AppendOutputs(nil))
}

// TestUpload: every row is in one chunk, and the results of all chunks together are those of
// a local run, for few rows and many, and for any size of chunks.
func TestUpload(t *testing.T) {
	app := openEchoes(t)
	for _, n := range []int{0, 1, 70, 3000} {
		for _, most := range []int{1, 7, 100} {
			t.Run(fmt.Sprintf("rows=%d,chunk=%d", n, most), func(t *testing.T) {
				if n > 100*most {
					t.Skip("too many files")
				}
				var want, got []string
				for res, err := range app.Run(t.Context(), "plain", slices.Values(numbersOf(n))) {
					if err != nil {
						t.Fatal(err)
					}
					want = append(want, textOf(res))
				}
				codec, err := app.NewRowCodec("plain")
				if err != nil {
					t.Fatal(err)
				}
				place := &blobs{base: t.TempDir()}
				u := newUploader(codec, place, "r", most, false)
				partitions, inline, err := u.upload(t.Context(), slices.Values(numbersOf(n)))
				if err != nil {
					t.Fatal(err)
				}
				s := runAll(t, &chunkRunner{app: app, blobs: place}, partitions, inline)
				d := &downloader{codec: codec, blobs: place, run: "r", state: s, count: func(event) {}}
				if err := d.results(t.Context(), partitions, func(res *runtime.Result) bool {
					got = append(got, textOf(res))
					return true
				}); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
				if (inline == nil) != (n == 3000) || s.Rows != int64(n) || s.Failed != int64(n/5) {
					t.Errorf("inline %t, state %+v", inline != nil, s)
				}
			})
		}
	}
}

// runAll runs all chunks as the workflow does.
func runAll(t *testing.T, w *chunkRunner, partitions []int, inline [][][]byte) state {
	t.Helper()
	s := state{Next: partitions, Inline: make([]map[int][]byte, len(partitions))}
	for p, chunks := range partitions {
		s.Inline[p] = map[int][]byte{}
		for number := range chunks {
			in, rows := task{Run: "r", Flow: "plain", Partition: p, Number: number}, &chunk{}
			if inline != nil {
				in.Rows, in.Max = inline[p][number], maxInline
			}
			if err := w.rows(t.Context(), in, rows); err != nil {
				t.Fatal(err)
			}
			codec, err := w.codec(in)
			if err != nil {
				t.Fatal(err)
			}
			out := &output{}
			out.Stats, err = w.process(t.Context(), in, true, rows.inputs(), func(res *runtime.Result) error {
				out.Results = append(out.Results, codec.AppendResult(nil, res))
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			made, err := w.finish(t.Context(), in, out, false)
			if err != nil {
				t.Fatal(err)
			}
			s.Rows, s.Failed = s.Rows+made.Rows, s.Failed+made.Failed
			if made.Output != nil {
				s.Inline[p][number] = made.Output
			}
		}
	}
	return s
}

// TestUpload_Order: rows of one user are in one partition, in order, because their memory is
// that of the user; different users are in different ones.
func TestUpload_Order(t *testing.T) {
	codec, err := openEchoes(t).NewRowCodec("talks")
	if err != nil {
		t.Fatal(err)
	}
	var rows []runtime.Input
	for i := range 600 {
		session := fmt.Sprintf("user%d/session%d", i%20, i%60)
		rows = append(rows, runtime.Input{Values: map[string]any{"text": strings.Repeat("x", 20)}, Session: session, Number: int64(i) + 1})
	}
	place := &blobs{base: t.TempDir()}
	u := newUploader(codec, place, "r", 10, false)
	partitions, _, err := u.upload(t.Context(), slices.Values(rows))
	if err != nil {
		t.Fatal(err)
	}
	in := map[string]int{}
	for p, chunks := range partitions {
		last, count := int64(0), 0
		for number := range chunks {
			c := &chunk{}
			if err := place.read(t.Context(), inputName("r", p, number), c); err != nil {
				t.Fatal(err)
			}
			count += len(c.Rows)
			for _, data := range c.Rows {
				row, user := rowOf(data)
				if was, known := in[user]; row <= last || known && was != p {
					t.Fatalf("row %d of %s in partition %d after row %d, was in %d", row, user, p, last, was)
				}
				last, in[user] = row, p
			}
		}
	}
	if used := slices.Compact(slices.Sorted(maps.Values(in))); len(in) != 20 || len(used) < 5 {
		t.Errorf("%d users in partitions %v", len(in), used)
	}
}

// rowOf returns the number and the user of an encoded row.
func rowOf(data []byte) (int64, string) {
	size := int(data[0])
	session := string(data[1 : 1+size])
	number, shift := int64(0), 0
	for _, b := range data[1+size:] {
		number |= int64(b&0x7f) << shift
		if shift += 7; b < 0x80 {
			break
		}
	}
	user, _, _ := strings.Cut(session, "/")
	return number >> 1, user // a varint in zigzag encoding
}
