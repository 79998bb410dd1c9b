package server

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/server/schema"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
)

// checkBatch returns a problem if a run cannot make its calls of models in batches.
func (s *Server) checkBatch(c *call, async bool) error {
	if !c.batch {
		return nil
	}
	var why string
	switch {
	case !async:
		why = "a response does not wait for batches, which may take a day: send the request to /flows/" + c.flow.ID() + " with the header Prefer: respond-async"
	case s.opts.Engine != nil:
		why = "the server runs rows by another engine, which has no batches"
	case s.opts.Batches == nil:
		why = "the server makes no batches: it is started without --batches FILE"
	case s.opts.Batches.Run.Failed() != nil:
		s.log.Error("the file of batches is not usable", "error", s.opts.Batches.Run.Failed())
		return problem.New(http.StatusServiceUnavailable, "batches_unavailable", "the server cannot store batches")
	default:
		why = whyNoBatches(c.app.App, c.flow.Spec)
	}
	if why == "" {
		return nil
	}
	return schema.Invalid([]problem.Field{{Pointer: "/batch", Detail: why}})
}

// whyNoBatches returns why runs of a flow cannot wait for batches; empty if they can.
func whyNoBatches(app *runtime.App, f *spec.Flow) string {
	if f.Budget != nil && f.Budget.Seconds > 0 {
		return fmt.Sprintf("flow %s has a budget of seconds, which the time of batches would exceed", f.ID)
	}
	hasBatches, others := false, []string{}
	for p := range f.Plan().All() {
		if p.Step.Common().Timeout > 0 {
			return fmt.Sprintf("step %s has a timeout, which would end calls that wait for a batch", p.Step.EntityID())
		}
		for _, m := range p.Models() {
			_, why := app.WhyAtOnce(m)
			if why != "" {
				why = ": " + why
			}
			name := fmt.Sprintf("%s (%s%s)", m.Base().ID, m.Base().Provider, why)
			hasBatches = hasBatches || app.HasBatches(m)
			if !slices.Contains(others, name) {
				others = append(others, name)
			}
		}
	}
	switch {
	case hasBatches:
		return ""
	case len(others) == 0:
		return fmt.Sprintf("flow %s calls no models", f.ID)
	}
	return fmt.Sprintf("no model of flow %s has batches: %s", f.ID, textfmt.List(others))
}

// makeBatchModels makes the models that have batches: those that an earlier process has left can be read or canceled.
func makeBatchModels(app *runtime.App) {
	for _, doc := range app.Spec().Documents() {
		for _, m := range doc.Models {
			if !app.HasBatches(m) {
				continue
			}
			if _, embeds := m.(*spec.EmbeddingModel); embeds {
				_, _ = app.Embedder(m.Base().ID) // a run reports the error
			} else {
				_, _ = app.Model(m.Base().ID)
			}
		}
	}
}
