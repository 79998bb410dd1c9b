package telemetry

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/appstate"
	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
)

// maxExplanation is the maximum length of an explanation in bytes.
const maxExplanation = 10_000

// FeedbackError reports feedback that does not fit the flow's configuration.
type FeedbackError struct {
	Field   string // the field of the feedback, such as score
	Problem string // what is wrong with it
}

// Error names the field and the problem.
func (e *FeedbackError) Error() string { return "feedback: " + e.Field + ": " + e.Problem }

// SinkError reports that a provider did not accept feedback.
type SinkError struct {
	Provider string // Phoenix, Langfuse or Arize
	Status   int    // the HTTP status; 0 without an answer
	Message  string // what happened, one line without secrets
	Err      error  // the cause; may be nil
}

// Error names the provider and what happened.
func (e *SinkError) Error() string {
	if e.Status != 0 {
		return fmt.Sprintf("feedback: %s: HTTP %d: %s", e.Provider, e.Status, e.Message)
	}
	return fmt.Sprintf("feedback: %s: %s", e.Provider, e.Message)
}

// Unwrap returns the cause.
func (e *SinkError) Unwrap() error { return e.Err }

// CheckFeedback returns a *FeedbackError if an answer does not fit the configuration
// of a flow, or if the flow collects no feedback.
func CheckFeedback(configured spec.Feedback, a appstate.Answer) error {
	if configured == nil {
		return &FeedbackError{"type", "the flow collects no feedback"}
	}
	k, ok := feedbackKinds[a.Type]
	switch {
	case !ok:
		return &FeedbackError{"type", fmt.Sprintf("%q is not one of thumbs, rating, category", a.Type)}
	case spec.TypeName(configured) != a.Type:
		return &FeedbackError{"type", fmt.Sprintf("the flow collects %s, not %s", spec.TypeName(configured), a.Type)}
	case len(a.Explanation) > maxExplanation:
		return &FeedbackError{"explanation", fmt.Sprintf("it is longer than %d bytes", maxExplanation)}
	case a.Explanation != "" && !k.explains(configured):
		return &FeedbackError{"explanation", "the flow does not collect explanations"}
	}
	return k.check(configured, a)
}

// feedbackKind checks one kind of feedback.
type feedbackKind struct {
	explains func(spec.Feedback) bool
	check    func(spec.Feedback, appstate.Answer) error
}

// feedbackKinds is the table of the kinds of feedback.
var feedbackKinds = map[string]feedbackKind{
	"thumbs":   newFeedbackKind(func(f *spec.ThumbsFeedback) bool { return f.Explanation }, checkThumbs),
	"rating":   newFeedbackKind(func(f *spec.RatingFeedback) bool { return f.Explanation }, checkRating),
	"category": newFeedbackKind(func(f *spec.CategoryFeedback) bool { return f.Explanation }, checkCategory),
}

func newFeedbackKind[F spec.Feedback](explains func(F) bool, check func(F, appstate.Answer) error) feedbackKind {
	return feedbackKind{
		explains: func(f spec.Feedback) bool { return explains(f.(F)) },
		check:    func(f spec.Feedback, a appstate.Answer) error { return check(f.(F), a) },
	}
}

func checkThumbs(_ *spec.ThumbsFeedback, a appstate.Answer) error {
	if a.Value == nil {
		return &FeedbackError{"value", "it is missing; expected true or false"}
	}
	return nil
}

func checkRating(f *spec.RatingFeedback, a appstate.Answer) error {
	if a.Score == nil {
		return &FeedbackError{"score", "it is missing"}
	}
	if s := *a.Score; s != math.Trunc(s) || s < 1 || s > float64(f.Scale) {
		return &FeedbackError{"score", fmt.Sprintf("%v is not a whole number from 1 to %d", s, f.Scale)}
	}
	return nil
}

func checkCategory(f *spec.CategoryFeedback, a appstate.Answer) error {
	switch {
	case len(a.Categories) == 0:
		return &FeedbackError{"categories", "none is chosen"}
	case len(a.Categories) > 1 && !f.AllowMultiple:
		return &FeedbackError{"categories", "only one may be chosen"}
	}
	for i, c := range a.Categories {
		if !slices.Contains(f.Categories, c) {
			return &FeedbackError{"categories", fmt.Sprintf("%q is not one of %s", c, strings.Join(f.Categories, ", "))}
		}
		if slices.Contains(a.Categories[:i], c) {
			return &FeedbackError{"categories", fmt.Sprintf("%q is chosen twice", c)}
		}
	}
	return nil
}

// rating is feedback in the form that providers store.
type rating struct {
	trace, span string
	label       string
	score       *float64 // nil for categories
	explanation string
}

// newRating converts an answer that was checked.
func newRating(trace, span string, a appstate.Answer) rating {
	r := rating{trace: trace, span: span, score: a.Score, explanation: a.Explanation, label: strings.Join(a.Categories, ", ")}
	switch {
	case a.Value != nil && *a.Value:
		up := 1.0
		r.label, r.score = "👍", &up
	case a.Value != nil:
		down := 0.0
		r.label, r.score = "👎", &down
	case a.Score != nil:
		r.label = fmt.Sprint(*a.Score)
	}
	return r
}

// Verdict returns whether an answer that was checked is positive: a thumb, or a rating above or below the middle of the scale.
func Verdict(configured spec.Feedback, a appstate.Answer) appstate.Verdict {
	middle := 0.5
	if f, ok := configured.(*spec.RatingFeedback); ok {
		middle = float64(f.Scale+1) / 2
	}
	switch score := newRating("", "", a).score; {
	case score != nil && *score > middle:
		return appstate.Up
	case score != nil && *score < middle:
		return appstate.Down
	}
	return ""
}

