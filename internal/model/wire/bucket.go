package wire

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/qtype-dev/qtype/internal/remotefs"
)

// BatchFolder is a folder of a bucket, with the calls and the answers of batches.
type BatchFolder struct {
	server  *Server
	Address string // with a slash at its end
}

// NewBatchFolder returns the folder at an address. It calls nothing.
func NewBatchFolder(s *Server, address string) BatchFolder {
	return BatchFolder{s, strings.TrimRight(address, "/") + "/"}
}

// Upload writes the calls of a batch to a file, each by format, and returns its address. It replaces a file of that name.
func (f BatchFolder) Upload(
	ctx context.Context, name string, b *Batch, format func(buf []byte, n int, c BatchCall) []byte,
) (address string, err error) {
	address = f.Address + name
	out, err := f.server.Files.Create(ctx, address)
	if err != nil {
		return "", f.server.fileError(ctx, err)
	}
	to := bufio.NewWriterSize(out, 1<<20)
	if err = b.WriteCalls(to, format); err == nil {
		err = to.Flush()
	}
	if err == nil {
		err = out.Commit()
	} else {
		err = errors.Join(err, out.Abort())
	}
	if err != nil {
		return "", f.server.fileError(ctx, err)
	}
	return address, nil
}

// EachLine calls take with each line of a file. An error of take is returned.
func (f BatchFolder) EachLine(ctx context.Context, name string, take func(line []byte) error) error {
	in, err := f.server.Files.Open(ctx, f.Address+name)
	if err != nil {
		return f.server.fileError(ctx, err)
	}
	defer func() { _ = in.Close() }() // only read
	return f.server.EachLine(ctx, in, take)
}

// EachFile calls take with each line of the files whose names begin with a prefix, and returns how many these are.
func (f BatchFolder) EachFile(ctx context.Context, prefix string, take func(line []byte) error) (files int, err error) {
	for object, err := range f.server.Files.List(ctx, f.Address+prefix) {
		if err != nil {
			return files, f.server.fileError(ctx, err)
		}
		files++
		if err := f.EachLine(ctx, strings.TrimPrefix(object.Address, f.Address), take); err != nil {
			return files, err
		}
	}
	return files, nil
}

// NoFile returns the error of a file that does not exist.
func (s *Server) NoFile(address string) error {
	return s.fileError(context.Background(), &remotefs.NotFoundError{Address: address})
}

// fileError returns an error of a file in the form of those of a server.
func (s *Server) fileError(ctx context.Context, err error) error {
	e := s.newError(err.Error()) // has the address
	e.Endpoint = ""
	missing, isMissing := errors.AsType[*remotefs.NotFoundError](err)
	status, hasStatus := errors.AsType[*remotefs.StatusError](err)
	access, isAccess := errors.AsType[*remotefs.AccessError](err)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case isMissing:
		e.Status, e.Message = http.StatusNotFound, missing.Error()
	case hasStatus:
		e.Status, e.Message = status.Code, status.Error()
	case isAccess:
		e.Status, e.Message = access.Code, access.Error()
		e.Temporary = access.Code == 0 && access.Err != nil // a connection
	default:
		return err
	}
	e.Temporary = e.Temporary || temporary(e.Status)
	return e
}
