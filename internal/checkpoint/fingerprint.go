package checkpoint

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
)

// FingerprintOptions are what the readers of a fingerprint differ in.
type FingerprintOptions struct {
	Ignore     []string                   // keys that do not count, in addition to those that never do
	IgnoreRoot []string                   // keys of the root itself that do not count; in the flows that it runs they do
	Extra      func(spec.Entity) []string // what else counts for an entity; may be nil
}

// Fingerprint returns a digest of the declaration of an entity and of each
// entity that it uses, such as a model, a memory, a tool, a type or another flow.
// The keys are names such as "step draft". Two entities with the same
// fingerprint make the same of a row.
//
// It reads the structs of package spec by their tags, so a new key counts at once, and is over
// what the document says: another order or other names of Go fields compute the same. Unset
// keys and keys with their default do not count, nor do texts of secrets and keys that only
// change the speed, number or price of attempts. Of addresses and environment variables, only
// what is confidential does not count.
func Fingerprint(root spec.Entity, o FingerprintOptions) map[string]string {
	f := &fingerprinter{FingerprintOptions: o, labels: map[spec.Entity]string{}, digests: map[string]string{}}
	f.use(root)
	for len(f.todo) > 0 {
		e := f.todo[0]
		f.todo = f.todo[1:]
		f.hash, f.atRoot = sha256.New(), e == root
		f.fields(reflect.ValueOf(e).Elem())
		if f.Extra != nil {
			f.writeTexts(f.Extra(e))
		}
		f.digests[f.labels[e]] = hex.EncodeToString(f.hash.Sum(nil)[:16])
	}
	return f.digests
}

// neverCounts reports whether a key has no influence on what is made of a row.
func neverCounts(key string) bool {
	return slices.Contains([]string{
		"-", "auth", "budget", "cache_config", "concurrency_config", "feedback", "interface", "offline", "prices",
		"rate_limit", "retry", "timeout", "vector_cache",
	}, key)
}

// fingerprinter walks the entities that a root uses.
type fingerprinter struct {
	FingerprintOptions
	labels  map[spec.Entity]string // of the entities that were found
	digests map[string]string      // by label
	todo    []spec.Entity
	hash    hash.Hash // of the current entity
	atRoot  bool      // it is the root
}

// writeTexts writes texts with their quotes, so that they stay separate.
func (f *fingerprinter) writeTexts(texts []string) {
	for _, t := range texts {
		fmt.Fprintf(f.hash, "%q;", t)
	}
}

func (f *fingerprinter) writeText(t string) { fmt.Fprintf(f.hash, "%q", t) }

func (f *fingerprinter) writePunctuation(s string) { _, _ = io.WriteString(f.hash, s) } // a hash does not fail

// use returns the label of an entity, and lists the entity for a digest. Labels
// are unique: documents that are included may use an id again.
func (f *fingerprinter) use(e spec.Entity) string {
	if label, known := f.labels[e]; known {
		return label
	}
	label := string(e.Kind()) + " " + e.EntityID()
	for n := 2; ; n++ {
		if _, taken := f.digests[label]; !taken {
			break
		}
		label = fmt.Sprintf("%s %s (%d)", e.Kind(), e.EntityID(), n)
	}
	f.labels[e], f.digests[label] = label, ""
	f.todo = append(f.todo, e)
	return label
}

// fields writes the keys of a struct that the document sets, sorted: neither the names nor the order
// of the fields of the program count, nor keys that have their default.
func (f *fingerprinter) fields(v reflect.Value) {
	f.writePunctuation(spec.TypeNameOf(reflect.PointerTo(v.Type())) + "{")
	for _, k := range f.keys(v) {
		f.writePunctuation(k.name + ":")
		if address, ok := k.value.Interface().(spec.Secret); ok && k.isAddress && address.Ref == nil {
			f.writeText(redact.WithoutCredentials(address.Reveal()))
		} else {
			f.value(k.value)
		}
		f.writePunctuation(";")
	}
	f.writePunctuation("}")
}

// setKey is a key that counts.
type setKey struct {
	name      string
	value     reflect.Value
	isAddress bool
}

// keys returns the keys of a struct that count, sorted by name, those of embedded structs among them.
func (f *fingerprinter) keys(v reflect.Value) (all []setKey) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		tag, tagged := field.Tag.Lookup("yaml")
		name, _, _ := strings.Cut(tag, ",")
		switch {
		case field.Type == reflect.TypeFor[spec.Positioned]():
		case field.Anonymous && !tagged && field.Type.Kind() == reflect.Struct:
			all = append(all, f.keys(v.Field(i))...)
		case !field.IsExported() || neverCounts(name) || slices.Contains(f.Ignore, name) || f.atRoot && slices.Contains(f.IgnoreRoot, name):
		case v.Field(i).IsZero() || isDefault(v.Field(i), field.Tag):
		default:
			if !tagged { // a part of a value, such as the variable of an assignment
				name = strings.ToLower(field.Name)
			}
			all = append(all, setKey{name, v.Field(i), field.Tag.Get("secret") == "url"})
		}
	}
	slices.SortStableFunc(all, func(a, b setKey) int { return strings.Compare(a.name, b.name) })
	return all
}

// isDefault reports whether a value is the default of its key. The document need not have set it.
func isDefault(v reflect.Value, tag reflect.StructTag) bool {
	fallback, ok := tag.Lookup("default")
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	return ok && fmt.Sprint(v.Interface()) == fallback
}

