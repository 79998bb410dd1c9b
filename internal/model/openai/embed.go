package openai

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/internal/modelparams"
	"github.com/qtype-dev/qtype/model"
)

// Embedder calls one embedding model of one server with /embeddings. It is safe for
// concurrent use.
type Embedder struct {
	server *wire.Server
	target
}

// NewEmbedder makes an Embedder. It calls nothing.
func NewEmbedder(c Config) (*Embedder, error) {
	s, err := wire.NewServer(c, embeddingFormat(example))
	if err != nil {
		return nil, err
	}
	return &Embedder{server: s, target: newTarget(s, "embeddings")}, nil
}

// embeddingFormat describes /embeddings.
func embeddingFormat(example string) wire.Format {
	return wire.Format{Answers: "list of embeddings", Example: example, Params: modelparams.Embeddings}
}

// Info describes the model.
func (e *Embedder) Info() model.Info { return e.server.Info }

// Embed sends one request with all texts; model.WithBatches splits and retries.
func (e *Embedder) Embed(ctx context.Context, texts []string) ([][]float32, model.Usage, error) {
	var got embeddings
	call := wire.Call{URL: e.endpoint, Header: e.header, Body: e.body(texts)}
	err := e.server.Ask(ctx, call, func(raw []byte) error { return got.read(raw, len(texts)) })
	return got.vectors, model.Usage{Input: int(got.Usage.Value.Prompt)}, err
}

// body encodes a request. It sets the length of the vectors for the models that accept
// it; other servers reject the parameter, and the document may set it in
// inference_params.
func (e *Embedder) body(texts []string) map[string]any {
	info := e.server.Info
	fields := make(map[string]any, len(e.server.Encoded)+3)
	if info.Dimensions > 0 && info.Known != nil && info.Known.DimensionsSet == catalogue.Yes {
		fields["dimensions"] = info.Dimensions
	}
	for name, raw := range e.server.Encoded {
		fields[name] = raw
	}
	fields["model"], fields["input"] = e.model, texts
	return fields
}

// embeddings is an answer.
type embeddings struct {
	Data []struct {
		Index  *wire.Count     `json:"index"`     // of the text; the position in the list if it is missing
		Vector json.RawMessage `json:"embedding"` // numbers, or little-endian float32 in base64
	} `json:"data"`
	Usage wire.Loose[usage] `json:"usage"`

	vectors [][]float32 // in the order of the texts
}

// read reads the response to that many texts.
func (a *embeddings) read(raw []byte, texts int) error {
	if err := json.Unmarshal(raw, a); err != nil {
		return wire.Shape(err)
	}
	if a.Data == nil {
		return errors.New("no data")
	}
	if len(a.Data) != texts {
		return fmt.Errorf("%d vectors for %d texts", len(a.Data), texts)
	}
	vectors := make([][]float32, texts)
	for i, d := range a.Data {
		at := i
		if d.Index != nil {
			at = int(*d.Index)
		}
		if at < 0 || at >= texts || vectors[at] != nil {
			return fmt.Errorf("index %d is not one of %d texts, or is repeated", at, texts)
		}
		v, err := vector(d.Vector)
		if err != nil {
			return err
		}
		vectors[at] = v
	}
	a.vectors = vectors
	return nil
}

// vector decodes one vector in either encoding.
func vector(raw json.RawMessage) ([]float32, error) {
	v := []float32{}
	if len(raw) == 0 || raw[0] != '"' {
		if json.Unmarshal(raw, &v) != nil || v == nil {
			return nil, errors.New("an embedding is not a list of numbers")
		}
		return v, nil
	}
	var bytes []byte
	var text string
	err := json.Unmarshal(raw, &text)
	if err == nil {
		bytes, err = base64.StdEncoding.DecodeString(text)
	}
	if err != nil || len(bytes)%4 != 0 {
		return nil, errors.New("an embedding is neither a list of numbers nor float32 in base64")
	}
	for ; len(bytes) > 0; bytes = bytes[4:] {
		v = append(v, math.Float32frombits(binary.LittleEndian.Uint32(bytes)))
	}
	return v, nil
}
