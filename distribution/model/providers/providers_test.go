package providers_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/distribution/model/providers"
	"github.com/qtype-dev/qtype/internal/model/provider"
	"github.com/qtype-dev/qtype/spec"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// env returns an environment of pairs of name and value.
func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i+1 < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

// A model of a bridge needs the key of its provider.
func TestNew_NoCredentials(t *testing.T) {
	_, err := provider.New(&spec.Model{ID: "gpt", Provider: "langchaingo:mistral"}, provider.Options{Clients: providers.Clients(), Getenv: env()})
	if want := "model gpt: no credentials: set MISTRAL_API_KEY or give it an auth"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
