package model

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/internal/tokenizer"
	"github.com/qtype-dev/qtype/spec"
)

// Embedder is an embedding model, which converts texts to vectors. Implementations are
// safe for concurrent use.
type Embedder interface {
	// Info describes the model; it never calls the provider.
	Info() Info
	// Embed returns one vector for each text, in order. The error is an *Error for a
	// failure of the provider or the network, the context's error after its end; then
	// there are no vectors.
	Embed(ctx context.Context, texts []string) ([][]float32, Usage, error)
}

// Batch limits what one request of an embedding model carries.
type Batch struct {
	Texts int // number of texts; 0 means 256
	Bytes int // bytes of all texts together, at least one text is sent; 0 means 256 KiB
}

// WithBatches makes an Embedder for any number of texts from a client that sends single
// requests: it splits the texts into requests, applies p to each, and checks the vectors.
// An empty text, a vector of another length than in Info and a number that is not finite
// are errors, because an index would store them.
func WithBatches(e Embedder, b Batch, p CallPolicy) Embedder {
	if b.Texts <= 0 {
		b.Texts = 256
	}
	if b.Bytes <= 0 {
		b.Bytes = 256 << 10
	}
	return &batched{Embedder: e, Batch: b, policy: p}
}

type batched struct {
	Embedder
	Batch
	policy CallPolicy
}

// Embed sends the texts in as many requests as they need, one after the other.
func (b *batched) Embed(ctx context.Context, texts []string) ([][]float32, Usage, error) {
	for i, text := range texts {
		if strings.TrimSpace(text) == "" {
			return nil, Usage{}, b.newError("text %d of %d is empty; nothing to embed", i+1, len(texts))
		}
	}
	vectors, used := make([][]float32, 0, len(texts)), Usage{}
	for len(texts) > 0 {
		n := b.next(texts)
		got, usage, err := b.try(ctx, texts[:n])
		used.Add(usage)
		if err != nil {
			return nil, used, err
		}
		vectors, texts = append(vectors, got...), texts[n:]
	}
	return vectors, used, nil
}

// next returns how many of the texts the next request carries.
func (b *batched) next(texts []string) int {
	size := 0
	for i, text := range texts {
		if size += len(text); i == b.Texts || i > 0 && size > b.Bytes {
			return i
		}
	}
	return len(texts)
}

// try sends one request, with retries.
func (b *batched) try(ctx context.Context, texts []string) ([][]float32, Usage, error) {
	p := b.policy
	tries := httpx.Policy{MaxAttempts: p.MaxAttempts, InitialDelay: p.InitialDelay, MaxDelay: p.MaxDelay}.Start()
	var waits throttle
	for {
		vectors, usage, err := b.once(ctx, texts)
		if err == nil {
			return vectors, usage, b.check(vectors, len(texts))
		}
		var failure *Error
		if errors.As(err, &failure) && (p.throttled(ctx, failure, &waits) || failure.Temporary && tries.Next(ctx, failure.RetryAfter)) {
			continue
		}
		switch {
		case ctx.Err() != nil: // it may have ended during the wait for the next attempt
			return nil, usage, ctx.Err()
		case failure == nil:
			return nil, usage, err
		}
		counted := *failure
		counted.Attempts = tries.Count()
		return nil, usage, &counted
	}
}

// once makes one attempt within the time limit.
func (b *batched) once(ctx context.Context, texts []string) ([][]float32, Usage, error) {
	call, err := b.policy.Limit.WaitTexts(ctx, b.Info(), texts)
	if err != nil {
		return nil, Usage{}, err
	}
	if err := b.policy.Breaker.allow(b.Info()); err != nil {
		call.Failed(ctx, err)
		return nil, Usage{}, err
	}
	limit := b.policy.Timeout
	within, cancel := ctx, context.CancelFunc(func() {})
	if limit > 0 {
		within, cancel = context.WithTimeout(ctx, limit)
	}
	defer cancel()
	vectors, usage, err := b.Embedder.Embed(within, texts)
	if err == nil {
		call.Done(usage)
	}
	call.Failed(ctx, err)
	if err != nil && ctx.Err() == nil && within.Err() != nil {
		err = &Error{Model: b.Info().ID, Message: "no complete answer within " + shortDuration(limit), Temporary: true}
	}
	b.policy.Breaker.done(serverFailed(err))
	return vectors, usage, err
}

