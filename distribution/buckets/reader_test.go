package buckets_test

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"

	"github.com/qtype-dev/qtype/distribution/buckets"
	"github.com/qtype-dev/qtype/internal/documents"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/spec"
)

// emulator returns the address of an emulator, which the test stops.
func emulator(t *testing.T, start func() (*servertest.Server, error)) string {
	t.Helper()
	s, err := start()
	servertest.Need(t, err)
	t.Cleanup(func() { testkit.Must(t, s.Close()) })
	return s.Address()
}

// create makes a bucket by a request.
func create(t *testing.T, method, address, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	testkit.Must(t, err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	testkit.Must(t, err)
	testkit.Must(t, resp.Body.Close())
	if resp.StatusCode >= 300 {
		t.Fatal(resp.Status)
	}
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
}

// result is what a reader has found.
type result struct {
	docs   []*documents.Document
	failed []string
	err    error
}

// names returns the names of the files, in order.
func (r result) names() []string {
	var names []string
	for _, d := range r.docs {
		names = append(names, d.Name)
	}
	return names
}

// read runs a reader.
func read(t *testing.T, module string, args map[string]any) (r result) {
	t.Helper()
	source, err := documents.Open(&spec.DocumentSource{ReaderModule: module, Args: args}, documents.Env{})
	if err != nil {
		return result{err: err}
	}
	r.err = source.Read(withBuckets(t), func(doc *documents.Document, failed error) error {
		if failed != nil {
			r.failed = append(r.failed, failed.Error())
			return nil
		}
		r.docs = append(r.docs, doc)
		return nil
	})
	return r
}

// readBucket writes objects to the bucket shop and reads them with the reader of its store,
// whose arguments name the bucket and an object by these keys.
func readBucket(t *testing.T, reader, scheme, bucketKey, objectKey string) {
	t.Helper()
	client := &remotefs.Client{Buckets: buckets.All()}
	defer func() { testkit.Must(t, client.Close()) }()
	for name, text := range map[string]string{"docs/b.md": "# B", "docs/a.txt": "A", "docs/deep/c.md": "# C", "docs/image.png": "\x89PNG\r\n\x1a\n\x00\x00", "other.md": "# O"} {
		out, err := client.Create(t.Context(), scheme+"://shop/"+name)
		testkit.Must(t, err)
		_, err = out.Write([]byte(text))
		testkit.Must(t, err)
		testkit.Must(t, out.Commit())
	}
	for name, c := range map[string]struct {
		args         map[string]any
		want, failed string
	}{
		"folder":    {map[string]any{"prefix": "docs/", "recursive": false}, "a.txt b.md", "image.png: is an image without text"},
		"recursive": {map[string]any{"prefix": "docs/", "recursive": true, "required_exts": []any{".md"}}, "b.md c.md", ""},
		"limit":     {map[string]any{"recursive": true, "num_files_limit": int64(2), "required_exts": []any{".md"}}, "b.md c.md", ""},
		"object":    {map[string]any{objectKey: "other.md"}, "other.md", ""},
	} {
		c.args[bucketKey] = "shop"
		got := read(t, reader, c.args)
		if !slices.Equal(got.names(), strings.Fields(c.want)) || got.err != nil || !strings.Contains(strings.Join(got.failed, " "), c.failed) || (c.failed == "") != (len(got.failed) == 0) {
			t.Errorf("%s: %v, failed %q, %v", name, got.names(), got.failed, got.err)
		}
		for _, d := range got.docs {
			if path, _ := d.Metadata["file_path"].(string); !strings.HasPrefix(path, scheme+"://shop/") || d.ID == "" {
				t.Errorf("%s: %+v", name, d)
			}
		}
	}
	for want, args := range map[string]map[string]any{
		"no files found in " + scheme + "://shop/none/": {"prefix": "none/"},
		scheme + "://shop/none.md: does not exist":      {objectKey: "none.md"},
	} {
		args[bucketKey] = "shop"
		got := read(t, reader, args)
		if text := strings.Join(got.failed, " "); got.err == nil && !strings.Contains(text, want) || got.err != nil && !strings.Contains(got.err.Error(), want) {
			t.Errorf("got %q, %v, want %q", text, got.err, want)
		}
	}
}

func TestBucket_S3(t *testing.T) {
	address := emulator(t, servertest.S3)
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": "http://" + address, "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "s3cret",
		"AWS_REGION": "", "AWS_PROFILE": "", "AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
	} {
		t.Setenv(name, value)
	}
	create(t, http.MethodPut, "http://"+address+"/shop", "")
	readBucket(t, "llama_index.readers.s3.S3Reader", "s3", "bucket", "key")
}

func TestBucket_Google(t *testing.T) {
	address := emulator(t, servertest.GoogleStorage)
	t.Setenv("STORAGE_EMULATOR_HOST", address)
	create(t, http.MethodPost, "http://"+address+"/storage/v1/b?project=p", `{"name":"shop"}`)
	readBucket(t, "llama_index.readers.gcs.GCSReader", "gs", "bucket", "key")
}

func TestBucket_Azure(t *testing.T) {
	address := emulator(t, servertest.Azurite)
	for name, value := range map[string]string{
		"AZURE_STORAGE_ACCOUNT": "", "AZURE_STORAGE_ACCOUNT_NAME": servertest.AzuriteAccount, "AZURE_STORAGE_KEY": servertest.AzuriteKey,
		"AZURE_STORAGE_DOMAIN": address, "AZURE_STORAGE_PROTOCOL": "http",
	} {
		t.Setenv(name, value)
	}
	credential, err := azblob.NewSharedKeyCredential(servertest.AzuriteAccount, servertest.AzuriteKey)
	testkit.Must(t, err)
	admin, err := azblob.NewClientWithSharedKeyCredential("http://"+address+"/"+servertest.AzuriteAccount, credential, nil)
	testkit.Must(t, err)
	_, err = admin.CreateContainer(t.Context(), "shop", nil)
	testkit.Must(t, err)
	readBucket(t, "llama_index.readers.azstorage_blob.AzStorageBlobReader", "az", "container_name", "blob")
}
