package vocabularies_test

import (
	"bytes"
	"encoding/base64"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/pkoukk/tiktoken-go-loader/assets"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/internal/tokenizer/vocabularies"
)

var update = flag.Bool("update", false, "write the files")

// TestFiles compares the files with the vocabularies of tiktoken-go, which are lines of a token in base64 and its rank.
func TestFiles(t *testing.T) {
	of := map[string][]byte{}
	for _, name := range []string{"o200k_base", "cl100k_base", "p50k_base", "r50k_base"} {
		lines, err := assets.Assets.ReadFile(name + ".tiktoken")
		testkit.Must(t, err)
		var want []byte
		next := 0
		for line := range bytes.Lines(lines) {
			var encoded string
			var rank int
			_, err := fmt.Sscan(string(line), &encoded, &rank)
			testkit.Must(t, err)
			token, err := base64.StdEncoding.DecodeString(encoded)
			testkit.Must(t, err)
			want = append(want, make([]byte, rank-next)...)
			want = append(append(want, byte(len(token))), token...)
			next = rank + 1
		}
		of[name] = want
	}
	if !bytes.HasPrefix(of["p50k_base"], of["r50k_base"]) {
		t.Error("r50k_base is not the beginning of p50k_base")
	}
	delete(of, "r50k_base")
	for name, want := range of {
		if *update {
			testkit.Must(t, os.WriteFile(name+".tokens", want, 0o644))
			continue
		}
		if vocabularies.Files[name+".tokens"] != string(want) {
			t.Errorf("%s differs: run this test with -update", name)
		}
	}
}
