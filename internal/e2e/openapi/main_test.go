// Package openapi_test converts OpenAPI documents and calls the tools that they become.
package openapi_test

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }
