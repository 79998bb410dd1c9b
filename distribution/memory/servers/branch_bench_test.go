package servers_test

import (
	"fmt"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/spec/chat"
)

// BenchmarkBranches measures undoing and repeating the newest turn of a long session,
// and copying it.
func BenchmarkBranches(b *testing.B) {
	for _, kind := range kinds() {
		m := open(b, kind.address)
		for n := range 2_500 { // 10,000 messages
			testkit.Must(b, m.Append(b.Context(), "s", chat.Text(chat.User, text), chat.Text(chat.Assistant, text), chat.Text(chat.User, fmt.Sprint(n)), chat.Text(chat.Assistant, text)))
		}
		b.Run(kind.name+"/rewind", func(b *testing.B) {
			for b.Loop() {
				head, err := m.Head(b.Context(), "s")
				testkit.Must(b, err)
				testkit.Must(b, m.Rewind(b.Context(), "s", head.State.Turns))
				testkit.Must(b, m.Append(b.Context(), "s", chat.Text(chat.User, text)))
			}
		})
		b.Run(kind.name+"/fork", func(b *testing.B) {
			for n := 0; b.Loop(); n++ {
				testkit.Must(b, m.Fork(b.Context(), "s", fmt.Sprint(b.Name(), n), 2_000))
				testkit.Must(b, m.Clear(b.Context(), fmt.Sprint(b.Name(), n)))
			}
		})
	}
}
