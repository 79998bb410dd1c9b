package googleai_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/model/googleai"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/modeltest"
)

func TestVertex_Contract(t *testing.T) {
	modeltest.Run(t, modeltest.Wire{
		Open: func(to modeltest.Target) (model.Chat, error) {
			return googleai.NewVertex(googleai.VertexConfig{Config: to.Config(), Project: "shop", Location: "europe-west4"})
		},
		Whole: whole, Stream: stream, Closing: 1, Kind: "text/event-stream", Reasoning: true, ErrorBody: errorBody,
		Parse: func(t testing.TB, r modeltest.Request) modeltest.Conversation {
			return parseAt(t, r, "/v1/projects/shop/locations/europe-west4/publishers/google/models/some-model", strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		},
		ErrorRecord: "data: " + errorBody(500, "it broke") + "\r\n\r\n",
	})
}

func TestVertexEmbedder(t *testing.T) {
	const answer = `{"predictions":[{"embeddings":{"values":[1,2],"statistics":{"token_count":3,"truncated":false}}},{"embeddings":{"values":[3,4],"statistics":{"token_count":4.0}}}]}`
	for name, c := range map[string]struct {
		answer, want string
		params       map[string]any
		query        bool
		task         string
	}{
		"vectors":      {answer, "[[1 2] [3 4]] 7", nil, false, "RETRIEVAL_DOCUMENT"},
		"a query":      {answer, "[[1 2] [3 4]] 7", nil, true, "RETRIEVAL_QUERY"},
		"own task":     {answer, "[[1 2] [3 4]] 7", map[string]any{"task_type": "CLUSTERING"}, true, "CLUSTERING"},
		"one too few":  {`{"predictions":[{"embeddings":{"values":[1,2]}}]}`, "1 vectors for 2 texts", nil, false, "RETRIEVAL_DOCUMENT"},
		"other answer": {`{"status":"ok"}`, "no predictions", nil, false, "RETRIEVAL_DOCUMENT"},
	} {
		t.Run(name, func(t *testing.T) {
			s := modeltest.Serve(t, modeltest.Respond(200, "application/json", c.answer))
			target := modeltest.Target{Info: model.Info{ID: "v", Name: "text-embedding-005", Dimensions: 2}, URL: s.URL, Key: "k", HTTP: s.Client(), Params: map[string]any{"auto_truncate": false}}
			maps.Copy(target.Params, c.params)
			ctx := t.Context()
			if c.query {
				ctx = model.ForQueries(ctx)
			}
			e, err := googleai.NewVertexEmbedder(googleai.VertexConfig{Config: target.Config(), Project: "p", Location: "global"})
			if err != nil {
				t.Fatal(err)
			}
			vectors, used, err := e.Embed(ctx, []string{"a", "b"})
			got := fmt.Sprint(vectors, " ", used.Input)
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, c.want) {
				t.Errorf("got %s, want %s", got, c.want)
			}
			sent := s.Requests()[0]
			body := modeltest.JSON(sent.Body)
			if body != strings.ReplaceAll(`{"instances":[{"content":"a","task_type":"TASK"},{"content":"b","task_type":"TASK"}],"parameters":{"autoTruncate":false,"outputDimensionality":2}}`, "TASK", c.task) ||
				sent.Path != "/v1/projects/p/locations/global/publishers/google/models/text-embedding-005:predict" || sent.Header.Get("Authorization") != "Bearer k" {
				t.Errorf("sent %s to %s", body, sent.Path)
			}
		})
	}
}
