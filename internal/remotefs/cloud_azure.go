//go:build cloud

package remotefs

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
)

// azureAccount is what the environment tells of a storage account, by the names
// of Azure's tools and of fsspec's adlfs.
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

// openAzure asks a container with the key, the signature or the connection
// string of the environment where it is for the same account, else with the
// identity that Azure's libraries find, else as the public does.
func openAzure(ctx context.Context, place bucketPlace, client *http.Client) (*bucket, error) {
	env := azureFromEnvironment()
	if place.domain != "" && place.domain != env.domain && !ofAzure(place.domain) {
		return nil, &AccessError{Address: place.scheme + "://" + place.bucket + "@" + place.account + "." + place.domain,
			Why: "the host is not one of Azure's; name your own in AZURE_STORAGE_DOMAIN"}
	}
	opened := &bucket{status: azureStatus, detail: azureDetail}
	containers, err := azureContainer(ctx, place, env, opened, &container.ClientOptions{ClientOptions: policy.ClientOptions{Transport: client}})
	if err != nil {
		return nil, err
	}
	opened.Bucket, err = azureblob.OpenBucket(ctx, containers, nil)
	return opened, err
}

func azureContainer(ctx context.Context, place bucketPlace, env azureAccount, opened *bucket, options *container.ClientOptions) (*container.Client, error) {
	own := place.account == "" || place.account == env.name
	if own && env.connection != "" {
		return container.NewClientFromConnectionString(env.connection, place.bucket, options)
	}
	account := cmp.Or(place.account, env.name)
	if account == "" {
		return nil, &AccessError{Address: place.scheme + "://" + place.bucket,
			Why: "no storage account is named: write CONTAINER@ACCOUNT.blob.core.windows.net, or set AZURE_STORAGE_ACCOUNT"}
	}
	service, err := azureblob.NewServiceURL(&azureblob.ServiceURLOptions{
		AccountName: account, StorageDomain: cmp.Or(place.domain, env.domain), Protocol: env.protocol,
	})
	if err != nil {
		return nil, err
	}
	address, err := url.JoinPath(string(service), place.bucket)
	if err != nil {
		return nil, err
	}
	switch {
	case own && env.key != "":
		credential, err := azblob.NewSharedKeyCredential(account, env.key)
		if err != nil {
			return nil, &AccessError{Address: place.scheme + "://" + place.bucket, Why: "the key of the storage account is not base64", Err: err}
		}
		return container.NewClientWithSharedKeyCredential(address, credential, options)
	case own && env.sas != "":
		return container.NewClientWithNoCredential(address+"?"+env.sas, options)
	}
	if credential := azureIdentity(ctx); credential != nil && strings.HasPrefix(address, "https://") {
		return container.NewClient(address, credential, options)
	}
	opened.anonymous = "Azure"
	return container.NewClientWithNoCredential(address, options)
}

// azureIdentity finds who asks; nil where nobody is found in a few seconds.
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

// ofAzure tells whether a domain is Microsoft's: only there may a token go.
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

// azureDetail is the code alone: the message repeats the call and its signature.
func azureDetail(err error) string {
	var answer *azcore.ResponseError
	if errors.As(err, &answer) {
		return answer.ErrorCode
	}
	return ""
}
