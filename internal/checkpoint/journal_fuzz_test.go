package checkpoint

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// FuzzOpen opens journals whose frames are correct, and hold anything.
func FuzzOpen(f *testing.F) {
	rows, _ := appendResults(nil, Key{Row: 1}, []Row{{Data: []byte("x")}}, true)
	f.Add([]byte(`{"flow":"main"}`), rows[frameHead+1:], kindResults)
	f.Add([]byte(`{}`), []byte{0, 1, 1, 255, 255, 255, 255, 15, 1}, kindResults)
	f.Add([]byte(`[]`), []byte{}, kindSession)
	f.Add([]byte(`null`), []byte{255, 255, 255, 255, 255, 255, 255, 255, 255, 1}, kindSeal)
	path := filepath.Join(f.TempDir(), "j")
	f.Fuzz(func(t *testing.T, header, body []byte, kind byte) {
		c := newChain(nil)
		text := c.appendSealed(nil, append([]byte("qtype journal 3\n"), frame(kindHeader, header)...))
		text = c.appendSealed(text, append(frame(kindResults, body), frame(kind, body)...))
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := Open(path, nil)
		if err != nil {
			return
		}
		finished, _ := j.Rows()
		for row := range min(finished, 5) {
			decoder := RowDecoder{Slots: []int{0}}
			_, _ = j.Load(Key{Row: row}, func(data []byte) error {
				_, _ = ReadResults(data)
				return decoder.Decode(data, &steps.Row{Values: []any{value.Unset}})
			})
		}
		j.ForgetFailed()
		_ = j.Close()
	})
}
