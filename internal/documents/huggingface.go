package documents

import (
	"compress/gzip"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/documents/format"
	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// huggingFace reads a file in JSON Lines of a repository on Hugging Face.
type huggingFace struct {
	path    string
	address string // of the content
	args    *spec.HuggingFaceArgs
	env     Env
	limits  format.Limits
}

func newHuggingFace(args *spec.HuggingFaceArgs, loader *spec.HuggingFaceLoaderArgs, env Env) (Source, error) {
	address, err := resolveAddress(args.Endpoint, loader.Path)
	return &huggingFace{path: loader.Path, address: address, args: args, env: env, limits: env.Limits}, err
}

// resolveAddress returns the address of a file's content:
// ENDPOINT/datasets/OWNER/NAME/resolve/REVISION/FILE. A path without datasets/ or spaces/
// is that of a model, as in HfFileSystem.
func resolveAddress(endpoint, location string) (string, error) {
	parts := strings.Split(strings.TrimPrefix(location, "hf://"), "/")
	kind := []string(nil)
	if parts[0] == "datasets" || parts[0] == "spaces" {
		kind, parts = parts[:1], parts[1:]
	}
	if len(parts) < 3 || strings.Contains("/"+location+"/", "/../") {
		return "", fmt.Errorf("path: %q is not datasets/OWNER/NAME/FILE", location)
	}
	name, revision, found := strings.Cut(parts[1], "@")
	if !found {
		revision = "main"
	}
	u, err := webAddress(endpoint)
	if err != nil {
		return "", fmt.Errorf("endpoint: %w", err)
	}
	escaped := slices.Concat(kind, []string{parts[0], name, "resolve", revision}, parts[2:])
	for i, part := range escaped {
		escaped[i] = url.PathEscape(part)
	}
	return strings.TrimSuffix(u.String(), "/") + "/" + strings.Join(escaped, "/"), nil
}

// Read reads a document from each line. As in HuggingFaceFSReader, a line that is not
// JSON is skipped.
func (h *huggingFace) Read(ctx context.Context, emit Emit) error {
	client, err := h.env.HTTP(h.address, h.args.AllowPrivate)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, downloadTime)
	defer cancel()
	resp, err := followRedirects(ctx, client, h.address)
	if err != nil {
		return fmt.Errorf("%s: %w", h.path, err)
	}
	defer func() { _ = resp.Body.Close() }() // the rest is not needed
	body := resp.Body
	if path.Ext(h.path) == ".gz" {
		if body, err = gzip.NewReader(resp.Body); err != nil {
			return fmt.Errorf("%s: is not a gzip file", h.path)
		}
	}
	err = eachLine(ctx, body, h.limits.MaxInput(), func(number int, line string) error {
		v, err := value.Parse(line)
		if err != nil {
			return nil //nolint:nilerr // see the comment of Read
		}
		metadata := map[string]any{"file_path": h.path, "file_name": baseName(h.path)}
		return emit(&Document{ID: documentID(fmt.Sprintf("%s#%d", h.address, number)), Name: baseName(h.path), URI: h.address, Text: pythonRepr(v), Metadata: metadata}, nil)
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("%s: %w", h.path, err)
	}
	return err
}

// followRedirects sends a request and follows redirects, which lead to the servers that
// store large files. The client sends credentials to the first server only.
func followRedirects(ctx context.Context, client *http.Client, address string) (*http.Response, error) {
	u, err := webAddress(address)
	if err != nil {
		return nil, err
	}
	for range maxRedirects + 1 {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
		if err != nil {
			return nil, err
		}
		req.Header.Set("User-Agent", httpx.UserAgent())
		resp, err := client.Do(req)
		if err != nil {
			return nil, fmt.Errorf("%s", httpx.Reason(err))
		}
		location := resp.Header.Get("Location")
		if resp.StatusCode == http.StatusOK {
			return resp, nil
		}
		_ = resp.Body.Close() // a page for browsers
		if resp.StatusCode < 300 || resp.StatusCode >= 400 || location == "" {
			return nil, &statusError{resp.StatusCode}
		}
		next, err := u.Parse(location)
		if err == nil {
			next, err = webAddress(next.String())
		}
		if err != nil {
			return nil, err
		}
		if u.Scheme == "https" && next.Scheme == "http" {
			return nil, fmt.Errorf("redirects from https to http")
		}
		u = next
	}
	return nil, fmt.Errorf("stopped after %d redirects", maxRedirects)
}
