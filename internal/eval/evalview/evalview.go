// Package evalview serves the report of an evaluation on this computer, and keeps the annotations that are made in it.
package evalview

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/eval/evalrun"
	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/server/problem"
)

// View is a report that is served.
type View struct {
	page   []byte
	policy string
	report *evalrun.Report
	path   string // of the annotations
	token  string
	redact func(string) string

	mu sync.Mutex // of the file of annotations
}

// New makes the page of a report, whose annotations are in a file. redact replaces secrets in it.
func New(p *evalrun.Page, annotations string, redact func(string) string) (*View, error) {
	p.Token = rand.Text()
	var page bytes.Buffer
	if err := p.Write(&page); err != nil {
		return nil, err
	}
	const more = "; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
	return &View{page: []byte(redact(page.String())), policy: p.Policy() + more, report: p.Report, path: annotations, token: p.Token, redact: redact}, nil
}

// Handler serves the page to requests with the token in their address, and the annotations to those with the token in a header, which no other
// page can send: its origin is not known, and it does not have the token.
func (v *View) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		if !v.knows(r.URL.Query().Get("token")) {
			http.Error(w, "open the address that qtype eval view has printed", http.StatusForbidden)
			return
		}
		w.Header().Set("Content-Security-Policy", v.policy)
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(v.page) // the client may have left
	})
	mux.HandleFunc("GET /annotations", v.withToken(func(*http.Request) error { return nil }))
	mux.HandleFunc("POST /annotations", v.withToken(v.annotate))
	return mux
}

// knows compares a token in constant time.
func (v *View) knows(token string) bool {
	return subtle.ConstantTimeCompare([]byte(token), []byte(v.token)) == 1
}

// withToken answers with all annotations after an action.
func (v *View) withToken(do func(*http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !v.knows(token) {
			problem.Respond(w, r, problem.New(http.StatusForbidden, "wrong_token", "the page is of an earlier qtype eval view: open the address that it has printed"))
			return
		}
		v.mu.Lock()
		defer v.mu.Unlock()
		err := do(r)
		var all []evalrun.Annotation
		if err == nil {
			all, err = evalrun.ReadAnnotations(v.path)
		}
		if err != nil {
			refused := problem.Of(err)
			if refused == nil {
				refused = problem.New(http.StatusInternalServerError, "annotations", "%s", err)
			}
			problem.Respond(w, r, refused)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(append([]evalrun.Annotation{}, all...)) // the client may have left
	}
}

// annotate writes the annotation of a request.
func (v *View) annotate(r *http.Request) error {
	var made evalrun.Annotated
	body := json.NewDecoder(r.Body)
	body.DisallowUnknownFields()
	if err := body.Decode(&made); problem.Of(err) != nil {
		return err // it is too large
	} else if err != nil {
		return problem.New(http.StatusBadRequest, "invalid_annotation", "not an annotation: %s", err)
	}
	err := v.report.Annotate(r.Context(), v.path, made, v.redact)
	if errors.Is(err, evalrun.ErrNoResult) {
		return problem.New(http.StatusBadRequest, "unknown_result", "%s", err)
	}
	return err
}

// maxBody is the size of an annotation.
const maxBody = 1 << 20

// Serve serves on a port of the loopback address, 0 for any, until ctx ends. It calls ready with the address of the page.
func (v *View) Serve(ctx context.Context, port string, ready func(address string)) error {
	control, err := access.New(access.Config{Host: "127.0.0.1", Limits: access.Limits{BodyBytes: maxBody}})
	if err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return err
	}
	server := control.Server(v.Handler())
	stopped := context.AfterFunc(ctx, func() {
		const grace = time.Second
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		if server.Shutdown(ending) != nil {
			_ = server.Close() // nothing waits for a connection that stays open
		}
	})
	defer stopped()
	ready("http://" + l.Addr().String() + "/?token=" + v.token)
	if err := control.Serve(server, l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
