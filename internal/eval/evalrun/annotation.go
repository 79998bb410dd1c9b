package evalrun

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/terminal"
)

// Annotation is what a person says of a result. In the file of annotations, JSON lines, each line has the inputs and outputs of the result, too, so that
// judge-check reads the file as labelled data.
type Annotation map[string]any

// annotationColumns are those that inputs and outputs of the same name do not replace.
func annotationColumns() []string {
	return []string{"row", "variant", "trial", "label", "note", "time"}
}

// result returns the identity of the annotated result.
func (a Annotation) result() string { return fmt.Sprint(a["variant"], " ", a["row"], " ", a["trial"]) }

// ReadAnnotations reads a file of annotations; none if it does not exist.
func ReadAnnotations(path string) (all []Annotation, err error) {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", path, terminal.Cause(err))
	}
	for i, line := range bytes.Split(text, []byte("\n")) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var a Annotation
		d := json.NewDecoder(bytes.NewReader(line))
		d.UseNumber() // 1234567 stays as it is
		if d.Decode(&a) != nil || a["row"] == nil || a["variant"] == nil {
			return nil, fmt.Errorf("%s:%d: not an annotation, a JSON object with row and variant", path, i+1)
		}
		all = append(all, a)
	}
	return all, nil
}

// Annotated is an annotation of a result as the page sends it.
type Annotated struct {
	Row     int64  `json:"row"`
	Variant string `json:"variant"`
	Trial   int    `json:"trial"` // from 1; 0 if rows have one
	Label   string `json:"label"`
	Note    string `json:"note"`
}

// ErrNoResult is the error of an annotation of a result that the report does not have.
var ErrNoResult = errors.New("the report does not have this result")

// line returns the line of an annotation.
func (r *Report) line(a Annotated) (Annotation, error) {
	i := slices.IndexFunc(r.Results, func(result *Result) bool {
		return result.Row == a.Row && result.Variant == a.Variant && result.Trial == a.Trial
	})
	if i < 0 {
		return nil, fmt.Errorf("row %d with variant %q: %w", a.Row, a.Variant, ErrNoResult)
	}
	made := Annotation{}
	for _, value := range append(texts(r.Results[i].Inputs), texts(r.Results[i].Outputs)...) {
		made[value[0]] = value[1]
	}
	made["row"], made["variant"], made["label"], made["note"], made["time"] = a.Row, a.Variant, strings.TrimSpace(a.Label), strings.TrimSpace(a.Note), time.Now().UTC().Format(time.RFC3339)
	if delete(made, "trial"); a.Trial > 0 {
		made["trial"] = a.Trial
	}
	return made, nil
}

// Annotate writes an annotation into a file, in place of one of the same result. One without a label and a note deletes it. redact replaces secrets.
func (r *Report) Annotate(ctx context.Context, path string, a Annotated, redact func(string) string) error {
	made, err := r.line(a)
	if err != nil {
		return err
	}
	all, err := ReadAnnotations(path)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(other Annotation) bool { return other.result() == made.result() })
	if made["label"] != "" || made["note"] != "" {
		all = append(all, made)
	}
	var text bytes.Buffer
	lines := json.NewEncoder(&text)
	lines.SetEscapeHTML(false)
	for _, a := range all {
		if err := lines.Encode(a); err != nil {
			return err
		}
	}
	out, err := remotefs.Create(ctx, path)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(out, redact(text.String())); err != nil {
		return errors.Join(err, out.Abort())
	}
	return out.Commit()
}