// value writes a value; an entity is written as its label.
func (f *fingerprinter) value(v reflect.Value) {
	if f.special(v) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if text, ok := v.Interface().(string); ok && looksOther(text) {
			f.writePunctuation("text ") // "1" in a filter is not 1
		}
		if v.IsNil() {
			f.writePunctuation("nil")
			return
		}
		if e, ok := v.Interface().(spec.Entity); ok && e.Kind() != spec.KindVariable {
			f.writeText(f.use(e))
			return
		}
		f.value(v.Elem())
	case reflect.Struct:
		f.fields(v)
	case reflect.Slice, reflect.Array:
		f.writePunctuation("[")
		for i := range v.Len() {
			f.value(v.Index(i))
			f.writePunctuation(",")
		}
		f.writePunctuation("]")
	case reflect.Map:
		f.entries(v)
	default:
		f.writeText(fmt.Sprint(v.Interface()))
	}
}

// entries writes a map in the order of its keys.
func (f *fingerprinter) entries(v reflect.Value) {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(x, y reflect.Value) int { return strings.Compare(fmt.Sprint(x), fmt.Sprint(y)) })
	f.writePunctuation("{")
	for _, k := range keys {
		f.writeText(fmt.Sprint(k))
		f.writePunctuation(":")
		if variable, ok := v.MapIndex(k).Interface().(spec.Secret); ok && variable.Ref == nil {
			f.variable(k.String(), variable.Reveal())
		} else {
			f.value(v.MapIndex(k))
		}
		f.writePunctuation(";")
	}
	f.writePunctuation("}")
}

// variable writes the value of an environment variable of a program, unless it is confidential.
func (f *fingerprinter) variable(name, text string) {
	if !redact.NamesSecretVariable(name) && !redact.LooksSecret(text) {
		f.writeText(redact.WithoutCredentials(text))
	}
}

// looksOther reports whether a text has the form of a number or a boolean.
func looksOther(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err == nil || text == "true" || text == "false"
}

// special writes values that are not written by their fields, and reports
// whether v is one.
func (f *fingerprinter) special(v reflect.Value) bool {
	switch x := v.Interface().(type) {
	case source.Span:
		return true
	case spec.Secret:
		if x.Ref != nil {
			f.writeTexts([]string{"secret", x.Ref.SecretName, x.Ref.Key})
		}
		return true
	case spec.Type:
		f.typ(x)
		return true
	case spec.Expression:
		f.writeText(x.Text)
		return true
	case spec.Approval:
		f.value(v.FieldByName("Tool")) // who decides makes nothing else of a row
		return true
	}
	if !v.CanAddr() {
		return false
	}
	ref, ok := v.Addr().Interface().(spec.Reference)
	if ok {
		f.reference(v, ref)
	}
	return ok
}

func (f *fingerprinter) typ(t spec.Type) {
	f.writePunctuation(t.String())
	for t := &t; t != nil; t = t.Elem {
		if t.Custom != nil {
			f.use(t.Custom)
		}
	}
}

// reference writes the target of a reference: the id and type of a variable, the
// label of another entity, or the id if the reference is not linked.
func (f *fingerprinter) reference(v reflect.Value, ref spec.Reference) {
	id, _ := spec.Target(ref)
	if ref.Entity() == nil {
		f.writeText(id)
		return
	}
	switch to := v.FieldByName("To").Interface().(type) {
	case *spec.Variable:
		f.writeText(to.ID)
		f.typ(to.Type)
	case spec.Entity:
		f.writeText(f.use(to))
	default:
		f.writeText(id)
	}
}

// Sum returns one digest of a fingerprint.
func Sum(fingerprint map[string]string) [sha256.Size]byte {
	sum := sha256.New()
	for _, label := range slices.Sorted(maps.Keys(fingerprint)) {
		fmt.Fprintf(sum, "%q=%s;", label, fingerprint[label])
	}
	return [sha256.Size]byte(sum.Sum(nil))
}

const (
	keyFile = "journal.key"
	keySize = 32 // bytes
)

// UserKey returns the key of the user for journals, which is in the state folder; it is made if there is
// none. It is nil where a key cannot be stored. A key that others can read is an error.
func UserKey() ([]byte, error) {
	folder := trust.StateFolder()
	if folder == "" {
		return nil, nil
	}
	path := filepath.Join(folder, keyFile)
	key, err := readKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := makeKey(folder, path); err != nil {
		return nil, nil //nolint:nilerr // a folder that cannot be written has no key
	}
	return readKey(path)
}

func readKey(path string) ([]byte, error) {
	f, err := openRegular(path, os.O_RDONLY)
	if err != nil {
		if errors.Is(err, fs.ErrPermission) {
			return nil, nil
		}
		return nil, wrapError(path, err)
	}
	defer func() { _ = f.Close() }() // only read
	info, err := f.Stat()
	if err != nil {
		return nil, wrapError(path, err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return nil, &Error{Path: path, Reason: fmt.Sprintf("has mode %04o, so that others can read it: set it to 0600", info.Mode().Perm())}
	}
	key, err := io.ReadAll(io.LimitReader(f, keySize+1))
	if err == nil && len(key) != keySize {
		err = &Error{Reason: fmt.Sprintf("is not a key of %d bytes; delete it to make another one", keySize)}
	}
	if err != nil {
		return nil, wrapError(path, err)
	}
	return key, nil
}

// makeKey makes a key. If another process does the same, its key stays.
func makeKey(folder, path string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(folder, keyFile+"-*") // has mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // has another name now
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // never returns an error
	_, err = f.Write(key)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return os.Rename(f.Name(), path) // a file system without links
	}
	return nil
}
