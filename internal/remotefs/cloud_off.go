//go:build !cloud

package remotefs

import "context"

// openBucket returns an error: the clouds' clients add some 55 MB to the program,
// which most documents never need.
func openBucket(_ context.Context, object bucketObject, _ *httpClient) (bucketStore, error) {
	return nil, checkBuilt(object.scheme)
}

// built returns an error: this build has no schemes of buckets.
func checkBuilt(scheme string) error { return &BuildTagError{Scheme: scheme, Tag: "cloud"} }
