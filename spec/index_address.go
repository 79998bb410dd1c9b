package spec

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// IsServerAddress reports whether a text is the http or https address of the server of an index.
func IsServerAddress(text string) bool {
	u, err := url.Parse(strings.TrimRight(text, "/"))
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}

// serverAddress reports a text that is not the address of the server of an index.
func serverAddress(key, text string) []*ArgumentError {
	if IsServerAddress(text) {
		return nil
	}
	return []*ArgumentError{{Key: key, Message: "expected an address that begins with http:// or https:// and has a host"}}
}

// ParseRedisAddress parses the address of a Redis server. Its error does not contain the
// address, which may have a password.
func ParseRedisAddress(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || !strings.EqualFold(u.Scheme, "redis") && !strings.EqualFold(u.Scheme, "rediss") {
		return nil, errors.New("must be a URL such as redis://HOST:6379/0, or rediss:// for TLS")
	}
	return u, nil
}

// redisAddress reports a text that is not the address of a Redis server.
func redisAddress(key, text string) []*ArgumentError {
	if _, err := ParseRedisAddress(text); err != nil {
		return []*ArgumentError{{Key: key, Message: err.Error()}}
	}
	return nil
}

// dimensioned is implemented by arguments with the length of the vectors.
type dimensioned interface {
	dimensions() (key string, n int) // n is 0 if it is not set
}

func (a *PGVectorArguments) dimensions() (key string, n int)   { return "embed_dim", a.EmbedDim }
func (a *OpenSearchArguments) dimensions() (key string, n int) { return "dim", a.Dim }

// CheckDimensions reports decoded arguments whose vectors have another length than the
// vectors of the embedding model; nil if they match.
func (x *VectorIndex) CheckDimensions(args any) *ArgumentError {
	set, ok := args.(dimensioned)
	model := x.EmbeddingModel.To
	if !ok || model == nil {
		return nil
	}
	key, n := set.dimensions()
	if n == 0 || n == model.Dimensions {
		return nil
	}
	return &ArgumentError{Key: key, Message: fmt.Sprintf("expected %d, the dimensions of the embedding model %s, not %d", model.Dimensions, model.ID, n)}
}
