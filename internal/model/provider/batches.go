package provider

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
)

// batchPolicy is that of calls in batches: a batch has no time limit, and what sends batches sends calls again.
var batchPolicy = model.CallPolicy{MaxAttempts: 1}

// useBatches makes the calls of a model in batches if the options want that, and reports whether they are. A
// model that only streams is called at once.
func (c *client) useBatches(m *spec.Model, opts Options) (bool, error) {
	if opts.Batches == nil || c.Batches == nil || m.Batch != nil && !m.Batch.Enabled || lacksBucket(m) || c.config.Info.Known != nil && c.config.Info.Known.Streaming == catalogue.StreamsAlways {
		return false, nil
	}
	if opts.Window == "" && m.Batch != nil && m.Batch.Bucket != "" {
		if err := errors.Join(opts.Policy.Write(m.Batch.Bucket), opts.Policy.Read(m.Batch.Bucket)); err != nil {
			return false, fmt.Errorf("model %s: %w", m.ID, err)
		}
		c.config.Files = &remotefs.Client{Buckets: opts.Buckets, Identity: c.config.Bucket}
	}
	var api wire.Batches
	var err error
	switch {
	case opts.Window == "":
		api, err = c.Batches(*m, c.config)
	case c.Background == nil || whyNoBackground(m) != "":
		return false, nil
	default:
		api, err = c.Background(c.config, opts.Window)
	}
	if err != nil {
		return false, err
	}
	c.config.Batched = true
	c.config.HTTP = opts.Batches(m, api, c.config.HTTP)
	return true, nil
}

// lacksBucket reports whether the batches of a model need a bucket that it does not name.
func lacksBucket(m *spec.Model) bool {
	row, _ := m.ProviderRow()
	return row.BatchBucket != nil && (m.Batch == nil || m.Batch.Bucket == "")
}

// WhyAtOnce returns whether the provider of a model has batches, and why its calls are made at once nevertheless; empty if
// they are made in batches, or within a window in the background. clients are the providers that can be called, nil for
// those of the core.
func WhyAtOnce(m spec.ModelEntity, clients Clients, window string) (has bool, why string) {
	if clients == nil {
		clients = core()
	}
	base := m.Base()
	_, embeds := m.(*spec.EmbeddingModel)
	row, _ := base.ProviderRow()
	known, _ := base.Known()
	switch {
	case window != "" && (clients[base.Provider].Background == nil || embeds), clients[base.Provider].Batches == nil:
		return false, ""
	case base.Batch != nil && !base.Batch.Enabled:
		why = "its batch is not enabled"
	case lacksBucket(base):
		why = "its batch has no bucket"
	case known != nil && known.Streaming == catalogue.StreamsAlways:
		why = "it only streams"
	case embeds && !row.BatchEmbeddings:
		why = "its batches have no embeddings"
	case window != "":
		why = whyNoBackground(base)
	}
	return true, why
}

// whyNoBackground returns why calls of a model cannot be made in the background; empty if they can.
func whyNoBackground(m *spec.Model) string {
	tier, store := m.InferenceParams["service_tier"], m.InferenceParams["store"]
	switch {
	case !m.UsesResponses():
		return "its api is not responses"
	case tier != nil && tier != "default" && tier != "auto":
		return fmt.Sprintf("its service_tier is %v", tier)
	case store == false:
		return "its inference_params have store: false"
	}
	return ""
}

// BatchTier returns the tier of calls in batches, or within a window in the background.
func BatchTier(window string) string {
	if window == "" {
		return catalogue.TierBatch
	}
	return backgroundTier + window
}

// batchedChat is a chat model whose calls are made in batches.
type batchedChat struct {
	model.Chat
	tier string
}

// Generate forwards the answer of one call.
func (b batchedChat) Generate(ctx context.Context, req model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		ctx, isAtOnce := wire.WithAtOnce(ctx)
		for ev, err := range b.Chat.Generate(ctx, req) {
			if ev.Response != nil && !isAtOnce.Load() {
				made := *ev.Response
				made.Usage.Tier = b.tier
				ev.Response = &made
			}
			if !yield(ev, err) {
				return
			}
		}
	}
}

