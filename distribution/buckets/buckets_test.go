package buckets_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"

	"github.com/qtype-dev/qtype/distribution/buckets"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/servertest"
)

// withBuckets returns the context of a program with all services.
func withBuckets(t *testing.T) context.Context {
	return remotefs.WithBuckets(t.Context(), buckets.All())
}

// runContract tests a store at an address that ends with a slash.
func runContract(t *testing.T, dir string) {
	t.Helper()
	client := &remotefs.Client{Buckets: buckets.All()}
	defer func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}()
	large := bytes.Repeat([]byte("0123456789abcdef"), 12<<16) // more than one part of an upload in parts
	for name, want := range map[string][]byte{
		"a.yaml": []byte("id: shop\n"), "deep/er/b c?d#é%20.csv": []byte("x\n1\n"), "empty": {}, "large": large,
	} {
		write(t, client, dir+name, want)
		in, err := client.Open(t.Context(), dir+name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := io.ReadAll(in)
		if err := errors.Join(err, in.Close()); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes of %d, %v", name, len(got), len(want), err)
		}
	}
	wantMissing(t, client, dir+"none", dir+"none")
	testAbort(t, client, dir+"aborted")
	if in, err := remotefs.Open(withBuckets(t), dir+"a.yaml"); err != nil || in.Close() != nil {
		t.Errorf("Open: %v", err)
	}
}

func write(t *testing.T, client *remotefs.Client, address string, text []byte) {
	t.Helper()
	out, err := client.Create(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := out.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := out.Commit(); err != nil {
		t.Fatal(err)
	}
}

func wantMissing(t *testing.T, client *remotefs.Client, address, shown string) {
	t.Helper()
	in, err := client.Open(t.Context(), address)
	var none *remotefs.NotFoundError
	if !errors.As(err, &none) || none.Address != shown {
		t.Errorf("got %v", err)
	}
	if err == nil {
		_ = in.Close()
	}
}

func testAbort(t *testing.T, client *remotefs.Client, address string) {
	t.Helper()
	out, err := client.Create(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(out, "half"); err != nil {
		t.Fatal(err)
	}
	if err := out.Abort(); err != nil {
		t.Error(err)
	}
	wantMissing(t, client, address, address)
}

// call makes an administrative request to an emulator.
func call(t *testing.T, method, address, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode >= 300 {
		t.Fatalf("%s %s: %s", method, address, resp.Status)
	}
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
}

// closeAfter stops a server after the test.
func closeAfter(t *testing.T) func(*servertest.Server, error) *servertest.Server {
	return func(s *servertest.Server, err error) *servertest.Server {
		t.Helper()
		servertest.Need(t, err)
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		return s
	}
}

func TestS3(t *testing.T) {
	s := closeAfter(t)(servertest.S3())
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": "http://" + s.Address(), "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "s3cret",
		"AWS_REGION": "", "AWS_PROFILE": "", "AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
	} {
		t.Setenv(name, value)
	}
	call(t, http.MethodPut, "http://"+s.Address()+"/shop.data", "")
	runContract(t, "s3://shop.data/docs/")
	_, err := remotefs.Open(withBuckets(t), "s3://unknown/a")
	if err == nil || err.Error() != "s3://unknown/a: does not exist" {
		t.Errorf("got %v", err)
	}
	address := s.Address()
	s.Freeze()
	client := &remotefs.Client{IdleTimeout: 200_000_000, Buckets: buckets.All()}
	if _, err := client.Open(t.Context(), "s3://shop.data/docs/a.yaml"); err == nil || !strings.Contains(err.Error(), "no data from server for 200ms") {
		t.Errorf("frozen: %v", err)
	}
	s.Thaw()
	_ = client.Close()
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := remotefs.Open(withBuckets(t), "s3://shop.data/docs/a.yaml"); err == nil || strings.Contains(err.Error(), address) ||
		err.Error() != "s3://shop.data/docs/a.yaml: connection refused" {
		t.Errorf("killed: %v", err)
	}
}

func TestGoogle(t *testing.T) {
	s := closeAfter(t)(servertest.GoogleStorage())
	t.Setenv("STORAGE_EMULATOR_HOST", s.Address())
	call(t, http.MethodPost, "http://"+s.Address()+"/storage/v1/b?project=p", `{"name":"shop"}`)
	runContract(t, "gs://shop/docs/")
	in, err := remotefs.Open(withBuckets(t), "gcs://shop/docs/a.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_ = in.Close()
}

func TestAzure(t *testing.T) {
	s := closeAfter(t)(servertest.Azurite())
	for name, value := range map[string]string{
		"AZURE_STORAGE_ACCOUNT": "", "AZURE_STORAGE_ACCOUNT_NAME": servertest.AzuriteAccount, "AZURE_STORAGE_KEY": servertest.AzuriteKey,
		"AZURE_STORAGE_DOMAIN": s.Address(), "AZURE_STORAGE_PROTOCOL": "http",
	} {
		t.Setenv(name, value)
	}
	credential, err := azblob.NewSharedKeyCredential(servertest.AzuriteAccount, servertest.AzuriteKey)
	if err != nil {
		t.Fatal(err)
	}
	admin, err := azblob.NewClientWithSharedKeyCredential("http://"+s.Address()+"/"+servertest.AzuriteAccount, credential, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := admin.CreateContainer(t.Context(), "shop", nil); err != nil {
		t.Fatal(err)
	}
	for _, scheme := range []string{"az", "abfs"} {
		runContract(t, scheme+"://shop/"+scheme+"/")
	}
	_, err = remotefs.Open(withBuckets(t), "abfs://shop@other.dfs.core.example.com/a")
	if err == nil || !strings.Contains(err.Error(), "not a host of Azure") {
		t.Errorf("got %v", err)
	}
	t.Setenv("AZURE_STORAGE_KEY", "bm90IHRoZSBrZXk=")
	if _, err := remotefs.Open(withBuckets(t), "az://shop/az/a.yaml"); err == nil || !strings.Contains(err.Error(), "AuthorizationFailure") {
		t.Errorf("a wrong key: %v", err)
	}
}
