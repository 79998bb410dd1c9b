package openai

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/internal/wire"
)

// Embedder is one embedding model behind one server that has /embeddings. It
// is safe for concurrent use.
type Embedder struct {
	server   *wire.Server
	endpoint string
}

// NewEmbedder makes an Embedder. Nothing is called yet.
func NewEmbedder(c Config) (*Embedder, error) {
	s, err := wire.NewServer(c, wire.Format{Answers: "list of embeddings", Example: example, Reserved: []string{"input", "model"}})
	if err != nil {
		return nil, err
	}
	return &Embedder{server: s, endpoint: s.Base.JoinPath("embeddings").String()}, nil
}

// Info tells what the model is.
func (e *Embedder) Info() model.Info { return e.server.Info }

// Embed sends one request with all the texts; model.WithBatches cuts and repeats.
func (e *Embedder) Embed(ctx context.Context, texts []string) ([][]float32, model.Usage, error) {
	var got embeddings
	call := wire.Call{URL: e.endpoint, Header: bearer(e.server.Key), Body: e.body(texts)}
	err := e.server.Ask(ctx, call, func(raw []byte) error { return got.read(raw, len(texts)) })
	return got.vectors, model.Usage{Input: got.Usage.Prompt}, err
}

// body is a request. The length of the vectors is asked for where the model is
// one that can be asked; other servers take the parameter for a fault, and the
// document may still set it in inference_params.
func (e *Embedder) body(texts []string) map[string]any {
	info := e.server.Info
	fields := make(map[string]any, len(e.server.Encoded)+3)
	if info.Dimensions > 0 && strings.HasPrefix(info.Name, "text-embedding-3-") {
		fields["dimensions"] = info.Dimensions
	}
	for name, raw := range e.server.Encoded {
		fields[name] = raw
	}
	fields["model"], fields["input"] = info.Name, texts
	return fields
}

// embeddings is an answer.
type embeddings struct {
	Data []struct {
		Index  *int            `json:"index"`     // of the text; the place in the list where it is missing
		Vector json.RawMessage `json:"embedding"` // numbers, or little-endian float32 in base64
	} `json:"data"`
	Usage usage `json:"usage"`

	vectors [][]float32 // in the order of the texts
}

// read takes an answer to that many texts.
func (a *embeddings) read(raw []byte, texts int) error {
	if err := json.Unmarshal(raw, a); err != nil {
		return wire.Shape(err)
	}
	if a.Data == nil {
		return errors.New("it holds no data")
	}
	if len(a.Data) != texts {
		return fmt.Errorf("it holds %d vectors for %d texts", len(a.Data), texts)
	}
	vectors := make([][]float32, texts)
	for i, d := range a.Data {
		at := i
		if d.Index != nil {
			at = *d.Index
		}
		if at < 0 || at >= texts || vectors[at] != nil {
			return fmt.Errorf("it has an index %d that is not one of the %d texts, or has it twice", at, texts)
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

// vector reads one vector in either encoding.
func vector(raw json.RawMessage) ([]float32, error) {
	v := []float32{}
	if len(raw) == 0 || raw[0] != '"' {
		if json.Unmarshal(raw, &v) != nil || v == nil {
			return nil, errors.New("an embedding in it is not a list of numbers")
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
		return nil, errors.New("an embedding in it is neither a list of numbers nor float32 in base64")
	}
	for ; len(bytes) > 0; bytes = bytes[4:] {
		v = append(v, math.Float32frombits(binary.LittleEndian.Uint32(bytes)))
	}
	return v, nil
}
