package redis

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	driver "github.com/redis/go-redis/v9"

	"github.com/qtype-dev/qtype/distribution/index/remote"
	"github.com/qtype-dev/qtype/index"
)

// The fields of hashes, besides those of remote.Metadata.
const (
	idField       = "id"
	documentField = remote.KeyDocument
	textField     = "text"
	vectorField   = "vector"
	wordsField    = "_qtype_words" // the words of the text, see splitWords
	tagsField     = "_qtype_tags"  // see tags
	scoreField    = "_qtype_score" // the distance in the answer of a search
)

// readFields returns the fields that make an entry.
func readFields() []string {
	return []string{idField, documentField, textField, remote.KeyContent, remote.KeyHash}
}

// Put inserts or replaces entries.
func (x *Index) Put(ctx context.Context, entries []index.Entry) error {
	entries = remote.Last(entries)
	rejected := remote.Rejected{}
	if !x.isText() {
		entries, rejected = remote.CheckVectors(entries, x.Dimensions)
	}
	if len(entries) > 0 {
		if err := x.create(ctx); err != nil {
			return err
		}
	}
	for batch := range slices.Chunk(entries, batchSize) {
		if err := x.write(ctx, batch, rejected); err != nil {
			return err
		}
	}
	return rejected.Err()
}

// write replaces hashes in one transaction, so that searches find the old or the new ones.
func (x *Index) write(ctx context.Context, entries []index.Entry, rejected remote.Rejected) error {
	_, err := x.client.TxPipelined(ctx, func(pipe driver.Pipeliner) error {
		for _, e := range entries {
			fields, err := x.fields(e)
			if err != nil {
				rejected[e.ID] = err
				continue
			}
			pipe.Unlink(ctx, x.key(e.ID))
			pipe.HSet(ctx, x.key(e.ID), fields...)
		}
		return nil
	})
	return x.failure(ctx, err)
}

// fields returns the names and values of the hash of an entry.
func (x *Index) fields(e index.Entry) ([]any, error) {
	if e.ID == "" {
		return nil, errors.New("its id is empty")
	}
	stored, err := remote.Metadata(e, x.isText())
	if err != nil {
		return nil, err
	}
	text := x.searchedText(e)
	fields := []any{idField, e.ID, textField, text, wordsField, remote.IndexedWords(text), tagsField, strings.Join(remote.Tags(e.Metadata), ",")}
	if !x.isText() {
		fields = append(fields, vectorField, vectorBytes(e.Vector))
	}
	reserved := []string{idField, textField, vectorField, wordsField, tagsField, scoreField}
	for key, v := range stored {
		if slices.Contains(reserved, key) {
			continue // it is in the JSON of the entry
		}
		if text, ok := scalar(v); ok {
			fields = append(fields, key, text)
		}
	}
	return fields, nil
}

// searchedText returns the text of an entry and, in a full-text index, the texts of the fields
// that it does not contain.
func (x *Index) searchedText(e index.Entry) string {
	if !x.isText() {
		return e.Text
	}
	known := map[string]bool{}
	for line := range strings.SplitSeq(e.Text, "\n") {
		known[line] = true
	}
	text := e.Text
	for line := range strings.SplitSeq(remote.FieldsText(e.Metadata), "\n") {
		if !known[line] {
			text += "\n" + line
		}
	}
	return text
}

// scalar returns the form in a hash of a text or a number.
func scalar(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case int:
		return strconv.Itoa(v), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), true
	}
	return "", false
}

// vectorBytes returns a vector as little-endian numbers of 32 bits.
func vectorBytes(v []float32) []byte {
	data := make([]byte, 0, 4*len(v))
	for _, f := range v {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(f))
	}
	return data
}

// entry returns the entry of fields of a hash.
func (x *Index) entry(id string, fields map[string]any) index.Entry {
	text, _ := fields[textField].(string)
	if x.isText() && fields[remote.KeyContent] != nil {
		text = "" // it is in the JSON, without the fields
	}
	stored := map[string]any{}
	for _, key := range []string{documentField, remote.KeyContent, remote.KeyHash} {
		if v, ok := fields[key]; ok {
			stored[key] = v
		}
	}
	e := remote.Entry(id, text, stored)
	e.ID = id
	if fields[remote.KeyContent] == nil {
		e.Metadata = nil // its only key is the document
	}
	return e
}

// read returns the entries of ids that exist.
func (x *Index) read(ctx context.Context, ids []string) ([]index.Entry, error) {
	names := readFields()
	rows, err := x.fieldsOf(ctx, ids, names)
	if err != nil {
		return nil, err
	}
	var entries []index.Entry
	for i, row := range rows {
		fields := map[string]any{}
		for j, v := range row {
			if v != nil {
				fields[names[j]] = v
			}
		}
		if len(fields) > 0 {
			entries = append(entries, x.entry(ids[i], fields))
		}
	}
	return entries, nil
}

// fieldsOf returns fields of the hashes of ids, nil for a missing hash.
func (x *Index) fieldsOf(ctx context.Context, ids, names []string) ([][]any, error) {
	commands := make([]*driver.SliceCmd, len(ids))
	_, err := x.client.Pipelined(ctx, func(pipe driver.Pipeliner) error {
		for i, id := range ids {
			commands[i] = pipe.HMGet(ctx, x.key(id), names...)
		}
		return nil
	})
	if err != nil {
		return nil, x.failure(ctx, err)
	}
	rows := make([][]any, len(ids))
	for i, command := range commands {
		rows[i] = command.Val()
	}
	return rows, nil
}

// Hashes returns the hashes of entries. Hashes of Redis that no index contains count as
// missing, so that a Put adds them.
func (x *Index) Hashes(ctx context.Context, ids []string) (map[string]string, error) {
	hashes := map[string]string{}
	s, err := x.find(ctx)
	if s == nil || err != nil {
		return hashes, err
	}
	for batch := range slices.Chunk(ids, batchSize) {
		rows, err := x.fieldsOf(ctx, batch, []string{idField, remote.KeyHash})
		if err != nil {
			return nil, err
		}
		for i, row := range rows {
			if row[0] != nil {
				hashes[batch[i]], _ = row[1].(string)
			}
		}
	}
	return hashes, nil
}