// ErrDimensions is the cause of an error of an embedding model whose vectors all have another length than
// the document declares. It does not depend on the texts.
var ErrDimensions = errors.New("the vectors have another number of dimensions")

// check validates the vectors of a response.
func (b *batched) check(vectors [][]float32, texts int) error {
	if len(vectors) != texts {
		return b.newError("the server returned %d vectors for %d texts", len(vectors), texts)
	}
	want := b.Info().Dimensions
	for _, v := range vectors {
		if want > 0 && len(v) != want {
			err := b.newError("the vectors have %d dimensions, but the document declares %d", len(v), want)
			if !slices.ContainsFunc(vectors, func(v []float32) bool { return len(v) == want }) {
				err.Err = ErrDimensions
			}
			return err
		}
		for _, x := range v {
			if f := float64(x); math.IsNaN(f) || math.IsInf(f, 0) {
				return b.newError("a vector contains a value that is not a finite number")
			}
		}
	}
	return nil
}

func (b *batched) newError(format string, args ...any) *Error {
	return &Error{Model: b.Info().ID, Message: fmt.Sprintf(format, args...)}
}

// EmbedWithFallbacks calls the other models in order where m fails with an *Error
// after its retries. All texts of a call are embedded by one model. Info is that of m.
func EmbedWithFallbacks(m Embedder, others ...Embedder) Embedder {
	if len(others) == 0 {
		return m
	}
	return &fallbackEmbedder{Embedder: m, others: others}
}

type fallbackEmbedder struct {
	Embedder
	others []Embedder
}

// Embed calls one model after the other until one succeeds.
func (f *fallbackEmbedder) Embed(ctx context.Context, texts []string) ([][]float32, Usage, error) {
	vectors, used, err := f.Embedder.Embed(ctx, texts)
	var failure *Error
	if err == nil || ctx.Err() != nil || !errors.As(err, &failure) {
		return vectors, used, err
	}
	reasons := []error{err}
	for _, m := range f.others {
		vectors, used, err = m.Embed(ctx, texts)
		used.Model = m.Info().ID
		if err == nil || ctx.Err() != nil || !errors.As(err, &failure) {
			return vectors, used, err
		}
		reasons = append(reasons, err)
	}
	return nil, Usage{}, &FallbackError{Errors: reasons}
}

// Similarity returns the cosine of the angle between two vectors: 1 for the same
// direction, 0 for unrelated ones. It is 0 for vectors of different lengths and if one
// of them is zero.
func Similarity(a, b []float32) float64 {
	if len(a) != len(b) {
		return 0
	}
	var dot, aa, bb float64
	for i := range a {
		x, y := float64(a[i]), float64(b[i])
		dot, aa, bb = dot+x*y, aa+x*x, bb+y*y
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return dot / math.Sqrt(aa*bb)
}

type queryKey struct{}

// ForQueries returns a context in which Embed computes the vectors of queries of a search. The
// vectors of some models depend on whether a text is a query or a document.
func ForQueries(ctx context.Context) context.Context {
	return context.WithValue(ctx, queryKey{}, true)
}

// IsForQueries reports whether ForQueries made the context.
func IsForQueries(ctx context.Context) bool {
	is, _ := ctx.Value(queryKey{}).(bool)
	return is
}

// Describe returns the Info of a declared chat model. What the document does not
// declare is looked up by the model's name.
func Describe(m *spec.Model) Info {
	encoding, exact := tokenizer.ForModel(m.Name())
	info := Info{ID: m.ID, Provider: m.Provider, Name: m.Name(), Encoding: encoding, ExactTokens: exact,
		ContextWindow: m.ContextWindow, MaxTokens: MaxTokens(m.InferenceParams)}
	if info.Known, _ = m.Known(); info.Known != nil && info.ContextWindow == 0 {
		info.ContextWindow = window(info.Known, info.MaxTokens)
	}
	return info
}

// DescribeEmbedder returns the Info of a declared embedding model.
func DescribeEmbedder(m *spec.EmbeddingModel) Info {
	info := Describe(&m.Model)
	info.Dimensions = m.Dimensions
	return info
}
