package documents

import (
	"compress/gzip"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/documents/format"
	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// remote reads the files at some addresses.
type remote struct {
	args *spec.RemoteArgs
	env  Env
}

func newRemote(args *spec.RemoteArgs, env Env) (Source, error) {
	r := &remote{args: args, env: env}
	for _, address := range r.addresses() {
		if _, ok := remotefs.Remote(address); !ok {
			return nil, fmt.Errorf("%s is not a remote address; the reader directory reads local files", address)
		}
		if err := remotefs.Readable(address); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *remote) addresses() []string {
	if r.args.URL == "" {
		return r.args.URLs
	}
	return append([]string{r.args.URL}, r.args.URLs...)
}

// Read reads the files in the order of the addresses.
func (r *remote) Read(ctx context.Context, emit Emit) error {
	clients := new(remotefs.Client)
	defer func() { _ = clients.Close() }() // only idle connections
	for _, address := range r.addresses() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var read []*Document
		f, err := r.open(ctx, clients, address)
		if err == nil {
			read, err = f.documents(ctx, &spec.FileArgs{Encoding: r.args.Encoding, Errors: "ignore", Password: r.args.Password}, r.env.Limits)
		}
		if err := emitAll(read, err, emit); err != nil {
			return err
		}
	}
	return nil
}

// open reads the file at an address.
func (r *remote) open(ctx context.Context, clients *remotefs.Client, address string) (*file, error) {
	if scheme, _ := remotefs.Remote(address); scheme != "http" && scheme != "https" {
		return openObject(ctx, clients, remotefs.Object{Address: address}, r.env.Limits)
	}
	visits, err := newVisitor(&spec.VisitArgs{MaxPages: 1, Timeout: downloadTime.String(), Delay: "0s", UserAgent: "qtype", AllowPrivate: r.args.AllowPrivate,
		MaxPageBytes: int(r.env.Limits.MaxInput())}, address, r.env)
	if err != nil {
		return nil, err
	}
	defer visits.close()
	page, err := visits.fetch(ctx, address, nil)
	if err != nil {
		return nil, err
	}
	f := page.file()
	f.metadata["file_size"] = int64(len(f.data))
	return f, nil
}

// downloadTime is how long a single file may take.
const downloadTime = 10 * time.Minute

// openObject reads an object of a bucket.
func openObject(ctx context.Context, clients *remotefs.Client, object remotefs.Object, limits format.Limits) (*file, error) {
	shown := remotefs.Redacted(object.Address)
	if object.Size > limits.MaxInput() {
		return nil, tooLarge(shown, limits.MaxInput())
	}
	in, err := clients.Open(ctx, object.Address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }() // closing a file that was only read cannot lose data
	data, err := readLimited(in, object.Address, limits.MaxInput())
	if err != nil {
		return nil, err
	}
	return &file{name: shown, id: shown, uri: shown, data: data, metadata: fileMetadata(shown, int64(len(data)), time.Time{}, object.Modified)}, nil
}

// bucket reads the objects of a bucket.
type bucket struct {
	address   string // that of the bucket, with a slash
	prefix    string
	key       string // the only object; empty for all
	recursive bool
	args      *spec.FileArgs
	filter    *fileFilter
	limits    format.Limits
}

func newS3(args *spec.BucketArgs, env Env) (Source, error) {
	return newBucket("s3://"+args.Bucket+"/", args, env)
}

func newGCS(args *spec.BucketArgs, env Env) (Source, error) {
	return newBucket("gs://"+args.Bucket+"/", args, env)
}

func newAzureBlob(args *spec.AzureBlobArgs, env Env) (Source, error) {
	return newBucket("az://"+args.ContainerName+"/", &spec.BucketArgs{Prefix: args.Prefix, Key: args.Blob, Recursive: args.Recursive, FileArgs: args.FileArgs}, env)
}

func newBucket(address string, args *spec.BucketArgs, env Env) (Source, error) {
	if u, err := url.Parse(address); err != nil || u.Host == "" || strings.Trim(u.Path, "/") != "" {
		return nil, fmt.Errorf("%q is not the name of a bucket", strings.TrimSuffix(address[strings.Index(address, "://")+3:], "/"))
	}
	if err := remotefs.Readable(address + "key"); err != nil {
		return nil, err
	}
	filter, err := newFileFilter(&args.FileArgs, args.Recursive)
	return &bucket{address: address, prefix: args.Prefix, key: args.Key, recursive: args.Recursive, args: &args.FileArgs, filter: filter, limits: env.Limits}, err
}

// Read reads the objects in the order of their keys, as the store lists them.
func (b *bucket) Read(ctx context.Context, emit Emit) error {
	clients := new(remotefs.Client)
	defer func() { _ = clients.Close() }() // only idle connections
	if b.key != "" {
		return b.read(ctx, clients, remotefs.Object{Address: b.address + b.key}, emit)
	}
	count := 0
	for object, err := range clients.List(ctx, b.address+b.prefix) {
		if err != nil {
			return err
		}
		rel := strings.TrimPrefix(strings.TrimPrefix(object.Address, b.address), b.folder())
		if strings.HasSuffix(rel, "/") || !b.recursive && strings.Contains(rel, "/") || !b.filter.accepts(rel, object.Size) {
			continue
		}
		if count++; b.args.NumFilesLimit > 0 && count > b.args.NumFilesLimit {
			return nil
		}
		if err := b.read(ctx, clients, object, emit); err != nil {
			return err
		}
	}
	if count == 0 {
		return fmt.Errorf("no files found in %s", b.address+b.prefix)
	}
	return nil
}

// folder returns the part of the prefix that is a folder.
func (b *bucket) folder() string { return b.prefix[:strings.LastIndexByte(b.prefix, '/')+1] }

func (b *bucket) read(ctx context.Context, clients *remotefs.Client, object remotefs.Object, emit Emit) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var read []*Document
	f, err := openObject(ctx, clients, object, b.limits)
	if err == nil {
		read, err = f.documents(ctx, b.args, b.limits)
	}
	return emitAll(read, err, emit)
}

