package ranking

import (
	"context"
	"encoding/binary"
	"slices"
	"strings"
)

// A segment is the stored index of consecutive messages of a session, in pieces: the header, columns with what is
// known of each document, a sorted dictionary of terms, and lists of the documents that have them. The columns are read when the
// segment is added to a corpus, pieces of the dictionary and lists when a query has their terms.

// SegmentForm changes when documents of the same messages get other passages, terms, vectors or pieces than before.
const SegmentForm = 1

const (
	columnDocs      = 1 << 14  // documents of a piece of the columns
	dictionaryBytes = 16 << 10 // of a piece of the dictionary
	listBytes       = 64 << 10

	asideFlag, asksFlag, flagBits = 1, 2, 2 // beside the number of an author
)

// encoder writes the pieces of a segment: the header, columns, dictionary and lists.
type encoder struct {
	*Corpus
	header, dictionary, lists []byte
	pieces                    [][]byte // of the columns, then those of the dictionary
	listPieces                [][]byte
}

// EncodeSegment returns the pieces of the documents of a corpus, which are of one session and of which none was removed.
func (c *Corpus) EncodeSegment(ctx context.Context) ([][]byte, error) {
	c.ctx = ctx
	if err := c.readAll(); err != nil {
		return nil, err
	}
	e := &encoder{Corpus: c}
	names := make([]string, len(c.authors))
	for name, number := range c.named {
		names[number] = name
	}
	e.header = appendNumbers(nil, len(c.docs), c.vectorBytes(), len(names))
	for _, name := range names {
		e.header = appendText(e.header, name)
	}
	for first := 0; first < len(c.docs); first += columnDocs {
		e.pieces = append(e.pieces, e.columns(first, min(first+columnDocs, len(c.docs))))
	}
	e.addTerms()
	return slices.Concat([][]byte{e.header}, e.pieces, e.listPieces), nil
}

// vectorBytes is the size of the vector of a document, 0 without.
func (c *Corpus) vectorBytes() int {
	if c.meanings == nil {
		return 0
	}
	return c.meanings.RowSize()
}

func appendNumbers(to []byte, numbers ...int) []byte {
	for _, n := range numbers {
		to = binary.AppendUvarint(to, uint64(n))
	}
	return to
}

func appendText(to []byte, text string) []byte {
	return append(binary.AppendUvarint(to, uint64(len(text))), text...)
}

// columns returns what is known of documents: column by column, positions and times as differences, then the vectors.
func (e *encoder) columns(first, end int) (b []byte) {
	docs := e.docs[first:end]
	var before record
	for i := range docs {
		b = binary.AppendUvarint(b, uint64(docs[i].seq-before.seq))
		before = docs[i]
	}
	before = record{}
	for i := range docs {
		b = binary.AppendVarint(b, docs[i].seconds-before.seconds)
		before = docs[i]
	}
	for i := range docs {
		b = appendNumbers(b, int(docs[i].part))
	}
	for i := range docs {
		flags := 0
		if docs[i].aside {
			flags |= asideFlag
		}
		if docs[i].asks {
			flags |= asksFlag
		}
		b = appendNumbers(b, int(docs[i].author)<<flagBits|flags)
	}
	for _, n := range e.lengths[first:end] {
		b = appendNumbers(b, int(n))
	}
	for _, n := range e.wholes[first:end] {
		b = appendNumbers(b, int(n))
	}
	for doc := first; doc < end && e.meanings != nil; doc++ {
		b = append(b, e.meanings.Encode(doc)...)
	}
	return b
}

// addTerms adds the dictionary, its index and the lists. A list is in one piece.
func (e *encoder) addTerms() {
	var order []int32
	for id, list := range e.postings {
		if len(list) > 0 {
			order = append(order, int32(id))
		}
	}
	slices.SortFunc(order, func(a, b int32) int { return strings.Compare(e.terms[a], e.terms[b]) })
	var index []byte
	begun := 0 // pieces of the dictionary
	for _, id := range order {
		list := encodeList(e.postings[id])
		next := len(e.lists) > 0 && len(e.lists)+len(list) > listBytes
		if next {
			e.endLists()
		}
		if len(e.dictionary) == 0 {
			index = appendNumbers(appendText(index, e.terms[id]), len(e.listPieces), len(e.lists))
			begun++
		}
		flag := 0
		if next {
			flag = 1
		}
		e.dictionary = appendNumbers(appendText(e.dictionary, e.terms[id]), len(list)<<1|flag)
		e.lists = append(e.lists, list...)
		if len(e.dictionary) >= dictionaryBytes {
			e.endDictionary()
		}
	}
	e.endDictionary()
	e.endLists()
	e.header = append(appendNumbers(e.header, begun), index...)
}

func (e *encoder) endDictionary() {
	if len(e.dictionary) > 0 {
		e.pieces, e.dictionary = append(e.pieces, e.dictionary), nil
	}
}

func (e *encoder) endLists() {
	if len(e.lists) > 0 {
		e.listPieces, e.lists = append(e.listPieces, e.lists), nil
	}
}

// encodeList returns the documents of a term as differences, with a number of occurrences where it is not 1.
func encodeList(list []uint32) (b []byte) {
	before := uint32(0)
	for _, p := range list {
		doc, count := p>>countBits, p&maxCount
		if count == 1 {
			b = binary.AppendUvarint(b, uint64(doc-before)<<1)
		} else {
			b = append(binary.AppendUvarint(b, uint64(doc-before)<<1|1), byte(count))
		}
		before = doc
	}
	return b
}
