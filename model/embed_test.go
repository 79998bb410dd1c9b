package model_test

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/model"
)

// vectors is an embedding model whose vectors hold the length of each text.
type vectors struct {
	requests [][]string
	fail     []error // one for each request, nil for success
	change   func([][]float32) [][]float32
}

func (v *vectors) Info() model.Info { return model.Info{ID: "v", Dimensions: 2} }

func (v *vectors) Embed(ctx context.Context, texts []string) ([][]float32, model.Usage, error) {
	v.requests = append(v.requests, texts)
	if n := len(v.requests); n <= len(v.fail) && v.fail[n-1] != nil {
		if errors.Is(v.fail[n-1], errHangs) {
			<-ctx.Done()
			return nil, model.Usage{}, ctx.Err()
		}
		return nil, model.Usage{}, v.fail[n-1]
	}
	made := make([][]float32, len(texts))
	for i, t := range texts {
		made[i] = []float32{float32(len(t)), 1}
	}
	if v.change != nil {
		made = v.change(made)
	}
	return made, model.Usage{Input: len(texts)}, nil
}

var errHangs = errors.New("hangs")

func TestWithBatches_SplitsTexts(t *testing.T) {
	texts := make([]string, 7)
	for i := range texts {
		texts[i] = strings.Repeat("x", i+1)
	}
	for name, tt := range map[string]struct {
		batch model.Batch
		want  []int
	}{
		"by texts":        {model.Batch{Texts: 3}, []int{3, 3, 1}},
		"by bytes":        {model.Batch{Bytes: 10}, []int{4, 1, 1, 1}},
		"one longer text": {model.Batch{Bytes: 1}, []int{1, 1, 1, 1, 1, 1, 1}},
		"one request":     {model.Batch{}, []int{7}},
	} {
		t.Run(name, func(t *testing.T) {
			v := &vectors{}
			got, usage, err := model.WithBatches(v, tt.batch, model.CallPolicy{}).Embed(t.Context(), texts)
			if err != nil {
				t.Fatal(err)
			}
			var sizes []int
			for _, r := range v.requests {
				sizes = append(sizes, len(r))
			}
			if d := cmp.Diff(tt.want, sizes); d != "" {
				t.Error(d)
			}
			for i, vector := range got {
				if vector[0] != float32(i+1) {
					t.Errorf("vector %d is that of text %v", i, vector[0])
				}
			}
			if usage.Input != 7 {
				t.Errorf("usage %+v", usage)
			}
		})
	}
}

// TestWithBatches_Dimensions: a model whose vectors all have another length than declared is no matter of
// the texts.
func TestWithBatches_Dimensions(t *testing.T) {
	for _, c := range []struct {
		vectors [][]float32
		all     bool
	}{{[][]float32{{1}, {1}}, true}, {[][]float32{{1, 2}, {1}}, false}} {
		v := &vectors{change: func([][]float32) [][]float32 { return c.vectors }}
		_, _, err := model.WithBatches(v, model.Batch{}, model.CallPolicy{}).Embed(t.Context(), []string{"a", "b"})
		if err == nil || errors.Is(err, model.ErrDimensions) != c.all {
			t.Errorf("%v: got %v", c.vectors, err)
		}
	}
}

func TestWithBatches_Errors(t *testing.T) {
	passing := &model.Error{Model: "v", Status: 503, Message: "busy", Temporary: true}
	for name, tt := range map[string]struct {
		texts    []string
		fail     []error
		change   func([][]float32) [][]float32
		want     string
		requests int
	}{
		"nothing to embed": {texts: []string{"a", " \n"}, want: "model v: text 2 of 2 is empty; nothing to embed"},
		"another length":   {change: func([][]float32) [][]float32 { return [][]float32{{1, 2, 3}} }, want: "model v: the vectors have 3 dimensions, but the document declares 2", requests: 1},
		"fewer":            {change: func([][]float32) [][]float32 { return nil }, want: "model v: the server returned 0 vectors for 1 texts", requests: 1},
		"no number":        {change: func([][]float32) [][]float32 { return [][]float32{{1, float32(math.NaN())}} }, want: "model v: a vector contains a value that is not a finite number", requests: 1},
		"passes":           {fail: []error{passing, passing}, requests: 3},
		"lasts":            {fail: []error{passing, passing, passing}, want: "model v: HTTP 503: busy, tried 3 times", requests: 3},
		"does not pass":    {fail: []error{&model.Error{Model: "v", Message: "no"}}, want: "model v: no", requests: 1},
		"takes too long":   {fail: []error{errHangs, errHangs, errHangs}, want: "model v: no complete answer within 5ms, tried 3 times", requests: 3},
		"no texts":         {texts: []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.texts == nil {
				tt.texts = []string{"a"}
			}
			v := &vectors{fail: tt.fail, change: tt.change}
			p := model.CallPolicy{Timeout: 5 * time.Millisecond, MaxAttempts: 3, InitialDelay: time.Microsecond, MaxDelay: time.Millisecond}
			var err error
			synctest.Test(t, func(t *testing.T) { // its clock does not advance while a goroutine runs
				_, _, err = model.WithBatches(v, model.Batch{}, p).Embed(t.Context(), tt.texts)
			})
			if (err == nil) != (tt.want == "") || err != nil && err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
			if len(v.requests) != tt.requests {
				t.Errorf("%d requests, want %d", len(v.requests), tt.requests)
			}
		})
	}
}

func TestWithBatches_Canceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	v := &vectors{fail: []error{errHangs}}
	_, _, err := model.WithBatches(v, model.Batch{}, model.CallPolicy{MaxAttempts: 3}).Embed(ctx, []string{"a"})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestSimilarity(t *testing.T) {
	for i, tt := range []struct {
		a, b []float32
		want float64
	}{
		{[]float32{1, 0}, []float32{5, 0}, 1}, {[]float32{1, 0}, []float32{0, 2}, 0}, {[]float32{1, 1}, []float32{-1, -1}, -1},
		{[]float32{1}, []float32{1, 0}, 0}, {[]float32{0, 0}, []float32{1, 0}, 0},
	} {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			if got := model.Similarity(tt.a, tt.b); math.Abs(got-tt.want) > 1e-9 {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}
