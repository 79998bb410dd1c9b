package sqlitefile

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"syscall"
)

// errOldFormat reports a file that must be upgraded before it can be read.
var errOldFormat = errors.New("written by an older version of qtype; to upgrade it, the file and its folder must be writable")

// checkDescriptors returns the error of the system if this process cannot open as many files as
// the connections to a database need. SQLite reports that as it reports a missing permission.
func checkDescriptors(path string) error {
	const needed = 8 // the file, its log and its index, for the connection that writes and for one that reads
	for range needed {
		file, err := os.Open(path)
		if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
			return err
		}
		if err == nil {
			defer file.Close()
		}
	}
	return nil
}

// connectReadOnly opens a file that cannot be written; denied is the error of the attempt
// to write it. Changes fail with SQLite's error. If not even the files of WAL mode
// can be created, the file is read without them: no other process can be writing it, unless
// it has left changes in them.
func (f *File[T]) connectReadOnly(ctx context.Context, denied error) (*Conn[T], error) {
	if info, err := os.Stat(f.path); err != nil || info.Size() == 0 {
		return nil, denied
	}
	c, err := f.openReadOnly(ctx, url.Values{"mode": {"ro"}})
	if !isDenied(err) {
		return c, err
	}
	if info, err := os.Stat(f.path + "-wal"); err == nil && info.Size() > 0 {
		return nil, denied
	}
	if c, err = f.openReadOnly(ctx, url.Values{"mode": {"ro"}, "immutable": {"1"}}); isDenied(err) {
		err = denied
	}
	return c, err
}

func (f *File[T]) openReadOnly(ctx context.Context, mode url.Values) (*Conn[T], error) {
	db, err := sql.Open("sqlite", uri(f.path)+"&"+mode.Encode())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(MaxReaders)
	c := &Conn[T]{databases: databases{Write: db, Read: db}}
	current, err := version(ctx, db, f.config.ApplicationID, len(f.config.Migrations))
	if err == nil && current < len(f.config.Migrations) {
		err = errOldFormat
	}
	if err == nil {
		c.Statements, err = f.config.Prepare(ctx, db, db)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return c, nil
}
