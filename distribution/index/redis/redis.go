// Package redis is the index in a Redis server with the commands of its query engine
// (FT.CREATE, FT.SEARCH), which Redis 8 and Redis Stack have. Chunks are hashes in the form
// that LlamaIndex writes, so that both programs can use one index.
package redis

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	driver "github.com/redis/go-redis/v9"

	"github.com/qtype-dev/qtype/distribution/index/remote"
	"github.com/qtype-dev/qtype/distribution/redisclient"
	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/internal/httpx"
)

const (
	batchSize      = 200                   // entries that one call writes or reads
	pollInterval   = 20 * time.Millisecond // between looks at an index that is being built
	dialectVersion = 2                     // the dialect of queries, which all servers with vectors have
)

// Config describes an index of a server.
type Config struct {
	Connection redisclient.Config // how the server is reached
	Name       string             // of the index in the server
	KeyPrefix  string             // of the keys of entries; the id follows
	Dimensions int                // length of the vectors; 0 for a full-text index
	Vectors    Vectors            // the field of vectors of a new index
}

// Vectors describes the field of vectors of a new index.
type Vectors struct {
	Algorithm string   // FLAT, which compares all vectors, or HNSW, which is approximate
	Metric    string   // COSINE, L2 or IP
	Settings  []string // of HNSW, by name and value
}

// Index is an index of a Redis server. It is safe for concurrent use.
type Index struct {
	Config
	server *redisclient.Server
	client redisclient.Client
}

// New returns an index, which the first Put creates. It connects when it is used first.
func New(c Config) (*Index, error) {
	c.Connection.Protocol = 2 // the form of answers, which all servers have
	server, err := redisclient.Parse(c.Connection)
	if err != nil {
		return nil, err
	}
	return &Index{Config: c, server: server, client: server.Connect()}, nil
}

// isText reports whether the index is that of a DocumentIndex.
func (x *Index) isText() bool { return x.Dimensions == 0 }

func (x *Index) key(id string) string { return x.KeyPrefix + id }

// keys returns the keys of ids.
func (x *Index) keys(ids []string) []string {
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = x.key(id)
	}
	return keys
}

// failure returns an error as one line with the server and without the password.
func (x *Index) failure(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	server := "Redis at " + x.server.Address + ": "
	var reply driver.Error
	if !errors.As(err, &reply) {
		return errors.New(server + httpx.Scrub(httpx.Reason(err), x.server.Password))
	}
	text := httpx.Scrub(remote.OneLine(reply.Error()), x.server.Password)
	if strings.Contains(strings.ToLower(text), "unknown command") {
		if err := x.client.Ping(ctx).Err(); err != nil { // the server checks the password after the command
			return x.failure(ctx, err)
		}
		return errors.New(server + "it has no search commands: use Redis 8, Redis Stack or Redis Cloud with search (" + text + ")")
	}
	return errors.New(server + text)
}

// isMissing reports whether an error means that the index does not exist. The servers have
// different texts.
func isMissing(err error) bool {
	var reply driver.Error
	if !errors.As(err, &reply) {
		return false
	}
	text := strings.ToLower(reply.Error())
	if !strings.Contains(text, "index") {
		return false
	}
	return strings.Contains(text, "unknown") || strings.Contains(text, "no such") || strings.Contains(text, "not found")
}

// state is what calls must know of the index in the server.
type state struct {
	entries  int64
	own      bool   // it has the fields of conditions and words, which other programs do not create
	metric   string // of the vectors
	building bool   // existing hashes are still being added
}

// find returns the state of the index, nil if it does not exist. It is not kept: another
// program may replace the index by one of the same name.
func (x *Index) find(ctx context.Context) (*state, error) {
	reply, err := x.client.Do(ctx, "FT.INFO", x.Name).Result()
	if isMissing(err) && ctx.Err() == nil {
		return nil, nil
	}
	if err != nil {
		return nil, x.failure(ctx, err)
	}
	info := pairs(reply)
	s := &state{entries: number(info["num_docs"]), building: number(info["indexing"]) != 0, metric: x.Vectors.Metric}
	rows, _ := info["attributes"].([]any)
	vectors := false
	for _, row := range rows {
		a := pairs(row)
		switch a["attribute"] {
		case tagsField:
			s.own = true
		case vectorField:
			vectors = true
			if metric, ok := a["distance_metric"].(string); ok {
				s.metric = strings.ToUpper(metric)
			}
			if d := number(a["dim"]); d != 0 && d != int64(x.Dimensions) && !x.isText() {
				return nil, fmt.Errorf("the index %s has vectors of %d numbers, the embedding model %d", x.Name, d, x.Dimensions)
			}
		}
	}
	if !vectors && !x.isText() {
		return nil, fmt.Errorf("the index %s has no field %s with vectors: it is not a VectorIndex", x.Name, vectorField)
	}
	return s, nil
}