// rater sends feedback to a provider.
type rater interface {
	send(ctx context.Context, r rating) error
}

// Feedback sends feedback to the telemetry of an application.
type Feedback struct{ rater rater }

// NewFeedback returns what sends the feedback of an application; nil if its telemetry
// accepts none.
func NewFeedback(app *runtime.App, service string) (*Feedback, error) {
	if service == "" {
		service = app.Spec().ID
	}
	d, err := newDestination(app, service)
	if err != nil || d == nil || d.sink.rate == nil {
		return nil, err
	}
	client := d.client
	if client == nil {
		client = &http.Client{CheckRedirect: httpx.CheckRedirect}
	}
	return &Feedback{d.sink.rate(d, client)}, nil
}

// Send checks an answer against the configuration of a flow and stores it with the span
// of the run. Errors are a *FeedbackError for an invalid answer or id, and a *SinkError if
// the provider did not accept it.
func (f *Feedback) Send(ctx context.Context, configured spec.Feedback, traceID, spanID string, a appstate.Answer) error {
	if err := CheckFeedback(configured, a); err != nil {
		return err
	}
	if !isHex(spanID, 16) {
		return &FeedbackError{"span_id", "it does not have 16 hexadecimal digits"}
	}
	if !isHex(traceID, 32) {
		return &FeedbackError{"trace_id", "it does not have 32 hexadecimal digits"}
	}
	return f.rater.send(ctx, newRating(traceID, spanID, a))
}

// isHex reports whether text has n hexadecimal digits in lower case, not all of them 0.
func isHex(text string, n int) bool {
	return len(text) == n && strings.Trim(text, "0123456789abcdef") == "" && strings.Trim(text, "0") != ""
}

// jsonBody returns v as JSON.
func jsonBody(v any) string {
	text, _ := json.Marshal(v) // it has only texts and numbers
	return string(text)
}

// ratingTimeout limits one request that stores feedback.
const ratingTimeout = 15 * time.Second

// annotationName is the name of feedback in the providers' user interfaces.
const annotationName = "user_feedback"

// httpRater stores feedback by one request.
type httpRater struct {
	provider string
	client   *http.Client
	headers  map[string]string
	url      string
	body     func(rating) any
}

// send stores feedback. Its errors are a *SinkError.
func (h *httpRater) send(ctx context.Context, r rating) error {
	ctx, cancel := context.WithTimeout(ctx, ratingTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url, strings.NewReader(jsonBody(h.body(r))))
	if err != nil {
		return &SinkError{Provider: h.provider, Message: "the endpoint is not a URL", Err: err}
	}
	req.Header.Set("Content-Type", "application/json")
	for name, v := range h.headers {
		req.Header.Set(name, v)
	}
	resp, err := h.client.Do(req)
	if err != nil {
		return &SinkError{Provider: h.provider, Message: httpx.Reason(err), Err: err}
	}
	defer func() { _ = resp.Body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
	if resp.StatusCode/100 != 2 {
		return &SinkError{Provider: h.provider, Status: resp.StatusCode, Message: scrubbed(string(text), h.headers)}
	}
	return nil
}

// newPhoenixRater stores feedback as an annotation of the span.
func newPhoenixRater(d *destination, client *http.Client) rater {
	return &httpRater{provider: "Phoenix", client: client, headers: d.headers, url: d.base.String() + "/v1/span_annotations?sync=true",
		body: func(r rating) any {
			result := map[string]any{"label": r.label}
			if r.score != nil {
				result["score"] = *r.score
			}
			if r.explanation != "" {
				result["explanation"] = r.explanation
			}
			return map[string]any{"data": []any{map[string]any{"span_id": r.span, "name": annotationName, "annotator_kind": "HUMAN", "result": result}}}
		}}
}

// newLangfuseRater stores feedback as a score: a number, or the categories.
func newLangfuseRater(d *destination, client *http.Client) rater {
	base := strings.TrimSuffix(d.traces, langfusePath)
	return &httpRater{provider: "Langfuse", client: client, headers: d.headers, url: base + "/api/public/scores",
		body: func(r rating) any {
			score := map[string]any{"traceId": r.trace, "observationId": r.span, "name": annotationName, "value": r.label, "dataType": "CATEGORICAL"}
			if r.score != nil {
				score["value"], score["dataType"] = *r.score, "NUMERIC"
			}
			if r.explanation != "" {
				score["comment"] = r.explanation
			}
			return score
		}}
}

// arizeAPI is the default address of Arize's REST API.
const arizeAPI = "https://api.arize.com"

// newArizeRater stores feedback as an annotation of the span, by Arize's REST API. The
// project is args.project_id, else the name of the project.
func newArizeRater(d *destination, client *http.Client) rater {
	base := d.arg("api_endpoint", "")
	if base == "" {
		base = arizeAPI
	}
	project := d.arg("project_id", "")
	if project == "" {
		project = d.project()
	}
	headers := map[string]string{"space_id": d.headers["space_id"]}
	if key := d.headers["api_key"]; key != "" {
		headers["authorization"] = "Bearer " + key
	}
	return &httpRater{provider: "Arize", client: client, headers: headers, url: strings.TrimRight(base, "/") + "/v2/spans/annotate",
		body: func(r rating) any {
			v := map[string]any{"name": annotationName, "label": r.label}
			if r.score != nil {
				v["score"] = *r.score
			}
			if r.explanation != "" {
				v["text"] = r.explanation
			}
			return map[string]any{"project_id": project, "annotations": []any{map[string]any{"record_id": r.span, "values": []any{v}}}}
		}}
}
