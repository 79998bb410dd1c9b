package buckets

import (
	"context"
	"errors"
	"net/http"
	"os"

	"gocloud.dev/blob/gcsblob"
	"gocloud.dev/gcp"
	"google.golang.org/api/googleapi"

	"github.com/qtype-dev/qtype/internal/remotefs"
)

// openGoogle uses the identity, or Google's application default credentials, or none if there are
// none. STORAGE_EMULATOR_HOST is a server for tests.
func openGoogle(ctx context.Context, object remotefs.BucketObject, client *http.Client) (*bucket, error) {
	opened := &bucket{status: googleStatus, detail: googleDetail}
	caller := gcp.NewAnonymousHTTPClient(client.Transport)
	if id := object.Identity; id != nil && id.Authorize != nil && os.Getenv("STORAGE_EMULATOR_HOST") == "" {
		none := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // the token is for Google only
		caller = &gcp.HTTPClient{Client: http.Client{Transport: authorized{client.Transport, id.Authorize}, CheckRedirect: none}}
	} else if os.Getenv("STORAGE_EMULATOR_HOST") == "" {
		if credentials, err := gcp.DefaultCredentials(ctx); err != nil {
			opened.anonymous = "Google Cloud"
		} else if caller, err = gcp.NewHTTPClient(client.Transport, gcp.CredentialsTokenSource(credentials)); err != nil {
			return nil, err
		}
	}
	var err error
	opened.Bucket, err = gcsblob.OpenBucket(ctx, caller, object.Bucket, nil)
	return opened, err
}

// authorized adds a token to requests.
type authorized struct {
	http.RoundTripper
	authorize func(*http.Request) error
}

// RoundTrip sends a copy of the request.
func (a authorized) RoundTrip(req *http.Request) (*http.Response, error) {
	made := req.Clone(req.Context())
	if err := a.authorize(made); err != nil {
		return nil, err
	}
	return a.RoundTripper.RoundTrip(made)
}

func googleStatus(err error) int {
	var answer *googleapi.Error
	if errors.As(err, &answer) {
		return answer.Code
	}
	return 0
}

func googleDetail(err error) string {
	var answer *googleapi.Error
	if errors.As(err, &answer) {
		return answer.Message
	}
	return ""
}
