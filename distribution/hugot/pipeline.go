package hugot

import (
	"errors"
	"fmt"

	"github.com/knights-analytics/hugot"
	"github.com/knights-analytics/hugot/backends"
	"github.com/knights-analytics/hugot/options"
	"github.com/knights-analytics/hugot/pipelines"
)

// pipeline is a loaded model.
type pipeline struct {
	*pipelines.FeatureExtractionPipeline
}

// load reads the weights. The library compiles a program for each number of texts and
// length, so both are rounded up to a few values.
func load(f *folder) (runner, error) {
	session, err := hugot.NewGoSession(options.WithGoMLXBatchBuckets([]int{1, 2, 4, batchSize}), options.WithGoMLXSequenceBuckets(lengths(f.limit)))
	if err != nil {
		return nil, err
	}
	made, err := hugot.NewPipeline(session, hugot.FeatureExtractionConfig{ModelPath: f.path, OnnxFilename: f.onnx, Name: f.path})
	if err != nil {
		return nil, errors.Join(err, session.Destroy())
	}
	return &pipeline{made}, nil
}

// lengths returns the lengths that texts are rounded up to.
func lengths(limit int) []int {
	var list []int
	for n := 16; n < limit; n += max(16, n/2) {
		list = append(list, n)
	}
	return append(list, limit)
}

func (p *pipeline) run(texts [][]uint32) (states [][][]float32, err error) {
	batch := backends.NewBatch(len(texts))
	defer func() { err = errors.Join(err, batch.Destroy()) }()
	for _, ids := range texts {
		mask := make([]uint32, len(ids))
		for i := range mask {
			mask[i] = 1
		}
		batch.Input = append(batch.Input, backends.TokenizedInput{TokenIDs: ids, TypeIDs: make([]uint32, len(ids)), AttentionMask: mask, MaxAttentionIndex: len(ids) - 1})
		batch.MaxSequenceLength = max(batch.MaxSequenceLength, len(ids))
	}
	if err := backends.CreateInputTensors(batch, p.Model, p.Runtime); err != nil {
		return nil, err
	}
	if err := p.Forward(batch); err != nil {
		return nil, err
	}
	switch output := batch.OutputValues[p.OutputIndex].(type) {
	case [][][]float32: // a state of each token
		return output, nil
	case [][]float32: // the model pools itself
		for _, vector := range output {
			states = append(states, [][]float32{vector})
		}
		return states, nil
	default:
		return nil, fmt.Errorf("the output %s of the model has the type %T; expected vectors", p.Output.Name, output)
	}
}
