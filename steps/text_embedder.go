package steps

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/model"
)

// embedTexts is how many texts a step passes to an embedding model in one call; the model
// divides them further where its provider takes fewer.
const embedTexts = 128

// textEmbedder embeds the texts of several rows. Texts that the model rejects fail
// alone.
type textEmbedder struct {
	step    string // for the events
	model   model.Embedder
	workers int // calls at once, at least 1
	size    int // texts in one call; 0 means embedTexts
}

// embed returns a vector or an error for each text.
func (e *textEmbedder) embed(ctx context.Context, texts []string) (vectors [][]float32, errs []error) {
	vectors, errs = make([][]float32, len(texts)), make([]error, len(texts))
	var todo []int
	for i, text := range texts {
		if strings.TrimSpace(text) == "" {
			errs[i] = errors.New("the text is empty: there is nothing to embed")
			continue
		}
		todo = append(todo, i)
	}
	if len(todo) == 0 {
		return vectors, errs
	}
	part := min(cmp.Or(e.size, embedTexts), (len(todo)+e.workers-1)/e.workers)
	permits := make(chan struct{}, e.workers)
	var group sync.WaitGroup
	for at := range slices.Chunk(todo, part) {
		permits <- struct{}{}
		group.Go(func() {
			defer func() { <-permits }()
			e.part(ctx, at, texts, vectors, errs)
		})
	}
	group.Wait()
	return vectors, errs
}

// part embeds some of the texts, in one call if the model accepts all of them.
func (e *textEmbedder) part(ctx context.Context, at []int, texts []string, vectors [][]float32, errs []error) {
	some := make([]string, len(at))
	for i, k := range at {
		some[i] = texts[k]
	}
	got, err := e.call(ctx, some)
	switch {
	case err == nil:
		for i, k := range at {
			vectors[k] = got[i]
		}
	case len(at) > 1 && ctx.Err() == nil && rejects(err):
		e.part(ctx, at[:len(at)/2], texts, vectors, errs)
		e.part(ctx, at[len(at)/2:], texts, vectors, errs)
	default:
		for _, k := range at {
			errs[k] = err
		}
	}
}

func (e *textEmbedder) call(ctx context.Context, texts []string) (vectors [][]float32, err error) {
	defer func() {
		if p := recover(); p != nil { // it would end the process: this may be another goroutine
			err = fmt.Errorf("internal error of the model %s: %v", e.model.Info().ID, p)
		}
	}()
	vectors, usage, err := e.model.Embed(ctx, texts)
	if usage != (model.Usage{}) {
		Report(ctx, Event{Kind: EventUsage, Step: e.step, Input: usage.Input, Output: usage.Output, Cached: usage.Cached, Cost: usage.Cost, Saved: usage.Saved, Model: usage.Model})
	}
	if err == nil && len(vectors) != len(texts) {
		err = fmt.Errorf("the model %s returned %d vectors for %d texts", e.model.Info().ID, len(vectors), len(texts))
	}
	return vectors, err
}

// rejects reports whether an error may concern only some of the texts: the request itself
// was wrong, not the credentials, the limits, the network or the model.
func rejects(err error) bool {
	failure, ok := errors.AsType[*model.Error](err)
	return ok && !failure.Temporary && !errors.Is(failure, model.ErrDimensions) && slices.Contains([]int{0, http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity}, failure.Status)
}
