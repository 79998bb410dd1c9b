package mediafile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/internal/mediatype"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/tool"
)

const (
	maxImage        = 20 << 20  // bytes of an image or a sound
	maxFile         = 100 << 20 // bytes of another file
	downloadTimeout = time.Minute
)

// maxSize returns the largest size of media of a kind, in bytes.
func maxSize(kind string) int64 {
	if kind == "image" || kind == "audio" {
		return maxImage
	}
	return maxFile
}

func checkSize(kind string, size int64) error {
	if limit := maxSize(kind); size > limit {
		return fmt.Errorf("it is larger than %d MiB, the limit of type %s", limit>>20, kind)
	}
	return nil
}

// open reads the file that a name refers to.
func (s *Source) open(ctx context.Context, kind, name string) (any, error) {
	if s == nil || s.Base == "" {
		return nil, fmt.Errorf(`%s: files cannot be named here: pass the content as a data URL or {"base64": "…"}`, shortName(name))
	}
	address := remotefs.Join(s.Base, strings.TrimSpace(name))
	_, remote := remotefs.Remote(address)
	if _, far := remotefs.Remote(s.Base); far && !remote {
		return nil, fmt.Errorf("%s: rows of a remote file cannot name files of this computer", shortName(name))
	}
	ctx, cancel := context.WithTimeoutCause(ctx, downloadTimeout, fmt.Errorf("not read within %s", downloadTimeout))
	defer cancel()
	data, err := s.read(ctx, kind, address)
	if err == nil {
		err = checkSize(kind, int64(len(data)))
	}
	if err == nil {
		err = mediatype.Check(kind, data)
	}
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if at := remotefs.Redacted(address); !strings.Contains(err.Error(), at) {
			err = fmt.Errorf("%s: %w", at, err)
		}
		return nil, err
	}
	return data, nil
}

// shortName returns a name for an error: a text that was not meant as one may be long.
func shortName(name string) string {
	const shown = 80 // characters
	name = remotefs.Redacted(name)
	if runes := []rune(name); len(runes) > shown {
		return string(runes[:shown]) + "…"
	}
	return name
}

// read returns the content of an address, and one byte more than the limit if it is larger.
func (s *Source) read(ctx context.Context, kind, address string) ([]byte, error) {
	in, err := s.stream(ctx, kind, address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }() // only read
	return io.ReadAll(io.LimitReader(in, maxSize(kind)+1))
}

func (s *Source) stream(ctx context.Context, kind, address string) (io.ReadCloser, error) {
	scheme, remote := remotefs.Remote(address)
	switch {
	case scheme == "http" || scheme == "https":
		client := s.HTTP
		if client == nil {
			client = tool.PublicClient(nil)
		}
		in, mediaType, err := Download(ctx, client, address)
		if err == nil {
			if err = checkType(kind, mediaType); err != nil {
				_ = in.Close()
			}
		}
		if err != nil {
			return nil, err
		}
		return &lastBody{in, client, s.HTTP == nil}, nil
	case !remote:
		return s.local(ctx, remotefs.Path(address))
	}
	return remotefs.Open(ctx, address)
}

// local opens a file of this computer. Rows may come from others, so they name files in the
// folder of their file and below it only; symbolic links do not lead out of it.
func (s *Source) local(ctx context.Context, path string) (io.ReadCloser, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, errors.New("is not a regular file")
	}
	if s.AnyFile {
		return remotefs.Open(ctx, path)
	}
	folder, err := filepath.Abs(filepath.Dir(remotefs.Path(s.Base)))
	if err != nil {
		return nil, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	name, err := filepath.Rel(folder, path)
	if err != nil || !filepath.IsLocal(name) {
		return nil, fmt.Errorf("rows name files in the folder of their file, %s, and below it", folder)
	}
	file, err := os.OpenInRoot(folder, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errors.New("does not exist")
	case err != nil:
		return nil, textfmt.WithoutPath(err)
	}
	return file, nil
}

// lastBody closes the connections of its client too, if that was made for it.
type lastBody struct {
	io.ReadCloser
	client *http.Client
	own    bool
}

func (b *lastBody) Close() error {
	err := b.ReadCloser.Close()
	if b.own {
		b.client.CloseIdleConnections()
	}
	return err
}

// checkType returns an error if a server declares a page or an object where an image, a sound
// or a film is expected: an error page, or a sign-in. Other types are often wrong, so the
// content decides.
func checkType(kind, declared string) error {
	if kind == "file" || kind == "bytes" {
		return nil
	}
	switch t, _, _ := mime.ParseMediaType(declared); t {
	case "text/html", "application/json", "application/xhtml+xml":
		return fmt.Errorf("expected the type %s, the server sends %s", kind, t)
	}
	return nil
}

// Download requests a file and returns its declared media type too.
func Download(ctx context.Context, client *http.Client, address string) (io.ReadCloser, string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil || req.URL.Host == "" {
		return nil, "", errors.New("invalid URL")
	}
	req.Header.Set("User-Agent", httpx.UserAgent())
	resp, err := client.Do(req)
	var failed *url.Error
	if errors.As(err, &failed) { // its text has the address with its query, which may be a signature
		err = failed.Err
	}
	if err != nil {
		return nil, "", err
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return nil, "", fmt.Errorf("the server answers with status %d", resp.StatusCode)
	}
	return resp.Body, resp.Header.Get("Content-Type"), nil
}
