package store

import (
	"context"
	"path/filepath"

	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/internal/index/embedded"
	"github.com/qtype-dev/qtype/internal/vectors"
	"github.com/qtype-dev/qtype/spec"
)

// openEmbedded opens the index in a file.
func openEmbedded(_ context.Context, r Request, args *spec.EmbeddedIndexArguments) (index.Index, error) {
	path := r.Entity.Common().EmbeddedFile(args.Path)
	if !filepath.IsAbs(path) {
		path = r.Policy.Output(filepath.Join(r.Folder, path))
	}
	if err := r.Policy.Write(path); err != nil {
		return nil, err
	}
	_, isVector := r.Entity.(*spec.VectorIndex)
	stemming := args.Stemming
	if stemming == "none" {
		stemming = ""
	}
	return embedded.Open(embedded.Options{
		Path: path, Vectors: isVector, Dimensions: r.Dimensions, Fields: !isVector, Stemming: stemming,
		Probes: args.Probes, MemoryLimit: int64(args.MemoryLimit) << 20,
		Approximate: map[string]embedded.Approximate{"never": embedded.Never, "always": embedded.Always}[args.Approximate],
		Encoding:    map[string]vectors.Encoding{"int8": vectors.Int8}[args.Quantization],
	}), nil
}
