//go:build cloud

package remotefs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"path"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/qtype-dev/qtype/internal/httpx"
)

// built tells that every scheme of buckets is part of this build.
func built(string) error { return nil }

// openBucket makes the client of a bucket; the store itself is not asked yet.
func openBucket(ctx context.Context, place bucketPlace, client *http.Client) (bucketStore, error) {
	var opened *bucket
	var err error
	switch place.driver {
	case "s3":
		opened, err = openS3(ctx, place)
	case "gs":
		opened, err = openGoogle(ctx, place, client)
	case "azure":
		opened, err = openAzure(ctx, place, client)
	default:
		return nil, &SchemeError{Scheme: place.scheme, Supported: supported()}
	}
	if err != nil {
		return nil, err
	}
	opened.shown = place.scheme + "://" + place.bucket + "/"
	return opened, nil
}

// bucket is a bucket of any cloud.
type bucket struct {
	*blob.Bucket
	shown     string             // its address
	anonymous string             // whose credentials were not found, so that it is asked without: AWS
	release   func()             // ends what the client holds beside the caller's; may be nil
	status    func(error) int    // the status of HTTP that an error of the cloud's client carries, 0 for none
	detail    func(error) string // the cause that it tells, empty for none
}

func (b *bucket) open(ctx context.Context, key string) (io.ReadCloser, error) {
	in, err := b.NewReader(ctx, key, nil)
	if err != nil {
		return nil, b.told(key, err)
	}
	return in, nil
}

func (b *bucket) create(ctx context.Context, key string) (Upload, error) {
	ctx, cancel := context.WithCancel(ctx)
	in, out := io.Pipe()
	u := &bucketUpload{out: out, cancel: cancel, ended: make(chan error, 1)}
	kind := mime.TypeByExtension(path.Ext(key))
	if kind == "" {
		kind = "application/octet-stream"
	}
	// By Upload and not by NewWriter: the writer of azureblob panics where an
	// upload fails while it is being closed.
	go func() {
		err := b.Upload(ctx, key, in, &blob.WriterOptions{ContentType: kind})
		if err != nil {
			err = b.told(key, err)
		}
		_ = in.CloseWithError(err) // so that nobody goes on writing; it never fails
		u.ended <- err
	}()
	return u, nil
}

func (b *bucket) close() error {
	if b.release != nil {
		b.release()
	}
	return b.Close()
}

// bucketUpload hands what is written to an upload that runs beside it.
type bucketUpload struct {
	out    *io.PipeWriter
	cancel context.CancelFunc
	ended  chan error // the upload's one result
	done   bool
}

func (u *bucketUpload) Write(p []byte) (int, error) { return u.out.Write(p) }

func (u *bucketUpload) Commit() error {
	if u.done {
		return nil
	}
	u.done = true
	defer u.cancel()
	_ = u.out.Close() // never fails
	return <-u.ended
}

func (u *bucketUpload) Abort() error {
	if u.done {
		return nil
	}
	u.done = true
	u.cancel()
	_ = u.out.CloseWithError(context.Canceled) // an end would be taken for the whole
	<-u.ended
	return nil
}

// told makes an error of this package of a client's. Those of the clients name
// the whole call, signatures included, so only what is known of them is told.
func (b *bucket) told(key string, err error) error {
	address := b.shown + key
	status := b.status(err)
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &AccessError{Address: address, Why: "was cancelled", Err: err}
	case gcerrors.Code(err) == gcerrors.NotFound, status == http.StatusNotFound:
		return &NotFoundError{Address: address}
	case b.anonymous != "" && (status == http.StatusForbidden || status == http.StatusUnauthorized):
		return &AccessError{Address: address, Why: fmt.Sprintf("the server answered %d %s; no credentials of %s were found, so it was asked without",
			status, http.StatusText(status), b.anonymous)}
	case b.detail(err) != "":
		return &AccessError{Address: address, Why: httpx.SingleLine(b.detail(err), 200), Err: err}
	case status != 0:
		return &StatusError{Address: address, Code: status}
	}
	return &AccessError{Address: address, Why: httpx.Reason(err), Err: err}
}
