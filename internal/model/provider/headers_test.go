package provider_test

import (
	"testing"

	"github.com/qtype-dev/qtype/internal/model/provider"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/modeltest"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// TestHeaders: the headers of a model are sent with each request, with their secrets.
func TestHeaders(t *testing.T) {
	s := modeltest.Serve(t, modeltest.Respond(200, "application/json", answer))
	m := &spec.Model{ID: "m", Provider: "openai", BaseURL: s.URL, Headers: map[string]spec.Secret{"x-team": spec.NewSecret("shop"), "user-agent": spec.NewSecret("shop/1"), "x-pass": {Ref: &spec.SecretReference{SecretName: "pass"}}}}
	c, err := provider.New(m, provider.Options{Getenv: env(), Secret: func(spec.Secret) (string, error) { return "p-1", nil }})
	testkit.Must(t, err)
	_, err = model.Call(t.Context(), c, model.Request{Messages: []chat.Message{chat.Text(chat.User, "x")}}, nil)
	testkit.Must(t, err)
	if h := s.Requests()[0].Header; h.Get("X-Team") != "shop" || h.Get("X-Pass") != "p-1" || h.Get("User-Agent") != "shop/1" {
		t.Errorf("got %v", h)
	}
}

// TestContentCoding: an answer in a coding that the client cannot read names it.
func TestContentCoding(t *testing.T) {
	for _, stream := range []bool{false, true} {
		s := modeltest.Serve(t, modeltest.Respond(200, "application/json", "x\x9c\x03", "Content-Encoding", "br"))
		c, err := provider.New(&spec.Model{ID: "m", Provider: "openai", BaseURL: s.URL}, provider.Options{Getenv: env()})
		testkit.Must(t, err)
		_, err = model.Call(t.Context(), c, model.Request{Stream: stream, Messages: []chat.Message{chat.Text(chat.User, "x")}}, nil)
		if want := "model m: the response has the content coding br, which was not requested (" + s.URL + ")"; err == nil || err.Error() != want || s.Calls() != 1 {
			t.Errorf("%d calls, %v", s.Calls(), err)
		}
	}
}