// batchedEmbedder is an embedding model whose calls are made in batches.
type batchedEmbedder struct{ model.Embedder }

// Embed calls the model.
func (b batchedEmbedder) Embed(ctx context.Context, texts []string) ([][]float32, model.Usage, error) {
	ctx, isAtOnce := wire.WithAtOnce(ctx)
	vectors, usage, err := b.Embedder.Embed(ctx, texts)
	if err == nil && !isAtOnce.Load() {
		usage.Tier = catalogue.TierBatch
	}
	return vectors, usage, err
}

// chosenChat makes some calls in batches.
type chosenChat struct {
	model.Chat // makes the others
	batched    model.Chat
	isBatched  func(context.Context) bool
}

// Generate makes one call. One in a batch is not streamed.
func (c chosenChat) Generate(ctx context.Context, req model.Request) iter.Seq2[model.Event, error] {
	if !c.isBatched(ctx) {
		return c.Chat.Generate(ctx, req)
	}
	req.Stream = false
	return c.batched.Generate(ctx, req)
}

// chosenEmbedder makes some calls in batches.
type chosenEmbedder struct {
	model.Embedder // makes the others
	batched        model.Embedder
	isBatched      func(context.Context) bool
}

// Embed calls the model.
func (c chosenEmbedder) Embed(ctx context.Context, texts []string) ([][]float32, model.Usage, error) {
	if !c.isBatched(ctx) {
		return c.Embedder.Embed(ctx, texts)
	}
	return c.batched.Embed(ctx, texts)
}

// prefixes are what embedding models were trained to find before a query and before a document. A row is for the
// models whose names contain its name, in any case; the first that fits counts.
//
//nolint:gochecknoglobals // a constant table
var prefixes = []struct{ name, query, document string }{
	{"e5-large-instruct", "Instruct: Given a question, retrieve passages that answer it\nQuery: ", ""},
	{"e5-mistral", "Instruct: Given a question, retrieve passages that answer it\nQuery: ", ""},
	{"qwen3-embedding", "Instruct: Given a question, retrieve passages that answer it\nQuery: ", ""},
	{"e5-", "query: ", "passage: "},
	{"nomic-embed-text", "search_query: ", "search_document: "},
	{"embeddinggemma", "task: search result | query: ", "title: none | text: "},
	{"arctic-embed-l-v2", "query: ", ""},
	{"arctic-embed-m-v2", "query: ", ""},
	{"arctic-embed", "Represent this sentence for searching relevant passages: ", ""},
	{"mxbai-embed-large", "Represent this sentence for searching relevant passages: ", ""},
	{"bge-small-en", "Represent this sentence for searching relevant passages: ", ""},
	{"bge-base-en", "Represent this sentence for searching relevant passages: ", ""},
	{"bge-large-en", "Represent this sentence for searching relevant passages: ", ""},
}

// withPrefixes returns an Embedder that writes the prefixes of its model before the texts.
func withPrefixes(e model.Embedder) model.Embedder {
	name := strings.ToLower(e.Info().Name)
	for _, p := range prefixes {
		if strings.Contains(name, p.name) {
			return &prefixed{e, p.query, p.document}
		}
	}
	return e
}

// prefixed is an Embedder with prefixes.
type prefixed struct {
	model.Embedder
	query, document string
}

// Embed calls the model with the texts after their prefix; a text that has it stays as it is.
func (p *prefixed) Embed(ctx context.Context, texts []string) ([][]float32, model.Usage, error) {
	prefix := p.document
	if model.IsForQueries(ctx) {
		prefix = p.query
	}
	all := make([]string, len(texts))
	for i, text := range texts {
		if all[i] = text; !strings.HasPrefix(text, prefix) {
			all[i] = prefix + text
		}
	}
	return p.Embedder.Embed(ctx, all)
}
