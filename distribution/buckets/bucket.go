//go:build cloud

package remotefs

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
)

// checkBuilt returns nil: this build has all schemes of buckets.
func checkBuilt(string) error { return nil }

// openBucket creates the client of a bucket without calling it.
func openBucket(ctx context.Context, object bucketObject, client *http.Client) (bucketStore, error) {
	var opened *bucket
	var err error
	switch object.driver {
	case "s3":
		opened, err = openS3(ctx, object)
	case "gs":
		opened, err = openGoogle(ctx, object, client)
	case "azure":
		opened, err = openAzure(ctx, object, client)
	default:
		return nil, &SchemeError{Scheme: object.scheme, Supported: supported()}
	}
	if err != nil {
		return nil, err
	}
	opened.shown = object.scheme + "://" + object.bucket + "/"
	return opened, nil
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

func (b *bucket) open(ctx context.Context, key string) (io.ReadCloser, error) {
	in, err := b.NewReader(ctx, key, nil)
	if err != nil {
		return nil, b.explain(key, err)
	}
	return in, nil
}

func (b *bucket) list(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		all := b.List(&blob.ListOptions{Prefix: prefix})
		for {
			object, err := all.Next(ctx)
			switch {
			case errors.Is(err, io.EOF):
				return
			case err != nil:
				yield(Object{}, b.explain(prefix, err))
				return
			case !yield(Object{Address: object.Key, Size: object.Size, Modified: object.ModTime}, nil):
				return
			}
		}
	}
}

func (b *bucket) create(ctx context.Context, key string) (Upload, error) {
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

func (b *bucket) close() error {
	if b.release != nil {
		b.release()
	}
	return b.Close()
}

// bucketUpload passes what is written to a concurrent upload.
type bucketUpload struct {
	out    *io.PipeWriter
	cancel context.CancelFunc
	result chan error // of the upload
	done   bool
}

func (u *bucketUpload) Write(p []byte) (int, error) { return u.out.Write(p) }

func (u *bucketUpload) Commit() error {
	if u.done {
		return nil
	}
	u.done = true
	defer u.cancel()
	_ = u.out.Close() // never returns an error
	return <-u.result
}

func (u *bucketUpload) Abort() error {
	if u.done {
		return nil
	}
	u.done = true
	u.cancel()
	_ = u.out.CloseWithError(context.Canceled) // without an error the part would be uploaded
	<-u.result
	return nil
}

// explain converts an error of a client, whose text may contain the signed request.
func (b *bucket) explain(key string, err error) error {
	address := b.shown + key
	status := b.status(err)
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &AccessError{Address: address, Why: "canceled", Err: err}
	case gcerrors.Code(err) == gcerrors.NotFound, status == http.StatusNotFound:
		return &NotFoundError{Address: address}
	case b.anonymous != "" && (status == http.StatusForbidden || status == http.StatusUnauthorized):
		return &AccessError{Address: address, Why: fmt.Sprintf("the server answered %d %s; the request had no credentials, because none of %s were found",
			status, http.StatusText(status), b.anonymous)}
	case b.detail(err) != "":
		return &AccessError{Address: address, Why: httpx.SingleLine(b.detail(err), 200), Err: err}
	case status != 0:
		return &StatusError{Address: address, Code: status}
	}
	return &AccessError{Address: address, Why: httpx.Reason(err), Err: err}
}
