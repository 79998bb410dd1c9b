package tokenizer_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"

	"github.com/qtype-dev/qtype/internal/tokenizer"
)

// BenchmarkCountCold counts 400 characters of documentation prose, different ones each
// time, compared with tiktoken-go's Encode and EncodeOrdinary.
func BenchmarkCountCold(b *testing.B) {
	compare(b, prose(b, 400))
}

// BenchmarkCountWarm counts the same 400 characters repeatedly.
func BenchmarkCountWarm(b *testing.B) {
	compare(b, prose(b, 400)[:1])
}

// BenchmarkCountScripts counts texts that are not English prose.
func BenchmarkCountScripts(b *testing.B) {
	for name, text := range map[string]string{
		"source":   source(b, "net/http/server.go")[:50_000],
		"chinese":  strings.Repeat("自然语言处理是人工智能领域中的一个重要方向，研究能实现人与计算机之间用自然语言进行有效通信的各种理论和方法。", 20),
		"japanese": strings.Repeat("吾輩はトークンを数える機械である。文章の長さは、まだわからない。", 20),
		"russian":  strings.Repeat("Каждое сообщение считается один раз, когда оно добавляется в память. ", 20),
		"blob":     strings.Repeat("SGVsbG8sIHdvcmxkISBUaGlzIGlzIGEgYmxvYiBvZiBieXRlcy4gWnh5d3Z1dHNycXBv", 20),
	} {
		b.Run(name, func(b *testing.B) { compare(b, []string{text}) })
	}
}

// compare measures counting the texts in turn.
func compare(b *testing.B, texts []string) {
	for _, name := range []string{tokenizer.O200k, tokenizer.Cl100k} {
		e, r := encoding(b, name), reference(b, name)
		b.Run(name+"/ours", func(b *testing.B) {
			count(b, texts, e.Count)
		})
		b.Run(name+"/tiktoken-go", func(b *testing.B) {
			count(b, texts, func(text string) int { return len(r.Encode(text, nil, nil)) })
		})
		b.Run(name+"/tiktoken-go-ordinary", func(b *testing.B) {
			count(b, texts, func(text string) int { return len(r.EncodeOrdinary(text)) })
		})
	}
}

// count measures one implementation.
func count(b *testing.B, texts []string, count func(string) int) {
	b.ReportAllocs()
	bytes, i := 0, 0
	for b.Loop() {
		count(texts[i])
		bytes += len(texts[i])
		if i++; i == len(texts) {
			i = 0
		}
	}
	b.ReportMetric(float64(bytes)/b.Elapsed().Seconds()/1e6, "MB/s")
}

// BenchmarkOneLetter counts runs of one letter. The time must be linear.
func BenchmarkOneLetter(b *testing.B) {
	e := encoding(b, tokenizer.O200k)
	for name, text := range map[string]string{
		"50000":  strings.Repeat("a", 50_000),
		"100000": strings.Repeat("a", 100_000),
		"200000": strings.Repeat("a", 200_000),
	} {
		b.Run(name, func(b *testing.B) { count(b, []string{text}, e.Count) })
	}
}

// BenchmarkLoad loads a vocabulary, which a program does once. tiktoken-go's
// GetEncoding caches what its loader has read, so the loader is called too.
func BenchmarkLoad(b *testing.B) {
	files := map[string]string{
		tokenizer.O200k: "o200k_base.tiktoken", tokenizer.Cl100k: "cl100k_base.tiktoken",
		tokenizer.P50k: "p50k_base.tiktoken", tokenizer.P50kEdit: "p50k_base.tiktoken", tokenizer.R50k: "r50k_base.tiktoken",
	}
	for _, name := range tokenizer.Names() {
		b.Run(name+"/ours", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tokenizer.Load(name); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/tiktoken-go", func(b *testing.B) {
			tiktoken.SetBpeLoader(loader.NewOfflineLoader())
			b.ReportAllocs()
			for b.Loop() {
				if _, err := loader.NewOfflineLoader().LoadTiktokenBpe(files[name]); err != nil {
					b.Fatal(err)
				}
				if _, err := tiktoken.GetEncoding(name); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// prose returns texts of size characters from the comments of Go's standard library,
// which every machine with Go has.
func prose(b *testing.B, size int) []string {
	b.Helper()
	var text strings.Builder
	for _, file := range []string{"net/http/server.go", "net/http/transport.go", "net/http/request.go", "database/sql/sql.go", "encoding/json/decode.go", "go/ast/ast.go", "os/file.go", "reflect/type.go", "text/template/doc.go", "testing/testing.go", "time/time.go", "fmt/doc.go"} {
		for line := range strings.Lines(source(b, file)) {
			if comment, ok := strings.CutPrefix(line, "// "); ok {
				text.WriteString(comment)
			}
		}
	}
	var out []string
	for rest := text.String(); len(rest) >= size; rest = rest[size:] {
		out = append(out, strings.ToValidUTF8(rest[:size], ""))
	}
	return out
}

// source returns a file of Go's standard library.
func source(b *testing.B, file string) string {
	b.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		b.Skip("there is no go command here")
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "src", file))
	if err != nil {
		b.Skip("the source of Go's library is not here")
	}
	return string(text)
}
