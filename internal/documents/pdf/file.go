package pdf

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"strconv"
	"sync"
)

// file is the objects of a PDF file.
type file struct {
	ctx       context.Context
	data      []byte
	places    map[int]place // by object number
	trailer   dict
	cache     map[int]object
	resolving int
	streams   map[int][]object // the objects of object streams, by the number of the stream
	numbers   map[int][]int    // their numbers
	crypt     *crypt
	unpacked  int64 // bytes that may still be unpacked
	rebuilt   bool
}

// place is where an object is.
type place struct {
	offset int // in the file; in an object stream, its index
	in     int // the number of the object stream, 0 if there is none
}

// maxObjects is the maximum number of objects of a file.
const maxObjects = 8_000_000

// open reads the tables of a file. A damaged table is rebuilt from the objects.
func open(ctx context.Context, data []byte, password string, limits Limits) (*file, error) {
	if at := bytes.Index(data[:min(len(data), 1024)], []byte("%PDF-")); at > 0 {
		data = data[at:] // offsets are counted from the header
	}
	f := &file{ctx: ctx, data: data, unpacked: limits.Unpacked}
	f.reset()
	if !f.readTables() || f.catalog() == nil {
		f.rebuild()
	}
	if f.trailer["Encrypt"] != nil {
		if err := f.decrypt(password); err != nil {
			return nil, err
		}
	}
	if f.catalog() == nil && !f.rebuilt {
		f.rebuild()
	}
	if f.catalog() == nil {
		return nil, ErrDamaged
	}
	return f, nil
}

func (f *file) reset() {
	f.places, f.trailer, f.cache = map[int]place{}, dict{}, map[int]object{}
	f.streams, f.numbers = map[int][]object{}, map[int][]int{}
}

// catalog returns the root of the document, nil if there is none.
func (f *file) catalog() dict {
	root, _ := f.resolve(f.trailer["Root"]).(dict)
	if root["Pages"] == nil {
		return nil
	}
	return root
}

// readTables reads the chain of cross-reference tables from the end of the file.
func (f *file) readTables() bool {
	tail := f.data[max(0, len(f.data)-2048):]
	at := bytes.LastIndex(tail, []byte("startxref"))
	if at < 0 {
		return false
	}
	l := &lexer{data: tail, pos: at + len("startxref")}
	start, ok := l.next().(float64)
	seen := map[int]bool{}
	for next := int(start); ok; {
		if next < 0 || next >= len(f.data) || seen[next] {
			return len(seen) > 0 && seen[next]
		}
		seen[next] = true
		trailer := f.readTable(next)
		if trailer == nil {
			return false
		}
		for key, value := range trailer {
			if _, known := f.trailer[key]; !known {
				f.trailer[key] = value
			}
		}
		if hybrid, isHybrid := trailer["XRefStm"].(float64); isHybrid && int(hybrid) < len(f.data) && hybrid > 0 {
			f.readTable(int(hybrid))
		}
		var previous float64
		if previous, ok = trailer["Prev"].(float64); ok {
			next = int(previous)
		}
	}
	return len(seen) > 0
}

// readTable reads one table, in text or in a stream, and returns its trailer; nil if
// it is damaged.
func (f *file) readTable(offset int) dict {
	l := &lexer{data: f.data, pos: offset}
	if l.next() != keyword("xref") {
		return f.readTableStream(offset)
	}
	for {
		first := l.next()
		if first == keyword("trailer") {
			trailer, _ := l.next().(dict)
			return trailer
		}
		number, ok := first.(float64)
		count, ok2 := l.next().(float64)
		if !ok || !ok2 || count < 0 || count > maxObjects {
			return nil
		}
		for i := range int(count) {
			at, ok := l.next().(float64)
			_, ok2 := l.next().(float64)
			kind, ok3 := l.next().(keyword)
			if !ok || !ok2 || !ok3 {
				return nil
			}
			if kind == "n" && at > 0 {
				f.place(int(number)+i, place{offset: int(at)})
			}
		}
	}
}

// place records where an object is, unless a newer table has it.
func (f *file) place(number int, p place) {
	if _, known := f.places[number]; !known && len(f.places) < maxObjects {
		f.places[number] = p
	}
}

