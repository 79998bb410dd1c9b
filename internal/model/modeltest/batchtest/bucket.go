package batchtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/remotefs"
)

// Files are the files of buckets that a server reads and writes.
type Files interface {
	Load(address string) (content []byte, exists bool)
	Save(address string, content []byte)
}

// SetFiles makes the server read and write files elsewhere than in its own bucket.
func (s *Server) SetFiles(f Files) { s.remote = f }

// load returns a file of a bucket. The mutex is locked.
func (s *Server) load(address string) (content []byte, exists bool) {
	if s.remote != nil {
		return s.remote.Load(address)
	}
	_, key, _ := strings.Cut(address, "://")
	content, exists = s.files["bucket/"+key]
	return content, exists
}

// save stores a file of a bucket. The mutex is locked.
func (s *Server) save(address string, content []byte) {
	if s.remote != nil {
		s.remote.Save(address, content)
		return
	}
	_, key, _ := strings.Cut(address, "://")
	s.files["bucket/"+key] = content
}

// bucket answers a request of a Bucket.
func (s *Server) bucket(w http.ResponseWriter, r *http.Request, key string, body []byte) {
	content, exists := s.files["bucket"+key]
	switch {
	case r.URL.Query().Has("list"):
		keys := []string{}
		for _, name := range slices.Sorted(maps.Keys(s.files)) {
			if strings.HasPrefix(name, "bucket"+key) {
				keys = append(keys, strings.TrimPrefix(name, "bucket"+key))
			}
		}
		reply(w, 200, keys)
	case r.Method == http.MethodPut:
		s.files["bucket"+key] = body
	case !exists:
		w.WriteHeader(http.StatusNotFound)
	default:
		_, _ = w.Write(content) // the client has gone otherwise
	}
}

// Buckets returns the buckets of the server at an address, with any name and scheme.
func Buckets(url string) remotefs.Buckets {
	open := func(_ context.Context, object remotefs.BucketObject, _ *http.Client) (remotefs.Bucket, error) {
		return &bucket{url + "/bucket/" + object.Bucket + "/"}, nil
	}
	return remotefs.Buckets{"s3": open, "gs": open}
}

// bucket is a bucket of a server.
type bucket struct{ url string }

// send sends a request, and returns the answer.
func (b *bucket) send(ctx context.Context, method, key string, body []byte) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, method, b.url+key, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	switch {
	case err != nil:
		return nil, &remotefs.AccessError{Address: key, Why: "lost the connection", Err: err}
	case resp.StatusCode == http.StatusOK:
		return resp.Body, nil
	}
	_ = resp.Body.Close() // only read
	if resp.StatusCode == http.StatusNotFound {
		return nil, &remotefs.NotFoundError{Address: key}
	}
	return nil, &remotefs.StatusError{Address: key, Code: resp.StatusCode}
}

// Open opens a file.
func (b *bucket) Open(ctx context.Context, key string) (io.ReadCloser, error) {
	return b.send(ctx, http.MethodGet, key, nil)
}

// Create begins a file.
func (b *bucket) Create(ctx context.Context, key string) (remotefs.Upload, error) {
	return &upload{ctx: ctx, bucket: b, key: key}, nil
}

// List returns the files whose names begin with a prefix.
func (b *bucket) List(ctx context.Context, prefix string) iter.Seq2[remotefs.Object, error] {
	return func(yield func(remotefs.Object, error) bool) {
		var keys []string
		in, err := b.send(ctx, http.MethodGet, prefix+"?list", nil)
		if err == nil {
			err = errors.Join(json.NewDecoder(in).Decode(&keys), in.Close())
		}
		if err != nil {
			yield(remotefs.Object{}, err)
			return
		}
		for _, key := range keys {
			if !yield(remotefs.Object{Address: prefix + key}, nil) {
				return
			}
		}
	}
}

// Close does nothing.
func (b *bucket) Close() error { return nil }

// upload is a file that is written.
type upload struct {
	bytes.Buffer
	ctx    context.Context //nolint:containedctx // of Create
	bucket *bucket
	key    string
}

// Commit stores the file.
func (u *upload) Commit() error {
	out, err := u.bucket.send(u.ctx, http.MethodPut, u.key, u.Bytes())
	if err == nil {
		err = out.Close()
	}
	return err
}

// Abort does nothing.
func (u *upload) Abort() error { return nil }
