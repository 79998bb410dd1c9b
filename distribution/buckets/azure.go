package buckets

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"gocloud.dev/blob/azureblob"

	"github.com/qtype-dev/qtype/internal/remotefs"
)

// azureAccount holds the storage account of the environment, by the variables of
// Azure's tools and of fsspec's adlfs.
type azureAccount struct {
	name, key, sas, connection, domain, protocol string
}

func azureFromEnvironment() azureAccount {
	return azureAccount{
		name:       cmp.Or(os.Getenv("AZURE_STORAGE_ACCOUNT"), os.Getenv("AZURE_STORAGE_ACCOUNT_NAME")),
		key:        cmp.Or(os.Getenv("AZURE_STORAGE_KEY"), os.Getenv("AZURE_STORAGE_ACCOUNT_KEY")),
		sas:        strings.TrimPrefix(os.Getenv("AZURE_STORAGE_SAS_TOKEN"), "?"),
		connection: os.Getenv("AZURE_STORAGE_CONNECTION_STRING"),
		domain:     os.Getenv("AZURE_STORAGE_DOMAIN"),
		protocol:   os.Getenv("AZURE_STORAGE_PROTOCOL"),
	}
}

// openAzure opens a container with the key, signature or connection string of the
// environment if they are for the same account, else with the identity that Azure's
// libraries find, else anonymously.
func openAzure(ctx context.Context, object remotefs.BucketObject, client *http.Client) (*bucket, error) {
	env := azureFromEnvironment()
	if object.Domain != "" && object.Domain != env.domain && !ofAzure(object.Domain) {
		return nil, &remotefs.AccessError{Address: object.Scheme + "://" + object.Bucket + "@" + object.Account + "." + object.Domain,
			Why: "not a host of Azure; set AZURE_STORAGE_DOMAIN to use your own"}
	}
	opened := &bucket{status: azureStatus, detail: azureDetail}
	containers, err := azureContainer(ctx, object, env, opened, &container.ClientOptions{ClientOptions: policy.ClientOptions{Transport: client}})
	if err != nil {
		return nil, err
	}
	opened.Bucket, err = azureblob.OpenBucket(ctx, containers, nil)
	return opened, err
}

func azureContainer(ctx context.Context, object remotefs.BucketObject, env azureAccount, opened *bucket, options *container.ClientOptions) (*container.Client, error) {
	matches := object.Account == "" || object.Account == env.name
	if matches && env.connection != "" {
		return container.NewClientFromConnectionString(env.connection, object.Bucket, options)
	}
	account := cmp.Or(object.Account, env.name)
	if account == "" {
		return nil, &remotefs.AccessError{Address: object.Scheme + "://" + object.Bucket,
			Why: "no storage account: use CONTAINER@ACCOUNT.blob.core.windows.net, or set AZURE_STORAGE_ACCOUNT"}
	}
	service, err := azureblob.NewServiceURL(&azureblob.ServiceURLOptions{
		AccountName: account, StorageDomain: cmp.Or(object.Domain, env.domain), Protocol: env.protocol,
	})
	if err != nil {
		return nil, err
	}
	address, err := url.JoinPath(string(service), object.Bucket)
	if err != nil {
		return nil, err
	}
	switch {
	case matches && env.key != "":
		credential, err := azblob.NewSharedKeyCredential(account, env.key)
		if err != nil {
			return nil, &remotefs.AccessError{Address: object.Scheme + "://" + object.Bucket, Why: "the key of the storage account is not base64", Err: err}
		}
		return container.NewClientWithSharedKeyCredential(address, credential, options)
	case matches && env.sas != "":
		return container.NewClientWithNoCredential(address+"?"+env.sas, options)
	}
	if credential := azureIdentity(ctx); credential != nil && strings.HasPrefix(address, "https://") {
		return container.NewClient(address, credential, options)
	}
	opened.anonymous = "Azure"
	return container.NewClientWithNoCredential(address, options)
}

// azureIdentity returns the default credential, nil if it gives no token in time.
func azureIdentity(ctx context.Context) azcore.TokenCredential {
	credential, err := azidentity.NewDefaultAzureCredential(nil)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if _, err := credential.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{"https://storage.azure.com/.default"}}); err != nil {
		return nil
	}
	return credential
}

// ofAzure reports whether a domain is Microsoft's: tokens are sent only there.
func ofAzure(domain string) bool {
	for _, cloud := range []string{"core.windows.net", "core.chinacloudapi.cn", "core.usgovcloudapi.net", "core.cloudapi.de"} {
		if domain == "blob."+cloud {
			return true
		}
	}
	return false
}

func azureStatus(err error) int {
	var answer *azcore.ResponseError
	if errors.As(err, &answer) {
		return answer.StatusCode
	}
	return 0
}

// azureDetail returns the error code. The message would repeat the signed request.
func azureDetail(err error) string {
	var answer *azcore.ResponseError
	if errors.As(err, &answer) {
		return answer.ErrorCode
	}
	return ""
}
