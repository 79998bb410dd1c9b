package server

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"slices"

	"github.com/qtype-dev/qtype/internal/server/host"
	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/server/schema"
)

// formMemory is how many bytes of the files of a form are kept in RAM.
const formMemory = 32 << 20

// readForm decodes the fields and files of a form.
func (s *Server) readForm(c *call, w http.ResponseWriter, r *http.Request, boundary string) error {
	if boundary == "" {
		return problem.New(http.StatusBadRequest, "malformed_form", "the Content-Type has no boundary")
	}
	if err := host.LimitBody(w, r); err != nil {
		return err
	}
	if err := r.ParseMultipartForm(formMemory); err != nil { //nolint:gosec // LimitBody bounds the body
		return host.BodyProblem(err, "malformed_form", "the form could not be read")
	}
	defer func() { _ = r.MultipartForm.RemoveAll() }()
	files, err := readFiles(r.MultipartForm.File)
	if err != nil {
		return err
	}
	c.digest = formDigest(r.MultipartForm.Value, files, c)
	have, err := s.inputs.Known(r.Context(), c.flow, c.principal.StoredSession(c.session))
	if err != nil {
		return err
	}
	values, wrong := c.flow.DecodeForm(r.MultipartForm.Value, files, have.Has)
	if len(wrong) > 0 {
		return schema.Invalid(wrong)
	}
	c.rows = append(c.rows, values)
	return s.inputs.Apply(r.Context(), have, c.rows...)
}

// readFiles reads the files of a form, by the names of their fields.
func readFiles(headers map[string][]*multipart.FileHeader) (map[string][][]byte, error) {
	files := map[string][][]byte{}
	for name, list := range headers {
		for _, h := range list {
			data, err := readFile(h)
			if err != nil {
				return nil, fmt.Errorf("an uploaded file could not be read: %w", err)
			}
			files[name] = append(files[name], data)
		}
	}
	return files, nil
}

func readFile(h *multipart.FileHeader) ([]byte, error) {
	f, err := h.Open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	return io.ReadAll(f)
}

// formDigest identifies the content of a form. Its body has a boundary that is another
// one when a client sends the form again.
func formDigest(fields map[string][]string, files map[string][][]byte, c *call) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		fmt.Fprintf(h, "%q %q\n", name, fields[name])
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		for _, data := range files[name] {
			fmt.Fprintf(h, "%q %d\n%s", name, len(data), data)
		}
	}
	if c.named {
		fmt.Fprintf(h, "%q", c.session)
	}
	return hex.EncodeToString(h.Sum(nil))
}
