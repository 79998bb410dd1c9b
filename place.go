package qtype

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/qtype-dev/qtype/internal/memory/sqlite"
	"github.com/qtype-dev/qtype/internal/memory/storeurl"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
)

// DefaultStore is the store of memories for which neither the document nor an Option
// names another: a SQLite file below the folder of the document, created with the first
// message. It is elsewhere if the environment variable QTYPE_HOME names a folder, for a
// document that is not a local file, and if the folder of the document cannot be
// written; see docs/memory-stores.md.
const DefaultStore = ".qtype/memory.db"

// homeVariable is the environment variable with the folder of all default stores.
const homeVariable = "QTYPE_HOME"

// WithDefaultStore stores memories for which the document names no store at an address,
// as package internal/memory/storeurl describes it, instead of DefaultStore. It is an error if
// the document names a store for all of its memories.
func WithDefaultStore(address string) Option { return func(o *options) { o.storeAddress = address } }

// defaultStore opens the store of memories for which the document names none.
func (o *options) defaultStore(p *Program) (memory.Store, error) {
	if o.storeAddress != "" {
		if err := checkDefaultUsed(p.Document.Application); err != nil {
			return nil, err
		}
		return storeurl.Open(o.storeAddress, storeurl.Among(p.parts.Stores), storeurl.Warn(o.run.Warn))
	}
	place, err := findPlace(p)
	if err != nil {
		return nil, err
	}
	if place.note != "" && o.run.Warn != nil && usesDefault(p.Document.Application) {
		o.run.Warn(place.note)
	}
	return sqlite.Open(place.file)
}

// DefaultStoreFile returns the file of DefaultStore for a document, whether or not it exists.
func DefaultStoreFile(p *Program) (string, error) {
	place, err := findPlace(p)
	return place.file, err
}

// checkDefaultUsed returns an error if no memory is in the default store.
func checkDefaultUsed(app *spec.Application) error {
	if len(app.Memories) == 0 || usesDefault(app) {
		return nil
	}
	return errors.New("the document names the stores of its memories, so the default store cannot be another one")
}

// usesDefault reports whether a memory of the application is in the default store.
func usesDefault(app *spec.Application) bool {
	for _, m := range app.Memories {
		if m.Store.IsZero() && len(app.Stores) == 0 {
			return true
		}
	}
	return false
}

// storePlace is where the default store of a document is.
type storePlace struct {
	file string
	note string // why it is not where the user may expect it; empty if there is nothing to say
}

// findPlace returns the place of the default store of a document.
func findPlace(p *Program) (storePlace, error) {
	document := ""
	if len(p.Files) > 0 {
		document = p.Files[0].Path
	}
	if home := os.Getenv(homeVariable); home != "" {
		return storePlace{file: placeIn(home, document)}, nil
	}
	if _, remote := remotefs.Remote(document); remote || !isFile(document) {
		folder, err := dataFolder()
		return storePlace{file: placeIn(folder, document)}, err
	}
	file := filepath.Join(filepath.Dir(document), filepath.FromSlash(DefaultStore))
	if !trust.IsWithin(filepath.Dir(document), file) {
		return storePlace{}, fmt.Errorf("%s is, or is in, a symbolic link that leaves the folder of the document, so no conversations are stored there: name the store with --store sqlite:FILE, or its folder with %s", file, homeVariable)
	}
	if exists(file) {
		return storePlace{file, noteOther(p, file)}, nil
	}
	if former := formerPlace(p, file); former != "" {
		return storePlace{former, fmt.Sprintf("conversations are in %s, where earlier versions stored them; move the file to %s to have them in the folder of the document", former, file)}, nil
	}
	if isWritable(filepath.Dir(document)) {
		return storePlace{file: file}, nil
	}
	folder, err := dataFolder()
	if err != nil {
		return storePlace{file: file}, nil //nolint:nilerr // the store reports that it cannot be written
	}
	other := placeIn(folder, document)
	return storePlace{other, fmt.Sprintf("conversations are stored in %s, because %s cannot be written", other, filepath.Dir(document))}, nil
}

// placeIn returns the default store of a document below a folder that several
// documents share: each has its own, by the whole path or address of the document.
func placeIn(folder, document string) string {
	whole := document
	if full, err := filepath.Abs(document); err == nil && isFile(document) {
		whole = full
	}
	sum := sha256.Sum256([]byte(whole))
	name := strings.Trim(strings.Map(plainCharacter, filepath.Base(cmp.Or(document, "stdin"))), ".")
	return filepath.Join(folder, "conversations", name+"-"+hex.EncodeToString(sum[:6]), filepath.Base(DefaultStore))
}

// plainCharacter replaces a character that may not be allowed in the name of a file.
func plainCharacter(r rune) rune {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
		return r
	}
	return '_'
}

// dataFolder returns the folder of the user for data of this program.
func dataFolder() (string, error) {
	if folder := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(folder) {
		return filepath.Join(folder, "qtype"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("no folder for conversations: set %s: %w", homeVariable, err)
	}
	return filepath.Join(home, ".local", "share", "qtype"), nil
}

// isFile reports whether a document is a local file.
func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// isWritable reports whether the folder of the default store can be created in a folder, or
// written if it is there, such as for an index.
func isWritable(folder string) bool {
	if own := filepath.Join(folder, filepath.Dir(DefaultStore)); exists(own) {
		folder = own
	}
	probe, err := os.CreateTemp(folder, ".qtype-*")
	if err != nil {
		return false
	}
	_ = probe.Close()
	return os.Remove(probe.Name()) == nil
}

// formerPlace returns the place of earlier versions, below the working directory, if it
// is another one than file and has conversations of the application; otherwise "". A
// restricted document gets none: they may be those of another document with its id.
func formerPlace(p *Program, file string) string {
	former := filepath.FromSlash(DefaultStore)
	if p.checked == nil || p.checked.Policy.Restricted() || !trust.IsWithin(".", former) || isSame(former, file) || !exists(former) || !hasConversations(former, p.Document.Application) {
		return ""
	}
	return former
}

// noteOther returns a note about conversations that earlier versions have stored in another place.
func noteOther(p *Program, file string) string {
	former := formerPlace(p, file)
	if former == "" {
		return ""
	}
	return fmt.Sprintf("%s has conversations of earlier versions, too: --store sqlite:%[1]s continues them instead of those in %s", former, file)
}

// isSame reports whether two paths are the same.
func isSame(a, b string) bool {
	one, errOne := filepath.Abs(a)
	two, errTwo := filepath.Abs(b)
	return errOne == nil && errTwo == nil && one == two
}

// hasConversations reports whether a store has sessions of the memories of an application
// that name no store.
func hasConversations(file string, app *spec.Application) bool {
	if app == nil || !usesDefault(app) {
		return false
	}
	store, err := sqlite.Open(file)
	if err != nil {
		return false
	}
	defer func() { _ = store.Close() }() // only read
	for _, m := range app.Memories {
		for _, err := range store.Sessions(context.Background(), app.ID+"/"+m.ID) {
			return err == nil
		}
	}
	return false
}
