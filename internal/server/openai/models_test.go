package openai_test

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"net/http"
	"slices"
	"testing"

	"github.com/qtype-dev/qtype/internal/server"
	"github.com/qtype-dev/qtype/internal/server/access"
)

func TestModels(t *testing.T) {
	s := keyed(t, access.Limits{})
	for key, want := range map[string][]string{
		"ada":  {"talk", "brief", "once", "plain", "work", "approve", "greet", "late", "vectors"},
		"boss": {"talk", "brief", "once", "plain", "work", "approve", "greet", "late", "guarded", "vectors", "private"},
	} {
		var list struct {
			Object string
			Data   []struct {
				ID, Object string
				Owner      string `json:"owned_by"`
				Created    int64
			}
		}
		auth := "Bearer " + key + "-key-0123456789"
		s.do(http.MethodGet, "/v1/models", "", "Authorization", auth).into(t, &list)
		var ids []string
		for _, m := range list.Data {
			ids = append(ids, m.ID)
			if m.Object != "model" || m.Owner == "" || m.Created == 0 {
				t.Errorf("model %+v", m)
			}
		}
		if !slices.Equal(ids, want) || list.Object != "list" {
			t.Errorf("%s: models %v", key, ids)
		}
		status := s.do(http.MethodGet, "/v1/models/guarded", "", "Authorization", auth).status
		if status != map[string]int{"ada": 404, "boss": 200}[key] {
			t.Errorf("%s: status %d", key, status)
		}
		status = s.do(http.MethodPost, "/v1/embeddings", `{"model":"private","input":"x"}`, "Authorization", auth).status
		if status != map[string]int{"ada": 404, "boss": 200}[key] {
			t.Errorf("%s: embedding status %d", key, status)
		}
	}
}

func TestEmbeddings(t *testing.T) {
	s := serve(t, nil, server.Options{})
	type list[V any] struct {
		Object, Model string
		Data          []struct {
			Object    string
			Index     int
			Embedding V
		}
		Usage struct {
			Prompt int `json:"prompt_tokens"`
			Total  int `json:"total_tokens"`
		}
	}
	var plain list[[]float32]
	s.post("/v1/embeddings", `{"model":"vectors","input":["one two","three"],"user":"x","dimensions":8}`).into(t, &plain)
	var coded list[string]
	s.post("/v1/embeddings", `{"model":"vectors","input":["one two","three"],"encoding_format":"base64"}`).into(t, &coded)
	if len(plain.Data) != 2 || len(coded.Data) != 2 || plain.Usage.Prompt != 3 || plain.Usage.Total != 3 || plain.Model != "vectors" {
		t.Fatalf("lists %+v, %+v", plain, coded)
	}
	for i, d := range plain.Data {
		raw, err := base64.StdEncoding.DecodeString(coded.Data[i].Embedding)
		var same []float32
		for len(raw) >= 4 {
			same, raw = append(same, math.Float32frombits(binary.LittleEndian.Uint32(raw))), raw[4:]
		}
		if err != nil || d.Index != i || len(same) != 8 || !slices.Equal(same, d.Embedding) {
			t.Errorf("%v: %v and %v", err, d, same)
		}
	}
	for body, want := range map[string]int{
		`{"model":"vectors","input":"x"}`:                         200,
		`{"model":"vectors","input":""}`:                          400,
		`{"model":"vectors","input":[]}`:                          400,
		`{"model":"vectors","input":[1,2]}`:                       400,
		`{"model":"vectors"}`:                                     400,
		`{"input":"x"}`:                                           400,
		`{"model":"vectors","input":"x","dimensions":3}`:          400,
		`{"model":"vectors","input":"x","encoding_format":"hex"}`: 400,
		`{"model":"talk","input":"x"}`:                            404,
	} {
		if r := s.post("/v1/embeddings", body); r.status != want {
			t.Errorf("%s: %d %s", body, r.status, r.body)
		}
	}
}
