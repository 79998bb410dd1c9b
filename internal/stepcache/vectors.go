package stepcache

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math"

	"github.com/qtype-dev/qtype/model"
)

// VectorNamespace is the namespace of the vectors of embedding models in a cache.
const VectorNamespace = "vectors"

// VectorScope returns the scope of the vectors of a model. They depend on the provider, its
// server, the model and the length of the vectors.
func VectorScope(info model.Info) Scope {
	return Scope{Namespace: VectorNamespace, Step: info.ID, Version: info.Provider + " " + info.Endpoint + " " + info.Name}
}

// NewEmbedder puts a cache in front of an embedding model: a text that it has embedded is not
// sent to it again. The cache is an optimization: if it cannot be used, the model is
// called. Its entries have no texts, only their hashes. The cache is one of a directory.
func NewEmbedder(m model.Embedder, c *Cache, params []byte, maxBytes int64) model.Embedder {
	return &cachedEmbedder{Embedder: m, cache: c, params: params, scope: VectorScope(m.Info()), policy: Policy{MaxBytes: maxBytes}}
}

type bypassKey struct{}

// WithoutVectors returns a context in which embedding models do not use their caches.
func WithoutVectors(ctx context.Context) context.Context {
	return context.WithValue(ctx, bypassKey{}, true)
}

type cachedEmbedder struct {
	model.Embedder
	cache  *Cache
	scope  Scope
	policy Policy
	params []byte // what else the vectors depend on
}

// Embed takes vectors from the cache and calls the model for the others.
func (e *cachedEmbedder) Embed(ctx context.Context, texts []string) ([][]float32, model.Usage, error) {
	if bypass, _ := ctx.Value(bypassKey{}).(bool); bypass || e.cache.broken.Load() {
		return e.Embedder.Embed(ctx, texts)
	}
	keys := make([]Key, len(texts))
	for i, text := range texts {
		keys[i] = e.key(text, model.IsForQueries(ctx))
	}
	entries, err := e.cache.file.GetAll(ctx, e.scope, keys, e.policy)
	if err != nil {
		e.cache.warnUnlessEnded(ctx, err)
		return e.Embedder.Embed(ctx, texts)
	}
	vectors := make([][]float32, len(texts))
	var missing []int
	var asked []string
	for i, entry := range entries {
		if vectors[i] = e.vector(entry); vectors[i] == nil {
			missing, asked = append(missing, i), append(asked, texts[i])
		}
	}
	if len(missing) == 0 {
		return vectors, model.Usage{}, nil
	}
	made, usage, err := e.Embedder.Embed(ctx, asked)
	if err != nil || len(made) != len(asked) {
		return made, usage, err
	}
	newKeys, newEntries := make([]Key, len(missing)), make([][]byte, len(missing))
	for k, i := range missing {
		vectors[i] = made[k]
		newKeys[k], newEntries[k] = keys[i], encodeVector(made[k])
	}
	if err := e.cache.file.PutAll(ctx, e.scope, newKeys, newEntries, e.policy); err != nil {
		e.cache.warnUnlessEnded(ctx, err)
	}
	return vectors, usage, nil
}

// warnUnlessEnded reports a failure of the cache unless the run has ended.
func (c *Cache) warnUnlessEnded(ctx context.Context, err error) {
	if ctx.Err() == nil {
		c.warnOnce(err)
	}
}

// key identifies the vector of a text, as a query or as a document.
func (e *cachedEmbedder) key(text string, query bool) Key {
	h := sha256.New()
	var dimensions [8]byte
	binary.LittleEndian.PutUint64(dimensions[:], uint64(max(e.Info().Dimensions, 0)))
	_, _ = h.Write(dimensions[:]) // a hash never fails
	inner := sha256.Sum256(e.params)
	_, _ = h.Write(inner[:])
	_, _ = h.Write([]byte(text))
	if query {
		inner = sha256.Sum256([]byte("query"))
		_, _ = h.Write(inner[:])
	}
	return Key(h.Sum(nil))
}

// vector decodes an entry; nil if it does not have the length of a vector.
func (e *cachedEmbedder) vector(entry []byte) []float32 {
	if want := e.Info().Dimensions; len(entry) == 0 || len(entry)%4 != 0 || want > 0 && len(entry) != 4*want {
		return nil
	}
	vector := make([]float32, len(entry)/4)
	for i := range vector {
		vector[i] = math.Float32frombits(binary.LittleEndian.Uint32(entry[4*i:]))
	}
	return vector
}

func encodeVector(vector []float32) []byte {
	entry := make([]byte, 0, 4*len(vector))
	for _, x := range vector {
		entry = binary.LittleEndian.AppendUint32(entry, math.Float32bits(x))
	}
	return entry
}
