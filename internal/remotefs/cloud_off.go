//go:build !cloud

package remotefs

import (
	"context"
	"net/http"
)

// openBucket refuses: the clouds' clients are some 55 MB of program that most
// documents never need (docs/decisions/010).
func openBucket(_ context.Context, place bucketPlace, _ *http.Client) (bucketStore, error) {
	return nil, built(place.scheme)
}

// built tells that a scheme of buckets is not part of this build.
func built(scheme string) error { return &BuildTagError{Scheme: scheme, Tag: "cloud"} }