// huggingFace reads a file in JSON Lines of a repository on Hugging Face.
type huggingFace struct {
	path    string
	address string // of the content
	args    *spec.HuggingFaceArgs
	env     Env
	limits  format.Limits
}

func newHuggingFace(args *spec.HuggingFaceArgs, loader *spec.HuggingFaceLoaderArgs, env Env) (Source, error) {
	address, err := resolveAddress(args.Endpoint, loader.Path)
	return &huggingFace{path: loader.Path, address: address, args: args, env: env, limits: env.Limits}, err
}

// resolveAddress returns the address of a file's content:
// ENDPOINT/datasets/OWNER/NAME/resolve/REVISION/FILE. A path without datasets/ or spaces/
// is that of a model, as in HfFileSystem.
func resolveAddress(endpoint, location string) (string, error) {
	parts := strings.Split(strings.TrimPrefix(location, "hf://"), "/")
	kind := []string(nil)
	if parts[0] == "datasets" || parts[0] == "spaces" {
		kind, parts = parts[:1], parts[1:]
	}
	if len(parts) < 3 || strings.Contains("/"+location+"/", "/../") {
		return "", fmt.Errorf("path: %q is not datasets/OWNER/NAME/FILE", location)
	}
	name, revision, found := strings.Cut(parts[1], "@")
	if !found {
		revision = "main"
	}
	u, err := webAddress(endpoint)
	if err != nil {
		return "", fmt.Errorf("endpoint: %w", err)
	}
	escaped := slices.Concat(kind, []string{parts[0], name, "resolve", revision}, parts[2:])
	for i, part := range escaped {
		escaped[i] = url.PathEscape(part)
	}
	return strings.TrimSuffix(u.String(), "/") + "/" + strings.Join(escaped, "/"), nil
}

// Read reads a document from each line. As in HuggingFaceFSReader, a line that is not
// JSON is skipped.
func (h *huggingFace) Read(ctx context.Context, emit Emit) error {
	client, err := h.env.HTTP(h.address, h.args.AllowPrivate)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, downloadTime)
	defer cancel()
	resp, err := followRedirects(ctx, client, h.address)
	if err != nil {
		return fmt.Errorf("%s: %w", h.path, err)
	}
	defer func() { _ = resp.Body.Close() }() // the rest is not needed
	body := resp.Body
	if path.Ext(h.path) == ".gz" {
		if body, err = gzip.NewReader(resp.Body); err != nil {
			return fmt.Errorf("%s: is not a gzip file", h.path)
		}
	}
	err = eachLine(ctx, body, h.limits.MaxInput(), func(number int, line string) error {
		v, err := value.Parse(line)
		if err != nil {
			return nil //nolint:nilerr // see the comment of Read
		}
		metadata := map[string]any{"file_path": h.path, "file_name": baseName(h.path)}
		return emit(&Document{ID: documentID(fmt.Sprintf("%s#%d", h.address, number)), Name: baseName(h.path), URI: h.address, Text: pythonRepr(v), Metadata: metadata}, nil)
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("%s: %w", h.path, err)
	}
	return err
}

// followRedirects sends a request and follows redirects, which lead to the servers that
// store large files. The client sends credentials to the first server only.
func followRedirects(ctx context.Context, client *http.Client, address string) (*http.Response, error) {
	u, err := webAddress(address)
	if err != nil {
		return nil, err
	}
	for range maxRedirects + 1 {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
		if err != nil {
			return nil, err
		}
		req.Header.Set("User-Agent", httpx.UserAgent())
		resp, err := client.Do(req)
		if err != nil {
			return nil, fmt.Errorf("%s", httpx.Reason(err))
		}
		location := resp.Header.Get("Location")
		if resp.StatusCode == http.StatusOK {
			return resp, nil
		}
		_ = resp.Body.Close() // a page for browsers
		if resp.StatusCode < 300 || resp.StatusCode >= 400 || location == "" {
			return nil, &statusError{resp.StatusCode}
		}
		next, err := u.Parse(location)
		if err == nil {
			next, err = webAddress(next.String())
		}
		if err != nil {
			return nil, err
		}
		if u.Scheme == "https" && next.Scheme == "http" {
			return nil, fmt.Errorf("redirects from https to http")
		}
		u = next
	}
	return nil, fmt.Errorf("stopped after %d redirects", maxRedirects)
}
