package telemetry

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/httpx"
)

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
