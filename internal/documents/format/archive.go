package format

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/xml"
	"errors"
	"io"
	"path"
	"strconv"
	"strings"

	"golang.org/x/net/html/charset"
)

// archive is a zip archive whose parts are read within the limit of the conversion.
type archive struct {
	job   *job
	parts map[string]*zip.File // by name in lower case
}

// errNoPart is the error of a part that the archive does not have.
var errNoPart = errors.New("the part is missing")

// openArchive reads the directory of an archive.
func openArchive(j *job) (*archive, error) {
	if entries(j.file.Data) == 0xffff {
		return nil, errorf(TooLarge, "has too many parts")
	}
	r, err := zip.NewReader(bytes.NewReader(j.file.Data), int64(len(j.file.Data)))
	if err != nil {
		return nil, err
	}
	a := &archive{job: j, parts: map[string]*zip.File{}}
	for _, f := range r.File {
		if f.Flags&1 != 0 {
			return nil, errorf(Encrypted, "is encrypted: remove the password first")
		}
		a.parts[partName(f.Name)] = f
	}
	return a, nil
}

// entries returns the number of entries that an archive states; 65535 if there are more.
func entries(data []byte) int {
	at := bytes.LastIndex(data[max(0, len(data)-1<<16):], []byte("PK\x05\x06"))
	end := data[max(0, len(data)-1<<16):]
	if at < 0 || at+12 > len(end) {
		return 0
	}
	return int(binary.LittleEndian.Uint16(end[at+10:]))
}

