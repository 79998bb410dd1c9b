// Package hugot runs embedding models in this process: a local folder with an ONNX
// file, as exporters for sentence-transformers write it. The library that runs them,
// github.com/knights-analytics/hugot, is in pure Go.
package hugot

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/qtype-dev/qtype/internal/model/provider"
	"github.com/qtype-dev/qtype/internal/modelparams"
	"github.com/qtype-dev/qtype/model"
)

// Config is what New makes a model from.
type Config struct {
	Info   model.Info     // describes the model; Name is the path of the folder
	Params map[string]any // the declared inference parameters, of which there are none
}

// runner computes the states of texts. Its methods are not called at the same time.
type runner interface {
	// run returns a state for each token of each text, or one for each text. What fills
	// up shorter texts has states too.
	run(texts [][]uint32) ([][][]float32, error)
}

// Embedder is an embedding model of a folder. It is safe for concurrent use; one call
// is worked on at a time, by all processors.
type Embedder struct {
	info   model.Info
	folder *folder
	turn   chan struct{} // holds one value while a call is worked on
	runner runner        // nil before the first call
}

// Client is the part of a program that makes models of the provider hugot.
func Client() provider.Client {
	return provider.Client{Local: func(info model.Info, params map[string]any) (model.Embedder, error) {
		return New(Config{Info: info, Params: params})
	}}
}

// New makes an Embedder. It reads the settings of the folder; the weights are read by
// the first call.
func New(c Config) (*Embedder, error) {
	if _, err := modelparams.Local.Encode(c.Params); err != nil {
		return nil, fmt.Errorf("model %s: %w", c.Info.ID, err)
	}
	found, err := openFolder(c.Info.Name)
	if err != nil {
		return nil, fmt.Errorf("model %s: model_id: %w", c.Info.ID, err)
	}
	info := c.Info
	info.Endpoint = "sha256:" + found.digest // caches of vectors depend on it
	return &Embedder{info: info, folder: found, turn: make(chan struct{}, 1)}, nil
}

// Info describes the model.
func (e *Embedder) Info() model.Info { return e.info }

// batchSize is how many texts are computed at once. More save little time, and a call
// that is cancelled ends with the batch.
const batchSize = 8

// Embed computes the vectors of texts. Texts of similar lengths are computed together,
// because a batch takes the time of its longest text for each.
func (e *Embedder) Embed(ctx context.Context, texts []string) (vectors [][]float32, used model.Usage, err error) {
	select {
	case e.turn <- struct{}{}:
		defer func() { <-e.turn }()
	case <-ctx.Done():
		return nil, used, ctx.Err()
	}
	// The library panics where a model has an operation that it does not know.
	defer func() {
		if cause := recover(); cause != nil {
			vectors, err = nil, e.failure(fmt.Errorf("%v", cause))
		}
	}()
	if e.runner == nil {
		if e.runner, err = load(e.folder); err != nil {
			return nil, used, e.failure(err)
		}
	}
	tokens, order := make([][]uint32, len(texts)), make([]int, len(texts))
	for i, text := range texts {
		tokens[i], order[i] = e.folder.words.tokens(text, e.folder.limit), i
		used.Input += len(tokens[i])
	}
	slices.SortStableFunc(order, func(a, b int) int { return len(tokens[a]) - len(tokens[b]) })
	vectors = make([][]float32, len(texts))
	for batch := range slices.Chunk(order, batchSize) {
		if err := ctx.Err(); err != nil {
			return nil, used, err
		}
		if err := e.compute(tokens, batch, vectors); err != nil {
			return nil, used, e.failure(err)
		}
	}
	return vectors, used, nil
}

// compute sets the vectors of the texts at these positions.
func (e *Embedder) compute(tokens [][]uint32, batch []int, vectors [][]float32) error {
	asked := make([][]uint32, len(batch))
	for k, i := range batch {
		asked[k] = tokens[i]
	}
	states, err := e.runner.run(asked)
	if err != nil {
		return err
	}
	if len(states) < len(batch) {
		return errors.New("the model returned fewer vectors than texts")
	}
	for k, i := range batch {
		vectors[i] = e.folder.pool(states[k][:min(len(states[k]), len(asked[k]))])
	}
	return nil
}

// failure returns an error of the model that is not worth a retry.
func (e *Embedder) failure(err error) error {
	return &model.Error{Model: e.info.ID, Message: e.folder.path + ": " + err.Error()}
}
