package prefix_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/memory/prefix"
	"github.com/qtype-dev/qtype/spec/chat"
)

// drawParts draws the parts of a request of few different messages.
func drawParts(t *rapid.T, label string) []prefix.Part {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) prefix.Part {
		m := chat.Text(chat.User, rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "text"))
		p := prefix.Of(rapid.SampledFrom([]prefix.Kind{prefix.System, prefix.Context, prefix.Message}).Draw(t, "kind"), &m, m.Blocks)
		p.Seq, p.Tokens = rapid.Int64Range(0, 300).Draw(t, "position"), rapid.IntRange(0, 300).Draw(t, "tokens")
		p.ID = ""
		return p
	}), 0, 6).Draw(t, label)
}

func noPosition(string) int64 { return 0 }

// TestStored_Continued: it agrees with Compare of the decoded request.
func TestStored_Continued(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := drawParts(t, "before")
		now := drawParts(t, "now")
		if rapid.Bool().Draw(t, "continues") {
			now = append(before[:len(before):len(before)], now...)
		}
		stored := prefix.Stored(prefix.Encode(before, noPosition))
		decoded, err := stored.Decode()
		if err != nil {
			t.Fatal(err)
		}
		want := prefix.Compare(decoded, now)
		shared, whole := stored.Continued(now)
		if shared != want.Shared || whole != (want.Reason == prefix.Appended) {
			t.Errorf("Continued returns %+v, %t, Compare %+v", shared, whole, want)
		}
	})
}

// TestStored_Damaged: a damaged request is neither decoded nor continued.
func TestStored_Damaged(t *testing.T) {
	m := chat.Text(chat.User, "question")
	parts := []prefix.Part{prefix.Of(prefix.Message, &m, m.Blocks)}
	whole := prefix.Encode(parts, func(string) int64 { return 7 })
	if got, err := prefix.Stored(whole).Decode(); err != nil || len(got) != 1 || got[0].Seq != 7 {
		t.Fatalf("Decode returns %v, %v", got, err)
	}
	for _, damaged := range []string{string(whole[:len(whole)-2]), "!", "/w"} {
		if _, err := prefix.Stored(damaged).Decode(); err == nil {
			t.Errorf("%q: Decode returns no error", damaged)
		}
		if _, ok := prefix.Stored(damaged).Continued(parts); ok {
			t.Errorf("%q: Continued returns true", damaged)
		}
	}
}
