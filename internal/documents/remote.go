package documents

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/documents/format"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/spec"
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
