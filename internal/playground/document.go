package playground

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/diagram"
	"github.com/qtype-dev/qtype/internal/lint"
	"github.com/qtype-dev/qtype/internal/yamlformat"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/validate"
)

// errInvalid is the error of functions that need a document without errors.
var errInvalid = errors.New("the document has errors")

// read loads and checks a document, without files and environment.
func read(ctx context.Context, text string) (*spec.Document, error) {
	if err := checkSize(text); err != nil {
		return nil, err
	}
	result, list := loader.LoadBytes(ctx, "app.qtype.yaml", []byte(text), loader.Options{
		NoDotEnv: true, Offline: true, Lookup: func(string) (string, bool) { return "", false },
	})
	if list.Errors() > 0 {
		return nil, errInvalid
	}
	if found := validate.Check(result.Document); found.Errors() > 0 {
		return nil, errInvalid
	}
	if result.Document.Application == nil {
		return nil, errors.New("the document is not an application")
	}
	return result.Document, nil
}

// format returns a formatted text.
func (*Session) format(_ context.Context, p documentParams) (any, error) {
	if err := checkSize(p.Text); err != nil {
		return nil, err
	}
	formatted, err := yamlformat.Format(p.Text)
	if err != nil {
		return nil, err
	}
	return map[string]string{"text": formatted}, nil
}

// drawing is the result of draw.
type drawing struct {
	SVG      string       `json:"svg"`
	Mermaid  string       `json:"mermaid"`
	Title    string       `json:"title"`
	Memories []memoryInfo `json:"memories"` // that a transcript can be replayed through
}

// memoryInfo describes a declared memory.
type memoryInfo struct {
	ID     string `json:"id"`
	Policy string `json:"policy"`
	Doc    string `json:"doc"` // what its window keeps
}

// draw returns the picture of a document without errors, and its memories.
func (*Session) draw(ctx context.Context, p documentParams) (any, error) {
	doc, err := read(ctx, p.Text)
	if err != nil {
		return nil, err
	}
	var picture, mermaid strings.Builder
	if err := diagram.Write(&picture, doc, diagram.SVG); err != nil {
		return nil, err
	}
	if err := diagram.Write(&mermaid, doc, diagram.Mermaid); err != nil {
		return nil, err
	}
	made := &drawing{SVG: picture.String(), Mermaid: mermaid.String(), Title: doc.Application.ID, Memories: []memoryInfo{}}
	for _, m := range doc.Application.Memories {
		row, _ := m.Row()
		made.Memories = append(made.Memories, memoryInfo{ID: m.ID, Policy: string(row.Name), Doc: row.Doc})
	}
	return made, nil
}

// explainParams are the parameters of explain.
type explainParams struct {
	Code string `json:"code"` // empty for all
}

// explanation is the text about a diagnostic code.
type explanation struct {
	Code     string        `json:"code"`
	Severity diag.Severity `json:"severity"`
	Title    string        `json:"title"`
	Doc      string        `json:"doc"`
	Wrong    string        `json:"wrong"`
	Right    string        `json:"right"`
}

// explain returns the text of a diagnostic code, as `qtype explain` has it, or of all
// codes of documents.
func (*Session) explain(_ context.Context, p explainParams) (any, error) {
	code := strings.ToUpper(strings.TrimSpace(p.Code))
	all := []explanation{}
	for _, r := range lint.Rules() {
		all = append(all, explanation{r.Code, r.Severity, r.Title, strings.TrimSpace(r.Doc), r.Wrong, r.Right})
	}
	if code == "" {
		return all, nil
	}
	i := slices.IndexFunc(all, func(e explanation) bool { return e.Code == code })
	if i < 0 {
		return nil, fmt.Errorf("no diagnostic has the code %q", p.Code)
	}
	return all[i], nil
}