// readTableStream reads a table in a stream.
func (f *file) readTableStream(offset int) dict {
	o, _ := f.objectAt(offset)
	s, ok := o.(*stream)
	if !ok || s.dict["Type"] != name("XRef") {
		return nil
	}
	data, err := f.decode(s)
	widths, _ := s.dict["W"].(array)
	if err != nil || len(widths) < 3 {
		return nil
	}
	var w [3]int
	for i := range w {
		if w[i] = f.integer(widths[i], 0); w[i] < 0 || w[i] > 8 {
			return nil
		}
	}
	size := w[0] + w[1] + w[2]
	index, ok := s.dict["Index"].(array)
	if !ok {
		index = array{0.0, s.dict["Size"]}
	}
	for i := 0; i+1 < len(index); i += 2 {
		first, count := f.integer(index[i], 0), f.integer(index[i+1], 0)
		for n := 0; n < count && size > 0 && len(data) >= size; n++ {
			kind, a, b := bigEndian(data[:w[0]]), bigEndian(data[w[0]:w[0]+w[1]]), bigEndian(data[w[0]+w[1]:size])
			data = data[size:]
			switch {
			case w[0] == 0 || kind == 1:
				f.place(first+n, place{offset: a})
			case kind == 2:
				f.place(first+n, place{offset: b, in: a})
			}
		}
	}
	return s.dict
}

func bigEndian(b []byte) int {
	n := 0
	for _, c := range b {
		n = n<<8 | int(c)
	}
	return n
}

