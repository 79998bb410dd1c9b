package promptcontext_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/memory/promptcontext"
	"github.com/qtype-dev/qtype/internal/memory/sqlite"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/internal/tokenizer"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec/chat"
)

// BenchmarkTurn measures a turn of a session in SQLite with a window of 7,000 tokens, without context and with the block
// retrieval. docs/benchmarks.md has the results.
func BenchmarkTurn(b *testing.B) {
	counter, err := tokenizer.For(tokenizer.Cl100k)
	testkit.Must(b, err)
	for _, n := range []int{1_000, 8_000, 100_000} {
		for _, with := range []struct {
			name   string
			blocks []promptcontext.Block
		}{
			{"none", nil},
			{"retrieval", []promptcontext.Block{{Kind: promptcontext.Retrieval, Priority: 1}}},
			{"retrieval/top_k=5", []promptcontext.Block{{Kind: promptcontext.Retrieval, Priority: 1, TopK: 5}}},
			{"embeddings", []promptcontext.Block{{Kind: promptcontext.Retrieval, Priority: 1, Embedder: &letterEmbedder{}}}},
		} {
			b.Run(fmt.Sprintf("%d/%s", n, with.name), func(b *testing.B) {
				backend, err := sqlite.Open(filepath.Join(b.TempDir(), "m.db"))
				testkit.Must(b, err)
				defer func() { testkit.Must(b, backend.Close()) }()
				m, err := memory.New(memory.Config{ID: "m", Counter: counter, Context: promptcontext.New(nil, with.blocks...),
					Limits: memory.Limits{"token_limit": 12_000, "chat_history_token_ratio": 0.6, "token_flush_size": 1_000}}, backend)
				testkit.Must(b, err)
				random := rand.New(rand.NewPCG(1, 2))
				var all []chat.Message
				for i := range n {
					all = append(all, chat.Text([]chat.Role{chat.User, chat.Assistant}[i%2], sentences(random, 1+i%2*5)))
				}
				for part := range slices.Chunk(all, 10_000) {
					testkit.Must(b, m.Append(b.Context(), "s", part...))
				}
				testkit.Must(b, m.StoreWords(b.Context(), "s")) // as after a turn
				for range 3 {                                   // fills the caches
					runTurn(b, m, sentences(random, 1), sentences(random, 6))
				}
				b.ReportAllocs()
				before := cpuTime(b)
				for b.Loop() {
					runTurn(b, m, sentences(random, 1), sentences(random, 6))
				}
				b.ReportMetric(float64((cpuTime(b)-before).Microseconds())/1000/float64(b.N), "cpu-ms/op")
			})
		}
	}
}

// sentences returns random sentences of twelve words.
func sentences(random *rand.Rand, n int) (text string) {
	syllables := strings.Fields("gar den ta ble ri ver mar ket win dow let ter can dle sil ver bas ket")
	zipf := rand.NewZipf(random, 1.2, 3, 1<<12-1)
	for range n {
		for range 12 {
			for word := zipf.Uint64() + 1; word > 0; word /= 16 {
				text += syllables[word%16]
			}
			text += " "
		}
		text = strings.TrimSpace(text) + ". "
	}
	return text
}

func cpuTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	testkit.Must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
