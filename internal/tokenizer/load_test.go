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
	const good = "YQ== 0\nYg== 1\nYWI= 2\n"
	if e, err := tokenizer.Read(good, 3); err != nil || e.Count("abab") != 2 {
		t.Fatalf("good vocabulary: %v, %v", e, err)
	}
	if e, err := tokenizer.Read(strings.TrimSuffix(good, "\n"), 3); err != nil || e.Count("abb") != 2 {
		t.Errorf("without the last line end: %v, %v", e, err)
	}
	for want, text := range map[string]string{
		"found 2 tokens, want 3":      "YQ== 0\nYg== 1\n",
		"found more than 3 tokens":    good + "YWFi 3\n",
		"line 2: rank is not greater": "YQ== 0\nYg== 0\nYWI= 2\n",
		"line 2: illegal base64 data": "YQ== 0\nY~== 1\nYWI= 2\n",
		"line 3: rank is not a":       "YQ== 0\nYg== 1\nYWI=\n",
		"line 1: rank is not a":       "YQ== -1\nYg== 1\nYWI= 2\n",
		"line 2: the token is empty":  "YQ== 0\n 1\nYWI= 2\n",
		"line 3: the token of 300":    "YQ== 0\nYg== 1\n" + strings.Repeat("YWFh", 100) + " 2\n",
		"line 3: rank 99999999 is":    "YQ== 0\nYg== 1\nYWI= 99999999\n",
		"found 0 tokens":              "",
		"line 1: line too long":       strings.Repeat("YWFh", 1<<15),
	} {
		if _, err := tokenizer.Read(text, 3); err == nil || !strings.Contains(err.Error(), want) {
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
