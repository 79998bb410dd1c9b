package ranking

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/testkit"
)

// vocabulary has words with other forms, compounds, and words of other letters.
var vocabulary = strings.Fields("bread breads bake baked bakery baker house houseboat boathouse Falcon Falcons deadline deadlines rain rainy train größe 面包 7 42 v2 Marek Marka dog dogs puppy")

// conversation returns messages of two authors and of tools, some long, in several conversations.
func conversation(r *rand.Rand, n int) (all []Document) {
	at := time.Date(2024, time.March, 1, 0, 0, 0, 0, time.UTC)
	for i := range n {
		if r.IntN(20) == 0 {
			at = at.Add(48 * time.Hour)
		}
		at = at.Add(time.Minute)
		length := 1 + r.IntN(8)
		if r.IntN(15) == 0 {
			length = 300
		}
		var text []string
		for range length {
			word := vocabulary[min(int(r.ExpFloat64()*8), len(vocabulary)-1)]
			if r.IntN(6) == 0 {
				word = fmt.Sprintf("w%d", r.IntN(400))
			}
			text = append(text, word)
		}
		if r.IntN(4) == 0 {
			text = append(text, "?")
		}
		all = append(all, Document{Seq: int64(i + 1), Time: at, Name: []string{"Ann", "Pavel", ""}[r.IntN(3)], Text: strings.Join(text, " "), Aside: r.IntN(9) == 0})
	}
	return all
}

func encode(t *testing.T, c *Corpus) Pieces {
	pieces, err := c.EncodeSegment(t.Context())
	testkit.Must(t, err)
	return func(_ context.Context, n int) ([]byte, error) {
		if n >= len(pieces) {
			return nil, ErrDamaged
		}
		return pieces[n], nil
	}
}

func add(c *Corpus, all []Document) *Corpus {
	for _, d := range all {
		c.Add(d)
	}
	return c
}

// question returns words that documents have, other forms and misspellings of them, and unknown ones.
func question(r *rand.Rand) string {
	words := []string{"When", "did", "Ann"}[:r.IntN(4)]
	for range 1 + r.IntN(4) {
		word := vocabulary[r.IntN(len(vocabulary))]
		switch r.IntN(6) {
		case 0:
			word += "es"
		case 1:
			word = word[:len(word)/2] + word[min(len(word)/2+1, len(word)):]
		case 2:
			word = "x" + word
		case 3:
			word = fmt.Sprintf("w%d", r.IntN(500))
		}
		words = append(words, strings.ToValidUTF8(word, ""))
	}
	return strings.Join(words, " ")
}

// placesOf returns the places and scores of results.
func placesOf(c *Corpus, results []Result) (all []string) {
	for _, one := range results {
		_, at := c.At(one.Doc)
		all = append(all, fmt.Sprint(at, one.Score))
	}
	return all
}

// TestSegments_EqualMessages compares the rankings of a corpus of messages with those of one of segments, merged or not, with the
// newest messages added after questions were asked.
func TestSegments_EqualMessages(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 12 {
		all := conversation(r, 600)
		first, second, kept := r.IntN(300), 301+r.IntN(200), []Document(nil)
		for _, d := range all {
			if !d.Aside {
				kept = append(kept, d)
			}
		}
		whole, part := add(&Corpus{}, all), add(&Corpus{}, kept)
		a, b := encode(t, add(&Corpus{}, all[:first+1])), encode(t, add(&Corpus{}, all[first+1:second]))
		var merged Corpus
		testkit.Must(t, merged.AddSegment(t.Context(), 0, a, 0, math.MaxInt64, true))
		testkit.Must(t, merged.AddSegment(t.Context(), 0, b, 0, math.MaxInt64, true))
		var two, one, some Corpus
		testkit.Must(t, two.AddSegment(t.Context(), 0, a, 0, math.MaxInt64, true))
		testkit.Must(t, two.AddSegment(t.Context(), 0, b, 0, math.MaxInt64, true))
		one.Add(Document{Session: 1, Seq: 1, Text: "bread of another session"})
		one.Remove(1, 1, 1)
		m := encode(t, &merged)
		testkit.Must(t, one.AddSegment(t.Context(), 0, m, 0, math.MaxInt64, true))
		testkit.Must(t, some.AddSegment(t.Context(), 0, m, 0, math.MaxInt64, false))
		rank(t, &two, Query{Text: "bread house w7", Limit: 3})
		rank(t, &some, Query{Text: "baker w9", Limit: 3})
		add(&two, all[second:])
		add(&one, all[second:])
		for _, d := range all[second:] {
			if !d.Aside {
				some.Add(d)
			}
		}
		for range 60 {
			q := Query{Text: question(r), Limit: 20}
			want := placesOf(whole, rank(t, whole, q))
			for name, c := range map[string]*Corpus{"two segments": &two, "one segment": &one} {
				if got := placesOf(c, rank(t, c, q)); !slices.Equal(got, want) {
					t.Fatalf("%s, %q: %v, want %v", name, q.Text, got, want)
				}
			}
			if got, want := placesOf(&some, rank(t, &some, q)), placesOf(part, rank(t, part, q)); !slices.Equal(got, want) {
				t.Fatalf("without tools, %q: %v, want %v", q.Text, got, want)
			}
		}
	}
}