// create makes the index if it does not exist, and waits until the hashes that exist are
// part of it.
func (x *Index) create(ctx context.Context) error {
	s, err := x.find(ctx)
	if err != nil {
		return err
	}
	if s == nil {
		err := x.client.Do(ctx, x.createCommand()...).Err()
		if err != nil && !strings.Contains(strings.ToLower(err.Error()), "already exists") {
			return x.failure(ctx, err)
		}
		if s, err = x.find(ctx); err != nil {
			return err
		}
	}
	for s != nil && s.building {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollInterval):
		}
		if s, err = x.find(ctx); err != nil {
			return err
		}
	}
	return nil
}

// createCommand returns the command that creates the index.
func (x *Index) createCommand() []any {
	args := []any{"FT.CREATE", x.Name, "ON", "HASH", "PREFIX", 1, x.KeyPrefix, "STOPWORDS", 0,
		"SCHEMA", idField, "TAG", documentField, "TAG", textField, "TEXT", wordsField, "TEXT", tagsField, "TAG"}
	if x.isText() {
		return args
	}
	v := x.Vectors
	args = append(args, vectorField, "VECTOR", v.Algorithm, 6+len(v.Settings), "TYPE", "FLOAT32", "DIM", x.Dimensions, "DISTANCE_METRIC", v.Metric)
	for _, setting := range v.Settings {
		args = append(args, setting)
	}
	return args
}

// Delete removes entries.
func (x *Index) Delete(ctx context.Context, ids []string) error {
	return x.unlink(ctx, x.keys(ids))
}

// unlink removes keys.
func (x *Index) unlink(ctx context.Context, keys []string) error {
	for len(keys) > 0 {
		n := min(batchSize, len(keys))
		if err := x.client.Unlink(ctx, keys[:n]...).Err(); err != nil {
			return x.failure(ctx, err)
		}
		keys = keys[n:]
	}
	return nil
}

// Clear removes the index and its hashes, also hashes that are not indexed yet.
func (x *Index) Clear(ctx context.Context) error {
	if err := x.client.Do(ctx, "FT.DROPINDEX", x.Name).Err(); err != nil && !isMissing(err) {
		return x.failure(ctx, err)
	}
	ids, err := x.scan(ctx)
	if err != nil {
		return err
	}
	return x.unlink(ctx, x.keys(ids))
}

// scan returns the ids of all hashes with the prefix.
func (x *Index) scan(ctx context.Context) ([]string, error) {
	const count = 1000
	var ids []string
	keys := x.client.ScanType(ctx, 0, globEscape(x.KeyPrefix)+"*", count, "hash").Iterator()
	for keys.Next(ctx) {
		ids = append(ids, strings.TrimPrefix(keys.Val(), x.KeyPrefix))
	}
	return ids, x.failure(ctx, keys.Err())
}

// globEscape returns a pattern of Redis that only this text satisfies.
func globEscape(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `^`, `\^`).Replace(text)
}

// Stats describes the index.
func (x *Index) Stats(ctx context.Context) (index.Stats, error) {
	stats := index.Stats{Documents: -1, Bytes: -1, Dimensions: x.Dimensions, Detail: "Redis index " + x.Name}
	s, err := x.find(ctx)
	if s != nil {
		stats.Entries = s.entries
	}
	return stats, err
}

// Entries lists entries.
func (x *Index) Entries(ctx context.Context, p index.Page) iter.Seq2[index.Entry, error] {
	return remote.Listing(p, func() ([]string, error) { return x.candidates(ctx, p) },
		func(ids []string) ([]index.Entry, error) { return x.read(ctx, ids) })
}

// candidates returns the ids of the entries that may satisfy the filter of a page.
func (x *Index) candidates(ctx context.Context, p index.Page) ([]string, error) {
	s, err := x.find(ctx)
	if s == nil || err != nil {
		return nil, err
	}
	if condition := s.condition(p.Filter); condition.Found {
		const most = 10_000 // of all servers, without a change of their settings
		reply, err := x.client.Do(ctx, x.searchCommand(condition.Query, most, "NOCONTENT")...).Slice()
		if err != nil {
			return nil, x.failure(ctx, err)
		}
		if len(reply) > 0 && number(reply[0]) <= most {
			return x.idsOf(reply[1:]), nil
		}
	}
	return x.scan(ctx)
}

// idsOf returns the ids of keys.
func (x *Index) idsOf(keys []any) []string {
	ids := make([]string, 0, len(keys))
	for _, key := range keys {
		if text, ok := key.(string); ok {
			ids = append(ids, strings.TrimPrefix(text, x.KeyPrefix))
		}
	}
	return ids
}

// Close releases connections.
func (x *Index) Close() error { return x.client.Close() }
