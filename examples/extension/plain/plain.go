// Package plain calls models at servers that get a conversation as text and answer with a text.
package plain

import (
	"context"
	"io"
	"iter"
	"net/http"
	"strings"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/part"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Part is the provider plain.
func Part() part.Part {
	return part.Provider(spec.Provider{
		Name: "plain", Doc: "a server that answers a text with a text",
		Key: spec.OptionalKey, KeyEnv: []string{"PLAIN_API_KEY"}, Auths: []string{"api_key", "bearer_token"},
		BaseURL: "http://127.0.0.1:8080", BaseURLDoc: "the address before `/MODEL`",
	}, func(c model.Connection) (model.Chat, error) { return plain{c}, nil }, nil)
}

type plain struct{ to model.Connection }

func (p plain) Info() model.Info { return p.to.Info }

func (p plain) Generate(ctx context.Context, req model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		var prompt strings.Builder
		for _, m := range req.Messages {
			prompt.WriteString(string(m.Role) + ": " + m.Text() + "\n")
		}
		yield(p.post(ctx, prompt.String()))
	}
}

// post returns the answer to a prompt. A temporary error is one after which the call is made again.
func (p plain) post(ctx context.Context, prompt string) (model.Event, error) {
	failed := &model.Error{Model: p.to.Info.ID, Endpoint: p.to.BaseURL, Message: "the server did not answer", Temporary: true}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.to.BaseURL+"/"+p.to.Info.Name, strings.NewReader(prompt))
	if err != nil {
		return model.Event{}, err
	}
	request.Header.Set("Authorization", "Bearer "+p.to.Key)
	response, err := p.to.HTTP.Do(request)
	if failed.Err = err; err != nil {
		return model.Event{}, failed
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if failed.Err, failed.Status = err, response.StatusCode; err != nil || failed.Status != http.StatusOK {
		failed.Message, failed.Temporary = string(text), failed.Status >= 429
		return model.Event{}, failed
	}
	return model.Event{Response: &model.Response{Message: chat.Text(chat.Assistant, string(text)), Finish: "stop"}}, nil
}
