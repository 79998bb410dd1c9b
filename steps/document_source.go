package steps

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/qtype-dev/qtype/internal/documents"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/tool"
)

// documentSource reads documents, one row for each. Variables that the row has keep
// their values. Inputs that are named like an argument of the reader replace it.
type documentSource struct {
	step   *spec.DocumentSource
	env    documents.Env
	inputs []slot
	out    slot
}

func buildDocumentSource(s *spec.DocumentSource, env *Env) (Runner, error) {
	d := &documentSource{step: s}
	d.env.HTTP = func(url string, allowPrivate bool) (*http.Client, error) {
		if env.HTTP == nil {
			return nil, errors.New("no HTTP clients are configured")
		}
		return env.HTTP(tool.Service{Tool: s.ID, URL: url, Auth: s.Auth, AllowPrivate: allowPrivate})
	}
	var err error
	if d.inputs, err = env.slots(s.Inputs); err != nil {
		return nil, err
	}
	if d.out, err = env.single("output", s.Outputs); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(d.inputs, d.isArgument) {
		_, err = documents.Open(s, d.env) // reports wrong arguments before the first row
	}
	return d, err
}

// isArgument reports whether an input may change the arguments of the reader.
func (d *documentSource) isArgument(in slot) bool {
	chosen := d.step.Selection()
	return slices.ContainsFunc(chosen.Mappings, func(m spec.Argument) bool { return slices.Contains(spec.ArgumentKeys(m.Into), in.of.ID) })
}

// Process emits one row for each document as it is read. A document that cannot be read
// fails its own row; a source that cannot be read fails the input row.
func (d *documentSource) Process(ctx context.Context, row *Row, emit Emit) error {
	env := d.env
	env.Variables = map[string]any{}
	for _, in := range d.inputs {
		if v := in.orNull(row); v != nil {
			env.Variables[in.of.ID] = value.ToGo(v)
		}
	}
	source, err := documents.Open(d.step, env)
	if err != nil {
		return err
	}
	return source.Read(ctx, func(doc *documents.Document, failed error) error {
		c := row.Clone()
		if failed == nil {
			failed = d.fill(c, doc)
		}
		if failed != nil {
			c.Err = &Error{Step: d.step.ID, Err: failed}
		}
		return emit(c)
	})
}

// fill sets the output to a document.
func (d *documentSource) fill(row *Row, doc *documents.Document) error {
	record := map[string]any{"content": doc.Text, "file_id": doc.ID, "file_name": doc.Name, "metadata": doc.Metadata, "type": "text"}
	if doc.URI != "" {
		record["uri"] = doc.URI
	}
	v, err := value.Assign(d.out.of, value.FromGo(record))
	if err != nil {
		return fmt.Errorf("%s: %w", d.out.of.ID, err)
	}
	d.out.write(row, v)
	return nil
}
