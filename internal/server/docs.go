package server

import (
	"bytes"
	_ "embed" // the page is part of the program
	"html/template"
	"net/http"
	"sync"

	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/server/schema"
	"github.com/qtype-dev/qtype/spec"
)

//go:embed docs.html
var docsHTML string

//go:embed docs.css
var docsCSS []byte

// getStyle answers GET /docs/style.css.
func getStyle(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	_, _ = w.Write(docsCSS) // fails only if the client is gone
}

var docsPage = sync.OnceValue(func() *template.Template { return template.Must(template.New("docs").Parse(docsHTML)) })

// docsFlow is a flow on the page.
type docsFlow struct {
	ID, Description, Interface, Example string
	Inputs, Outputs                     []docsField
}

type docsField struct {
	Name, Type string
	Optional   bool
}

// getDocs answers GET /docs with a page about the resources of the server.
func (s *Server) getDocs(w http.ResponseWriter, r *http.Request) {
	a, p := s.current.Load(), access.PrincipalOf(r.Context())
	page := struct {
		ID, Description, Address string
		Flows                    []docsFlow
	}{a.App.Spec().ID, a.App.Spec().Description, s.opts.Access.Address(r), nil}
	for _, f := range a.Flows {
		if access.Allowed(f.Spec, p) {
			page.Flows = append(page.Flows, docsOf(f))
		}
	}
	var b bytes.Buffer
	if err := docsPage().Execute(&b, page); err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(b.Bytes()) // fails only if the client is gone
}

func docsOf(f *schema.Flow) docsFlow {
	return docsFlow{ID: f.ID(), Description: f.Spec.Description, Interface: f.Interface(), Example: string(f.Example()), Inputs: docsFields(f.Inputs), Outputs: docsFields(f.Outputs)}
}

func docsFields(vars []*spec.Variable) []docsField {
	fields := make([]docsField, len(vars))
	for i, v := range vars {
		t := v.Type
		t.Optional = false
		fields[i] = docsField{v.ID, t.String(), v.IsOptional()}
	}
	return fields
}
