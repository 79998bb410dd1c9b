package tokenizer_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/internal/tokenizer"
)

func TestFor_UnknownEncoding(t *testing.T) {
	for _, name := range []string{"", "o200k", "O200K_BASE", "../o200k_base", "gpt-4o"} {
		e, err := tokenizer.For(name)
		if e != nil || err == nil {
			t.Fatalf("For(%q) = %v, %v", name, e, err)
		}
		for _, want := range append(tokenizer.Names(), "unknown token encoding") {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("error %q does not name %s", err, want)
			}
		}
	}
}

func TestEncoding_Name(t *testing.T) {
	for _, name := range tokenizer.Names() {
		if got := encoding(t, name).Name(); got != name {
			t.Errorf("For(%s).Name() = %s", name, got)
		}
		if first, again := encoding(t, name), encoding(t, name); first != again {
			t.Errorf("%s is loaded twice", name)
		}
	}
}

func TestFor_Concurrent(t *testing.T) {
	want := map[string][]int{}
	for _, name := range tokenizer.Names() {
		e, err := tokenizer.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range texts {
			want[name] = append(want[name], e.Count(text))
		}
	}
	var all sync.WaitGroup
	for worker := range 16 {
		all.Go(func() {
			for i := range tokenizer.Names() {
				name := tokenizer.Names()[(i+worker)%len(tokenizer.Names())]
				e, err := tokenizer.For(name)
				if err != nil {
					t.Error(err)
					return
				}
				for k, text := range texts {
					if got := e.Count(text); got != want[name][k] {
						t.Errorf("%s: Count(%+q) = %d concurrently, %d alone", name, text, got, want[name][k])
					}
				}
			}
		})
	}
	all.Wait()
}

func TestRead_DamagedVocabulary(t *testing.T) {
	const good = "\x01a\x01b\x02ab"
	if e, err := tokenizer.Read(good, 3); err != nil || e.Count("abab") != 2 {
		t.Fatalf("good vocabulary: %v, %v", e, err)
	}
	if e, err := tokenizer.Read("\x01a\x00\x00"+good[2:], 3); err != nil || e.Count("abb") != 2 {
		t.Errorf("ranks without a token: %v, %v", e, err)
	}
	if e, err := tokenizer.Read(good, 2); err != nil || e.Count("ab") != 2 {
		t.Errorf("the first tokens: %v, %v", e, err)
	}
	for want, content := range map[string]string{
		"found 2 tokens, want 3":         good[:4],
		"found 0 tokens":                 "",
		"the token of rank 2 is cut off": good[:6],
		"rank 262144 is not below":       good[:4] + strings.Repeat("\x00", 1<<18-2) + good[4:],
		"bytes are more than 16777216":   strings.Repeat(good, 1<<22),
	} {
		if _, err := tokenizer.Read(content, 3); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %q", err, want)
		}
	}
}

// TestCount_LongRuns would time out with a quadratic algorithm.
func TestCount_LongRuns(t *testing.T) {
	testkit.SkipWithRace(t)
	if testing.Short() {
		t.Skip("counts long texts")
	}
	const size = 1 << 18
	for _, unit := range []string{
		"a", "A", "ab", " ", "\n", " \n", "\t", "!", "=", "0", "日", "か", "é", "\u0301", "😀", "\xff", "\u0301A", "Aか", " '", "'s", "\u3000", "\r\n ", "aA", "/\n", "QWxhZGRpbg",
	} {
		text := strings.Repeat(unit, size/len(unit))
		for _, name := range []string{tokenizer.O200k, tokenizer.R50k} {
			if got := encoding(t, name).Count(text); got < len(text)/128 || got > 3*len(text) {
				t.Errorf("%s: %d tokens for %d bytes of %+q", name, got, len(text), unit)
			}
		}
	}
	// A run of one character before another one, for which the matcher backtracks.
	for _, text := range []string{
		strings.Repeat("か", size) + strings.Repeat("A", size), strings.Repeat(" ", size) + "x", strings.Repeat(" ", size) + "\n" + strings.Repeat(" ", size) + "x",
	} {
		if got := encoding(t, tokenizer.O200k).Count(text); got == 0 {
			t.Errorf("no tokens")
		}
	}
}
