package buckets

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/logging"
	"gocloud.dev/blob/s3blob"

	"github.com/qtype-dev/qtype/internal/remotefs"
)

// openS3 takes credentials, unless there is an identity, region and endpoint from where every AWS program takes
// them (AWS_PROFILE, AWS_ENDPOINT_URL, …), never from the address: a document must
// not choose where a user's signature is sent.
func openS3(ctx context.Context, object remotefs.BucketObject) (*bucket, error) {
	cfg, err := config.LoadDefaultConfig(ctx, config.WithLogger(logging.Nop{}))
	if err != nil {
		return nil, err
	}
	opened := &bucket{status: s3Status, detail: s3Detail}
	if custom, ok := cfg.HTTPClient.(*awshttp.BuildableClient); ok {
		// Its transport honors AWS_CA_BUNDLE, but cannot close its connections.
		transport := custom.GetTransport()
		cfg.HTTPClient = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		opened.release = transport.CloseIdleConnections
	}
	if cfg.Region == "" {
		cfg.Region = "us-east-1" // the default of AWS's tools for S3
	}
	if id := object.Identity; id != nil && id.Keys != nil {
		cfg.Region = cmp.Or(id.Region, cfg.Region)
		cfg.Credentials = aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
			key, secret, token, err := id.Keys(ctx)
			return aws.Credentials{AccessKeyID: key, SecretAccessKey: secret, SessionToken: token}, err
		})
	} else if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
		cfg.Credentials = aws.AnonymousCredentials{}
		opened.anonymous = "AWS"
	}
	api := s3.NewFromConfig(cfg, func(o *s3.Options) {
		custom := o.BaseEndpoint != nil
		// Compatible servers have no host for each bucket and may not know the
		// newer checksums. A dot in a bucket name does not match its certificate.
		o.UsePathStyle = custom || strings.Contains(object.Bucket, ".")
		if custom {
			o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
			o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		}
	})
	opened.Bucket, err = s3blob.OpenBucket(ctx, api, object.Bucket, nil)
	return opened, err
}

func s3Status(err error) int {
	var answer *awshttp.ResponseError
	if errors.As(err, &answer) {
		return answer.HTTPStatusCode()
	}
	return 0
}

func s3Detail(err error) string {
	var api smithy.APIError
	switch {
	case !errors.As(err, &api):
		return ""
	case api.ErrorMessage() == "":
		return api.ErrorCode()
	}
	return api.ErrorCode() + ": " + api.ErrorMessage()
}