// objectStart matches the beginning of an object.
var objectStart = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?:^|[\s>])(\d{1,9})\s+(\d{1,5})\s+obj\b`) })

// rebuild finds the objects of a file whose tables are damaged. The last object of a
// number is the newest.
func (f *file) rebuild() {
	f.reset()
	f.rebuilt = true
	for _, m := range objectStart().FindAllSubmatchIndex(f.data, maxObjects) {
		number, err := strconv.Atoi(string(f.data[m[2]:m[3]]))
		if err == nil {
			f.places[number] = place{offset: m[2]}
		}
	}
	for at := 0; ; {
		next := bytes.Index(f.data[at:], []byte("trailer"))
		if next < 0 {
			break
		}
		at += next + len("trailer")
		trailer, _ := (&lexer{data: f.data, pos: at}).next().(dict)
		for key, value := range trailer {
			f.trailer[key] = value
		}
	}
	plain := make(map[int]place, len(f.places))
	for number, p := range f.places {
		plain[number] = p
	}
	for number, p := range plain {
		f.inspect(number, p)
	}
}

// inspect uses an object for the rebuilt table: an object stream, a table, the catalog.
func (f *file) inspect(number int, p place) {
	window := f.data[p.offset:min(len(f.data), p.offset+512)]
	if !bytes.Contains(window, []byte("/ObjStm")) && !bytes.Contains(window, []byte("/XRef")) && !bytes.Contains(window, []byte("/Catalog")) {
		return
	}
	switch o := f.resolve(ref{number, 0}).(type) {
	case dict:
		if o["Type"] == name("Catalog") && f.trailer["Root"] == nil {
			f.trailer["Root"] = ref{number, 0}
		}
	case *stream:
		switch o.dict["Type"] {
		case name("XRef"):
			for _, key := range []name{"Root", "Encrypt", "ID", "Info"} {
				if value := o.dict[key]; value != nil && f.trailer[key] == nil {
					f.trailer[key] = value
				}
			}
		case name("ObjStm"):
			f.objectStream(number)
			for i, contained := range f.numbers[number] {
				if _, known := f.places[contained]; !known {
					f.places[contained] = place{offset: i, in: number}
				}
				if d, ok := f.streams[number][i].(dict); ok && d["Type"] == name("Catalog") && f.trailer["Root"] == nil {
					f.trailer["Root"] = ref{contained, 0}
				}
			}
		}
	}
}

// maxResolving is the maximum number of references to references.
const maxResolving = 32

// resolve returns the object that a reference names; other objects unchanged. It is nil
// if there is none.
func (f *file) resolve(o object) object {
	r, ok := o.(ref)
	if !ok {
		return o
	}
	if known, ok := f.cache[r.number]; ok {
		return known
	}
	if f.resolving >= maxResolving {
		return nil
	}
	f.resolving++
	defer func() { f.resolving-- }()
	value := f.resolve(f.load(r))
	if _, isStream := value.(*stream); !isStream || len(f.cache) < 10_000 {
		f.cache[r.number] = value
	}
	return value
}

// load reads an object.
func (f *file) load(r ref) object {
	p, ok := f.places[r.number]
	if !ok {
		return nil
	}
	if p.in > 0 {
		f.objectStream(p.in)
		if objects := f.streams[p.in]; p.offset < len(objects) && f.numbers[p.in][p.offset] == r.number {
			return objects[p.offset]
		}
		return nil
	}
	o, number := f.objectAt(p.offset)
	if number != r.number {
		if !f.rebuilt { // the table is wrong
			encrypted := f.crypt
			trailer := f.trailer
			f.rebuild()
			f.crypt = encrypted
			for key, value := range trailer {
				if f.trailer[key] == nil {
					f.trailer[key] = value
				}
			}
			return f.load(r)
		}
		return nil
	}
	if f.crypt != nil {
		o = f.crypt.object(o, r, 0)
	}
	return o
}

// objectAt reads the object at an offset, and its number; -1 if there is none.
func (f *file) objectAt(offset int) (object, int) {
	if offset < 0 || offset >= len(f.data) {
		return nil, -1
	}
	l := &lexer{data: f.data, pos: offset}
	number, ok := l.next().(float64)
	_, ok2 := l.next().(float64)
	if !ok || !ok2 || l.next() != keyword("obj") {
		return nil, -1
	}
	o := l.next()
	if n, isNumber := o.(float64); isNumber {
		if r, isRef := l.reference(n); isRef {
			o = r
		}
	}
	d, isDict := o.(dict)
	if !isDict {
		return o, int(number)
	}
	if l.skipSpace(); !bytes.HasPrefix(f.data[l.pos:], []byte("stream")) {
		return o, int(number)
	}
	l.pos += len("stream")
	if l.peek(0) == '\r' {
		l.pos++
	}
	if l.peek(0) == '\n' {
		l.pos++
	}
	return &stream{dict: d, raw: f.streamData(d, l.pos)}, int(number)
}

// streamData returns the bytes of a stream. A wrong length is corrected by the keyword
// that ends the stream.
func (f *file) streamData(d dict, start int) []byte {
	if start >= len(f.data) {
		return nil
	}
	if length, ok := f.resolve(d["Length"]).(float64); ok && length >= 0 && start+int(length) <= len(f.data) {
		l := &lexer{data: f.data, pos: start + int(length)}
		if l.skipSpace(); bytes.HasPrefix(f.data[min(l.pos, len(f.data)):], []byte("endstream")) {
			return f.data[start : start+int(length)]
		}
	}
	end := bytes.Index(f.data[start:], []byte("endstream"))
	if end < 0 {
		return f.data[start:]
	}
	return bytes.TrimRight(f.data[start:start+end], "\r\n")
}

// objectStream reads the objects of an object stream.
func (f *file) objectStream(number int) {
	if _, known := f.streams[number]; known {
		return
	}
	f.streams[number], f.numbers[number] = nil, nil
	s, ok := f.resolve(ref{number, 0}).(*stream)
	if !ok {
		return
	}
	data, err := f.decode(s)
	count, first := f.integer(s.dict["N"], 0), f.integer(s.dict["First"], 0)
	if err != nil || first < 0 || first > len(data) || count > maxObjects {
		return
	}
	head := &lexer{data: data[:first]}
	for range count {
		n, ok := head.next().(float64)
		at, ok2 := head.next().(float64)
		if !ok || !ok2 || at < 0 || first+int(at) > len(data) {
			return
		}
		f.numbers[number] = append(f.numbers[number], int(n))
		f.streams[number] = append(f.streams[number], (&lexer{data: data, pos: first + int(at)}).next())
	}
}

// integer returns a number as an int, or other if it is none.
func (f *file) integer(o object, other int) int {
	n, ok := f.resolve(o).(float64)
	if !ok || n > 1<<40 || n < -1<<40 {
		return other
	}
	return int(n)
}

// dict returns a dictionary, also that of a stream; nil for other objects.
func (f *file) dict(o object) dict {
	switch o := f.resolve(o).(type) {
	case dict:
		return o
	case *stream:
		return o.dict
	}
	return nil
}

// The errors of Read.
var (
	ErrDamaged   = errors.New("the file is damaged")
	ErrEncrypted = errors.New("the file needs a password")
	ErrPassword  = errors.New("the password is wrong")
	ErrTooLarge  = errTooLarge
	ErrPages     = errors.New("too many pages")
)
