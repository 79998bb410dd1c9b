// Package buckets opens buckets of Amazon S3, Google Cloud Storage and Azure Blob Storage for
// package remotefs.
package buckets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"
	"path"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/internal/remotefs"
)

// All returns the services of the clouds.
func All() remotefs.Buckets {
	return remotefs.Buckets{
		"s3": opener(func(ctx context.Context, object remotefs.BucketObject, _ *http.Client) (*bucket, error) {
			return openS3(ctx, object)
		}),
		"gs": opener(openGoogle), "azure": opener(openAzure),
	}
}

// opener adapts the function of a service, which creates a client without calling it.
func opener(open func(context.Context, remotefs.BucketObject, *http.Client) (*bucket, error)) remotefs.BucketOpener {
	return func(ctx context.Context, object remotefs.BucketObject, client *http.Client) (remotefs.Bucket, error) {
		opened, err := open(ctx, object, client)
		if err != nil {
			return nil, err
		}
		opened.shown = object.Scheme + "://" + object.Bucket + "/"
		return opened, nil
	}
}

// bucket is a bucket of any cloud.
type bucket struct {
	*blob.Bucket
	shown     string             // its address
	anonymous string             // the cloud, such as AWS, if it is used without credentials
	release   func()             // closes connections of the client; may be nil
	status    func(error) int    // HTTP status of a client's error, 0 for none
	detail    func(error) string // cause of a client's error, empty for none
}

// Open opens an object for reading.
func (b *bucket) Open(ctx context.Context, key string) (io.ReadCloser, error) {
	in, err := b.NewReader(ctx, key, nil)
	if err != nil {
		return nil, b.explain(key, err)
	}
	return in, nil
}

// List returns the objects whose keys begin with a prefix.
func (b *bucket) List(ctx context.Context, prefix string) iter.Seq2[remotefs.Object, error] {
	return func(yield func(remotefs.Object, error) bool) {
		all := b.Bucket.List(&blob.ListOptions{Prefix: prefix})
		for {
			object, err := all.Next(ctx)
			switch {
			case errors.Is(err, io.EOF):
				return
			case err != nil:
				yield(remotefs.Object{}, b.explain(prefix, err))
				return
			case !yield(remotefs.Object{Address: object.Key, Size: object.Size, Modified: object.ModTime}, nil):
				return
			}
		}
	}
}

// Create opens an object for writing.
func (b *bucket) Create(ctx context.Context, key string) (remotefs.Upload, error) {
	ctx, cancel := context.WithCancel(ctx)
	in, out := io.Pipe()
	u := &bucketUpload{out: out, cancel: cancel, result: make(chan error, 1)}
	kind := mime.TypeByExtension(path.Ext(key))
	if kind == "" {
		kind = "application/octet-stream"
	}
	// Upload, not NewWriter: the writer of azureblob panics if an upload fails
	// during Close.
	go func() {
		err := b.Upload(ctx, key, in, &blob.WriterOptions{ContentType: kind})
		if err != nil {
			err = b.explain(key, err)
		}
		_ = in.CloseWithError(err) // stops the writer; never returns an error
		u.result <- err
	}()
	return u, nil
}

// Close closes the connections of the client.
func (b *bucket) Close() error {
	if b.release != nil {
		b.release()
	}
	return b.Bucket.Close()
}

// bucketUpload passes what is written to a concurrent upload.
type bucketUpload struct {
	out    *io.PipeWriter
	cancel context.CancelFunc
	result chan error // of the upload
	done   bool
}

// Write passes bytes to the upload.
func (u *bucketUpload) Write(p []byte) (int, error) { return u.out.Write(p) }

// Commit waits for the end of the upload.
func (u *bucketUpload) Commit() error {
	if u.done {
		return nil
	}
	u.done = true
	defer u.cancel()
	_ = u.out.Close() // never returns an error
	return <-u.result
}

// Abort cancels the upload.
func (u *bucketUpload) Abort() error {
	if u.done {
		return nil
	}
	u.done = true
	u.cancel()
	_ = u.out.CloseWithError(context.Canceled) // without an error the part would be uploaded
	<-u.result                                 //nolint:errcheck // it is the cancellation
	return nil
}

// explain converts an error of a client, whose text may contain the signed request.
func (b *bucket) explain(key string, err error) error {
	address := b.shown + key
	status := b.status(err)
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &remotefs.AccessError{Address: address, Why: "canceled", Err: err}
	case gcerrors.Code(err) == gcerrors.NotFound, status == http.StatusNotFound:
		return &remotefs.NotFoundError{Address: address}
	case b.anonymous != "" && (status == http.StatusForbidden || status == http.StatusUnauthorized):
		return &remotefs.AccessError{Address: address, Code: status, Why: fmt.Sprintf("the server answered %d %s; the request had no credentials, because none of %s were found",
			status, http.StatusText(status), b.anonymous)}
	case b.detail(err) != "":
		return &remotefs.AccessError{Address: address, Code: status, Why: httpx.SingleLine(b.detail(err), 200), Err: err}
	case status != 0:
		return &remotefs.StatusError{Address: address, Code: status}
	}
	return &remotefs.AccessError{Address: address, Why: httpx.Reason(err), Err: err}
}