// TestSegments_Damaged changes pieces: they are refused or read, and nothing panics.
func TestSegments_Damaged(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	pieces, err := add(&Corpus{}, conversation(r, 300)).EncodeSegment(t.Context())
	testkit.Must(t, err)
	refused := 0
	for range 600 {
		damaged := r.IntN(len(pieces))
		read := func(_ context.Context, n int) ([]byte, error) {
			if n >= len(pieces) {
				return nil, ErrDamaged
			}
			b := slices.Clone(pieces[n])
			if n == damaged {
				b[r.IntN(min(len(b), 40+r.IntN(len(b))))] = byte(r.Uint32())
				b = b[:len(b)-r.IntN(2)*r.IntN(len(b))]
			}
			return b, nil
		}
		var c Corpus
		if c.AddSegment(t.Context(), 0, read, 0, math.MaxInt64, true) != nil {
			refused++
			continue
		}
		if _, err := c.Rank(t.Context(), Query{Text: question(r), Limit: 5}); err != nil {
			refused++
			if !errors.Is(err, ErrDamaged) {
				t.Fatal(err)
			}
		}
	}
	if refused == 0 {
		t.Error("no damaged piece was refused")
	}
}

// TestSegments_DamagedNumbers reads pieces with numbers that no segment has: they are refused, without room for what they promise.
func TestSegments_DamagedNumbers(t *testing.T) {
	var whole Corpus
	for i := range 40 {
		whole.Add(Document{Seq: int64(i + 1), Text: fmt.Sprintf("bread%d bread", i)})
	}
	pieces, err := whole.EncodeSegment(t.Context())
	testkit.Must(t, err)
	dictionary := bytes.Clone(pieces[2])
	_, term := binary.Uvarint(dictionary)
	term += int(dictionary[0])
	size := func(v uint64) []byte { // of the first list, the next one is behind it
		_, n := binary.Uvarint(dictionary[term:])
		return slices.Concat(binary.AppendUvarint(bytes.Clone(dictionary[:term]), v), dictionary[term+n:])
	}
	factor := bytes.Clone(pieces[1])
	binary.LittleEndian.PutUint32(factor[len(factor)-whole.vectorBytes():], math.Float32bits(float32(math.Inf(1))))
	_, docs := binary.Uvarint(pieces[0])
	for name, damaged := range map[string][][]byte{
		"documents":          {slices.Concat(binary.AppendUvarint(nil, maxDocs), pieces[0][docs:]), pieces[1], pieces[2], pieces[3]},
		"size of a list":     {pieces[0], pieces[1], size(math.MaxUint64), pieces[3]},
		"sum of sizes":       {pieces[0], pieces[1], size(math.MaxUint64 - 1), pieces[3]},
		"factor of a vector": {pieces[0], factor, pieces[2], pieces[3]},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var c Corpus
		err := c.AddSegment(t.Context(), 0, func(_ context.Context, n int) ([]byte, error) {
			if n >= len(damaged) {
				return nil, ErrDamaged
			}
			return damaged[n], nil
		}, 0, math.MaxInt64, true)
		if err == nil {
			_, err = c.Rank(t.Context(), Query{Text: "bread bread0 bread1 bread9", Limit: 5})
		}
		runtime.ReadMemStats(&after)
		if !errors.Is(err, ErrDamaged) || after.TotalAlloc-before.TotalAlloc > 64<<20 {
			t.Errorf("%s: %v, with %d bytes", name, err, after.TotalAlloc-before.TotalAlloc)
		}
	}
}

