package provider

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/spec"
)

// Offered is a model that a server has.
type Offered struct {
	ID       string
	Shutdown string // YYYY-MM-DD, where the server reports it; empty otherwise
}

// ErrNoList is returned for servers that have no list of models.
var ErrNoList = errors.New("the provider has no list of models that can be asked")

// listTime limits the request of a list.
const listTime = 30 * time.Second

// ListOffered requests the list of models from the server of a model.
func ListOffered(ctx context.Context, m *spec.Model, opts Options) ([]Offered, error) {
	opts = opts.withDefaults()
	made, err := prepare(m, opts)
	switch {
	case err != nil:
		return nil, err
	case made.missing != "":
		return nil, &CredentialsError{Model: m.ID, Needs: made.missing}
	}
	request, ok := listRequests[m.Provider]
	if !ok {
		return nil, ErrNoList
	}
	address, header, err := request(made.config)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	return askList(ctx, address, header, made.config)
}

// listRequests are the addresses and headers of the lists, by provider.
var listRequests = map[string]func(wire.Config) (string, http.Header, error){
	"openai":       bearerList("models"),
	"mistral":      bearerList("models"),
	"azure-openai": azureList,
	"ollama":       bearerList("api", "tags"),
	"anthropic": func(c wire.Config) (string, http.Header, error) {
		return listAddress(c, "v1", http.Header{"X-Api-Key": {c.Key}, "Anthropic-Version": {"2023-06-01"}}, "models")
	},
	"google-ai": func(c wire.Config) (string, http.Header, error) {
		return listAddress(c, "v1beta", http.Header{"X-Goog-Api-Key": {c.Key}}, "models")
	},
}

// bearerList is the list at a path below the base URL, with the key as a token.
func bearerList(parts ...string) func(wire.Config) (string, http.Header, error) {
	return func(c wire.Config) (string, http.Header, error) {
		header := http.Header{}
		if c.Key != "" {
			header.Set("Authorization", "Bearer "+c.Key)
		}
		return listAddress(c, "", header, parts...)
	}
}

// azureList is the list of a resource of Azure. Its ids name models, not deployments.
func azureList(c wire.Config) (string, http.Header, error) {
	header := http.Header{}
	if c.Key != "" {
		header.Set("Api-Key", c.Key)
	}
	return listAddress(c, "", header, "openai", "v1", "models")
}

// listAddress joins the base URL and a path, below a version that the base does not have.
func listAddress(c wire.Config, version string, header http.Header, parts ...string) (string, http.Header, error) {
	base, err := url.Parse(c.BaseURL)
	if err != nil {
		return "", nil, errors.New("the base URL is invalid")
	}
	if version != "" && !wire.IsVersion(path.Base(base.Path)) {
		base = base.JoinPath(version)
	}
	address := base.JoinPath(parts...)
	if version != "" {
		address.RawQuery = map[string]string{"v1": "limit=1000", "v1beta": "pageSize=1000"}[version]
	}
	return address.String(), header, nil
}

// askList requests a list and reads it.
func askList(ctx context.Context, address string, header http.Header, c wire.Config) ([]Offered, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, errors.New("the base URL is invalid")
	}
	req.Header = header
	if c.Authorize != nil && c.Key == "" {
		if err := c.Authorize(req, nil); err != nil {
			return nil, err
		}
	}
	answer, err := c.HTTP.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%s: %s", httpx.Server(req.URL), httpx.Reason(err))
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 16<<20))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %s", httpx.Server(req.URL), httpx.Reason(err))
	case answer.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s: HTTP %d: %s", httpx.Server(req.URL), answer.StatusCode, cmp.Or(reasonOf(text, c.Key), http.StatusText(answer.StatusCode)))
	}
	return readOffered(text)
}

// isDay reports whether a text is a day.
func isDay(text string) bool {
	_, err := time.Parse(time.DateOnly, text)
	return err == nil
}

// reasonOf returns the message of an error's body.
func reasonOf(text []byte, key string) string {
	message := string(text)
	if f, ok := wire.ParseAPIError(text); ok && f.Message != "" {
		message = f.Message
	}
	return httpx.Excerpt(httpx.Scrub(message, key), 200)
}

// readOffered reads the list of OpenAI, Anthropic, Google or Ollama.
func readOffered(text []byte) ([]Offered, error) {
	var list struct {
		Data   []json.RawMessage `json:"data"`
		Models []json.RawMessage `json:"models"`
	}
	if err := json.Unmarshal(text, &list); err != nil || list.Data == nil && list.Models == nil {
		if httpx.IsPage(string(text)) {
			return nil, errors.New(strings.TrimSuffix("the answer is a web page, not a list of models: "+httpx.Excerpt(string(text), 200), ": "))
		}
		return nil, errors.New("the answer is not a list of models")
	}
	var all []Offered
	for _, raw := range slices.Concat(list.Data, list.Models) {
		var m struct {
			ID       string          `json:"id"`
			Name     string          `json:"name"`
			Shutdown json.RawMessage `json:"shutdown_date"`
		}
		if json.Unmarshal(raw, &m) != nil || m.ID == "" && m.Name == "" {
			all = append(all, Offered{}) // an entry that cannot be read
			continue
		}
		var shutdown string
		_ = json.Unmarshal(m.Shutdown, &shutdown) // none if it is not a text
		if shutdown, _, _ = strings.Cut(shutdown, "T"); !isDay(shutdown) {
			shutdown = ""
		}
		all = append(all, Offered{cmp.Or(m.ID, strings.TrimPrefix(m.Name, "models/")), shutdown})
	}
	return all, nil
}
