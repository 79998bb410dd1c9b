package temporal

import (
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/internal/memory/encrypted"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// TestJournal: the entries of all attempts are read, in one file for each, encrypted or not; what was torn by the end of a computer is
// ignored, what was modified or moved is an error if it is encrypted.
func TestJournal(t *testing.T) {
	for name, cfg := range map[string]durable.Config{"plain": {}, "encrypted": {Keys: []encrypted.Key{key(t, 1)}}} {
		t.Run(name, func(t *testing.T) {
			cfg.Blobs = t.TempDir()
			b := newBlobs(cfg)
			for attempt := range 2 {
				j := newJournal(t.Context(), b, "run/calls/0/0")
				var group sync.WaitGroup
				for i := range 20 {
					group.Go(func() {
						if err := j.add(entry{Key: fmt.Sprintf("%d-%02d", attempt, i), Result: []byte("secret")}); err != nil {
							t.Error(err)
						}
						if err := j.sync(); err != nil {
							t.Error(err)
						}
					})
				}
				group.Wait()
				j.close()
				if j.add(entry{}) == nil {
					t.Error("a closed journal takes an entry")
				}
			}
			read := func() (found []string, err error) {
				err = b.readJournals(t.Context(), "run/calls/0/0", func(e *entry) { found = append(found, e.Key+string(e.Result)) })
				slices.Sort(found)
				return found, err
			}
			files, _ := filepath.Glob(filepath.Join(cfg.Blobs, "run/calls/0/0/*"))
			found, err := read()
			if err != nil || len(found) != 40 || found[0] != "0-00secret" || len(files) != 2 {
				t.Fatalf("%d files, %d entries, %v", len(files), len(found), err)
			}
			text, err := os.ReadFile(files[1])
			if err != nil || strings.Contains(string(text), "secret") == (name == "encrypted") {
				t.Errorf("the file is not %s: %v", name, err)
			}
			write := func(file string, data []byte) {
				if err := os.WriteFile(file, data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write(files[1], text[:len(text)-1])
			if found, err := read(); err != nil || len(found) != 39 {
				t.Errorf("a torn file: %d entries, %v", len(found), err)
			}
			write(files[1]+"-moved", text)
			if _, err := read(); (err != nil) != (name == "encrypted") {
				t.Errorf("a moved file: %v", err)
			}
		})
	}
}

// memoryBucket is a bucket with objects in memory.
type memoryBucket struct {
	mu      sync.Mutex
	objects map[string]string
}

func (b *memoryBucket) Close() error { return nil }

func (b *memoryBucket) Open(_ context.Context, key string) (io.ReadCloser, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return io.NopCloser(strings.NewReader(b.objects[key])), nil
}

func (b *memoryBucket) List(_ context.Context, prefix string) iter.Seq2[remotefs.Object, error] {
	return func(yield func(remotefs.Object, error) bool) {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, key := range slices.Sorted(maps.Keys(b.objects)) {
			if strings.HasPrefix(key, prefix) && !yield(remotefs.Object{Address: key}, nil) {
				return
			}
		}
	}
}

func (b *memoryBucket) Create(_ context.Context, key string) (remotefs.Upload, error) {
	return &memoryUpload{bucket: b, key: key}, nil
}

// memoryUpload is an upload to a memoryBucket.
type memoryUpload struct {
	strings.Builder
	bucket *memoryBucket
	key    string
}

func (u *memoryUpload) Abort() error { return nil }

func (u *memoryUpload) Commit() error {
	u.bucket.mu.Lock()
	defer u.bucket.mu.Unlock()
	u.bucket.objects[u.key] = u.String()
	return nil
}

// TestJournal_Bucket: an object has all entries since the one before, and those that nothing waits for come later.
func TestJournal_Bucket(t *testing.T) {
	bucket := &memoryBucket{objects: map[string]string{}}
	cfg := durable.Config{Blobs: "s3://rows/runs", Keys: []encrypted.Key{key(t, 1)}, Buckets: remotefs.Buckets{
		"s3": func(context.Context, remotefs.BucketObject, *http.Client) (remotefs.Bucket, error) {
			return bucket, nil
		},
	}}
	b := newBlobs(cfg)
	for range 2 {
		j := newJournal(t.Context(), b, "run/calls/0/0")
		for i := range 9 {
			if err := j.add(entry{Key: fmt.Sprint(i)}); err != nil {
				t.Error(err)
			}
			if i%3 == 2 {
				if err := j.sync(); err != nil {
					t.Error(err)
				}
			}
		}
		j.close()
	}
	found := ""
	err := b.readJournals(t.Context(), "run/calls/0/0", func(e *entry) { found += e.Key })
	if err != nil || found != "012345678012345678" || len(bucket.objects) != 6 {
		t.Errorf("%d objects, entries %s, %v", len(bucket.objects), found, err)
	}
}

// slowBucket is a memoryBucket that sends the rest of an object when a half of it was used.
type slowBucket struct {
	*memoryBucket
	used chan struct{}
}

func (b slowBucket) Open(ctx context.Context, key string) (io.ReadCloser, error) {
	whole, err := b.memoryBucket.Open(ctx, key)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(whole)
	out, in := io.Pipe()
	go func() {
		_, _ = in.Write(text[:len(text)/2])
		<-b.used
		_, _ = in.Write(text[len(text)/2:])
		_ = in.Close()
	}()
	return out, err
}

// TestJournal_Long: entries are taken before the rest of a segment is read.
func TestJournal_Long(t *testing.T) {
	bucket := slowBucket{&memoryBucket{objects: map[string]string{}}, make(chan struct{})}
	b := newBlobs(durable.Config{Blobs: "s3://rows/runs", Buckets: remotefs.Buckets{
		"s3": func(context.Context, remotefs.BucketObject, *http.Client) (remotefs.Bucket, error) {
			return bucket, nil
		},
	}})
	j := newJournal(t.Context(), b, "run/calls/0/0")
	for i := range 4 {
		testkit.Must(t, j.add(entry{Key: fmt.Sprint(i), Result: make([]byte, 1000)}))
	}
	testkit.Must(t, j.sync())
	j.close()
	found := ""
	testkit.Must(t, b.readJournals(t.Context(), "run/calls/0/0", func(e *entry) {
		if found += e.Key; found == "0" {
			close(bucket.used)
		}
	}))
	if found != "0123" {
		t.Errorf("entries %s", found)
	}
}