func partName(name string) string {
	return strings.ToLower(strings.TrimPrefix(strings.ReplaceAll(name, `\`, "/"), "/"))
}

// has reports whether the archive has a part.
func (a *archive) has(name string) bool { return a.parts[partName(name)] != nil }

// read returns the content of a part.
func (a *archive) read(name string) ([]byte, error) {
	f := a.parts[partName(name)]
	if f == nil {
		return nil, errNoPart
	}
	in, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, a.job.unpacked+1)) // the limit bounds the time, too
	if a.job.unpacked -= int64(len(data)); a.job.unpacked < 0 {
		return nil, unpackedTooLarge(a.job.limits)
	}
	return data, err
}

// element is an element of XML, or a text, which has no name. Names have no namespace.
type element struct {
	name     string
	attrs    []xml.Attr
	children []*element
	text     string
}

const (
	maxElements = 2_000_000 // elements and texts of a part
	maxXMLDepth = 256
)

// xml returns the root of a part of XML; an error that is errNoPart if there is none.
func (a *archive) xml(name string) (*element, error) {
	data, err := a.read(name)
	if err != nil {
		return nil, err
	}
	return parseXML(data)
}

// parseXML reads XML. Entities that a document declares are not expanded.
func parseXML(data []byte) (*element, error) {
	dec := xml.NewDecoder(bytes.NewReader(data))
	dec.CharsetReader = charset.NewReaderLabel
	dec.Strict = false
	dec.Entity = xml.HTMLEntity
	root := &element{}
	stack := []*element{root}
	for count := 0; ; count++ {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if count > maxElements || len(stack) > maxXMLDepth {
			return nil, errorf(TooLarge, "has a part with too many or too deeply nested elements")
		}
		top := stack[len(stack)-1]
		switch token := token.(type) {
		case xml.StartElement:
			if token.Name.Local == "Fallback" { // repeats a Choice for older programs
				if err := dec.Skip(); err != nil {
					return nil, err
				}
				continue
			}
			child := &element{name: token.Name.Local, attrs: token.Copy().Attr}
			top.children = append(top.children, child)
			stack = append(stack, child)
		case xml.EndElement:
			if len(stack) > 1 {
				stack = stack[:len(stack)-1]
			}
		case xml.CharData:
			top.children = append(top.children, &element{text: string(token)})
		}
	}
	for _, child := range root.children {
		if child.name != "" {
			return child, nil
		}
	}
	return nil, errors.New("no element")
}

// attr returns the value of an attribute by its name without a namespace.
func (e *element) attr(name string) string {
	if e == nil {
		return ""
	}
	for _, a := range e.attrs {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// child returns the first child of a path of names; nil if there is none.
func (e *element) child(names ...string) *element {
	for _, name := range names {
		var next *element
		if e != nil {
			for _, c := range e.children {
				if c.name == name {
					next = c
					break
				}
			}
		}
		e = next
	}
	return e
}

// all returns the elements of a name below e, in order. It does not search below those.
func (e *element) all(name string) []*element {
	if e == nil {
		return nil
	}
	var found []*element
	for _, c := range e.children {
		if c.name == name {
			found = append(found, c)
		} else {
			found = append(found, c.all(name)...)
		}
	}
	return found
}

// content returns the text below e.
func (e *element) content() string {
	if e == nil {
		return ""
	}
	var b strings.Builder
	e.collect(&b)
	return b.String()
}

func (e *element) collect(b *strings.Builder) {
	b.WriteString(e.text)
	for _, c := range e.children {
		c.collect(b)
	}
}

// relation is a relation of a part to another part or to an address.
type relation struct {
	kind     string // the last part of the type's address
	target   string // a part of the archive, or an address
	external bool
}

// relations returns the relations of a part by their ids.
func (a *archive) relations(part string) (map[string]relation, error) {
	dir, file := path.Split(part)
	root, err := a.xml(dir + "_rels/" + file + ".rels")
	if errors.Is(err, errNoPart) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found := map[string]relation{}
	for _, e := range root.all("Relationship") {
		r := relation{kind: path.Base(e.attr("Type")), target: e.attr("Target"), external: e.attr("TargetMode") == "External"}
		if !r.external {
			r.target = joinPart(dir, r.target)
		}
		found[e.attr("Id")] = r
	}
	return found, nil
}

// joinPart returns the name of a part relative to a directory of the archive.
func joinPart(dir, target string) string {
	if strings.HasPrefix(target, "/") {
		return strings.TrimPrefix(target, "/")
	}
	return strings.TrimPrefix(path.Join("/", dir, target), "/")
}

// mainPart returns the main part of an office document.
func (a *archive) mainPart(other string) string {
	relations, err := a.relations("")
	if err == nil {
		for _, r := range relations {
			if r.kind == "officeDocument" && a.has(r.target) {
				return r.target
			}
		}
	}
	return other
}

// officeTitle returns the title in the properties of an office document.
func (a *archive) officeTitle() string {
	core, err := a.xml("docProps/core.xml")
	if err != nil {
		return ""
	}
	return collapseSpace(core.child("title").content())
}

// convertEPUB returns the chapters of a book, each as a page.
func convertEPUB(ctx context.Context, j *job) (*Result, error) {
	a, err := openArchive(j)
	if err != nil {
		return nil, err
	}
	if err := checkRights(a); err != nil {
		return nil, err
	}
	container, err := a.xml("META-INF/container.xml")
	if err != nil {
		return nil, err
	}
	files := container.all("rootfile")
	if len(files) == 0 {
		return nil, errors.New("no root file")
	}
	part := files[0].attr("full-path")
	book, err := a.xml(part)
	if err != nil {
		return nil, err
	}
	items := map[string]*element{}
	for _, item := range book.child("manifest").all("item") {
		items[item.attr("id")] = item
	}
	w := j.writer(ctx)
	for _, reference := range book.child("spine").all("itemref") {
		item := items[reference.attr("idref")]
		if item == nil || strings.Contains(" "+item.attr("properties")+" ", " nav ") || reference.attr("linear") == "no" {
			continue
		}
		if err := chapter(w, a, joinPart(path.Dir(part), item.attr("href"))); err != nil {
			return nil, err
		}
	}
	result, err := w.result()
	if err != nil {
		return nil, err
	}
	result.Title = collapseSpace(book.child("metadata", "title").content())
	return result, nil
}

// chapter writes a chapter. A chapter whose part is missing is left out.
func chapter(w *writer, a *archive, part string) error {
	data, err := a.read(part)
	if errors.Is(err, errNoPart) {
		return nil
	}
	if err != nil {
		return err
	}
	text, err := toUTF8(data, "utf-8")
	if err != nil {
		return err
	}
	w.page(strconv.Itoa(len(w.pages) + 1))
	_, err = writePage(w, text, pageOptions{})
	return err
}

// checkRights returns an error for a book that is encrypted. Embedded fonts may be
// obfuscated in any book.
func checkRights(a *archive) error {
	encryption, err := a.xml("META-INF/encryption.xml")
	if errors.Is(err, errNoPart) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, method := range encryption.all("EncryptionMethod") {
		if algorithm := method.attr("Algorithm"); !strings.HasPrefix(algorithm, "http://www.idpf.org/2008/embedding") && !strings.HasPrefix(algorithm, "http://ns.adobe.com/pdf/enc") {
			return errorf(Encrypted, "is protected by digital rights management, which cannot be removed here")
		}
	}
	return nil
}