// TestSegments_FailingReads asks again after the lists of a second segment could not be read: nothing is lost.
func TestSegments_FailingReads(t *testing.T) {
	var all []Document
	for i := range 9 { // the list of the word has room for more
		all = append(all, Document{Seq: int64(i + 1), Text: fmt.Sprintf("bread%d bread", i)})
	}
	a, b := encode(t, add(&Corpus{}, all[:2])), encode(t, add(&Corpus{}, all[2:4]))
	c, whole, failed := &Corpus{}, add(&Corpus{}, all), errors.New("no answer")
	failing := true
	testkit.Must(t, c.AddSegment(t.Context(), 0, a, 0, math.MaxInt64, true))
	testkit.Must(t, c.AddSegment(t.Context(), 0, func(ctx context.Context, n int) ([]byte, error) {
		if len(c.segments) == 2 && n >= c.segments[1].lists && failing {
			return nil, failed
		}
		return b(ctx, n)
	}, 0, math.MaxInt64, true))
	add(c, all[4:])
	q := Query{Text: "bread", Limit: 20}
	if _, err := c.Rank(t.Context(), q); !errors.Is(err, failed) {
		t.Fatal(err)
	}
	failing = false
	if got, want := placesOf(c, rank(t, c, q)), placesOf(whole, rank(t, whole, q)); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestSegments_When asks for a time: messages that name one come first also if nothing else has read these words.
func TestSegments_When(t *testing.T) {
	var whole, c Corpus
	for i := range 9_000 {
		text := fmt.Sprintf("b%d k%d", i%100, i)
		if i%700 == 7 {
			text += " yesterday"
		}
		whole.Add(Document{Seq: int64(i + 1), Text: text})
	}
	testkit.Must(t, c.AddSegment(t.Context(), 0, encode(t, &whole), 0, math.MaxInt64, true))
	q := Query{Text: "When was b7?", Limit: 20}
	if got, want := placesOf(&c, rank(t, &c, q)), placesOf(&whole, rank(t, &whole, q)); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestCorpus_AddBetween adds messages that belong between others, as edited ones do.
func TestCorpus_AddBetween(t *testing.T) {
	all := conversation(rand.New(rand.NewPCG(3, 3)), 60)
	whole, late := add(&Corpus{}, all), add(&Corpus{}, slices.Concat(all[:20], all[21:40], all[41:], all[40:41], all[20:21]))
	places := func(c *Corpus) (all []Place) {
		for _, at := range c.Session(0) {
			all = append(all, at)
		}
		return all
	}
	if got, want := places(late), places(whole); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	late.Remove(0, 10, 50)
	whole.Remove(0, 10, 50)
	if got, want := places(late), places(whole); !slices.Equal(got, want) {
		t.Errorf("removed: %v, want %v", got, want)
	}
}

// TestSegments_ManyPieces reads single pieces of a segment with many of each kind.
func TestSegments_ManyPieces(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	var whole, c Corpus
	for i := range columnDocs + 100 {
		whole.Add(Document{Seq: int64(i + 1), Text: fmt.Sprintf("a%d common%d e%d", r.IntN(9_000), i%3, r.IntN(9_000)), Time: time.Unix(int64(i), 0)})
	}
	pieces, err := whole.EncodeSegment(t.Context())
	testkit.Must(t, err)
	read := map[int]bool{}
	testkit.Must(t, c.AddSegment(t.Context(), 0, func(_ context.Context, n int) ([]byte, error) {
		read[n] = true
		return pieces[n], nil
	}, 0, math.MaxInt64, true))
	for _, text := range []string{"a77 e4000", "common1 a8", "e8999", "a123x common2", "nothing"} {
		q := Query{Text: text, Limit: 20}
		if got, want := placesOf(&c, rank(t, &c, q)), placesOf(&whole, rank(t, &whole, q)); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	if len(pieces) < 10 || len(read) == len(pieces) {
		t.Errorf("%d of %d pieces were read", len(read), len(pieces))
	}
}
