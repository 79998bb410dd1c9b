package store

import (
	"context"
	"net/url"
	"path/filepath"

	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/index/embedded"
	"github.com/qtype-dev/qtype/internal/vectors"
	"github.com/qtype-dev/qtype/spec"
)

// embeddedFolder has the files of embedded indexes without the argument path.
const embeddedFolder = ".qtype/indexes"

// openEmbedded opens the index in a file. The name of the index is part of the path, so
// its signs are escaped.
func openEmbedded(_ context.Context, r request, args *spec.EmbeddedIndexArguments) (index.Index, error) {
	path := args.Path
	if path == "" {
		path = filepath.Join(embeddedFolder, url.PathEscape(r.entity.Common().Name)+".db")
	}
	if !filepath.IsAbs(path) {
		path = r.Policy.Output(filepath.Join(r.Folder, path))
	}
	if err := r.Policy.Write(path); err != nil {
		return nil, err
	}
	_, isVector := r.entity.(*spec.VectorIndex)
	return embedded.Open(embedded.Options{
		Path: path, Vectors: isVector, Dimensions: r.dimensions, Fields: !isVector, Stemming: args.Stemming == "english",
		Probes: args.Probes, MemoryLimit: int64(args.MemoryLimit) << 20,
		Approximate: map[string]embedded.Approximate{"never": embedded.Never, "always": embedded.Always}[args.Approximate],
		Encoding:    map[string]vectors.Encoding{"int8": vectors.Int8}[args.Quantization],
	}), nil
}
