package problem

import (
	"encoding/json"
	"net/http"
	"strings"
)

// OpenAIPath is the path below which errors have the form of OpenAI's API.
const OpenAIPath = "/v1/"

// Respond writes p as the response to r: in OpenAI's form below OpenAIPath, which its
// clients understand, and as Write does elsewhere. It must not be called after the
// response has begun.
func Respond(w http.ResponseWriter, r *http.Request, p *Problem) {
	if !strings.HasPrefix(r.URL.Path, OpenAIPath) {
		Write(w, p)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	if !p.temporary() || p.Continues && r.Header.Get("Idempotency-Key") == "" {
		h.Set("X-Should-Retry", "false") // clients would repeat the request
	} else {
		p.setRetryAfter(h)
	}
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(OpenAIBody{p.OpenAI()}) // fails only if the client is gone
}

// temporary reports whether the same request may succeed later.
func (p *Problem) temporary() bool {
	switch p.Status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return p.Code == "session_busy"
}

// OpenAIBody is the body of an error of OpenAI's API.
type OpenAIBody struct {
	Error OpenAIError `json:"error"`
}

// OpenAIError is an error of OpenAI's API.
type OpenAIError struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`  // the kind of error, which follows from the status
	Param   *string `json:"param"` // the parameter that is wrong, such as messages[0].role; nil for none
	Code    string  `json:"code"`  // stable name of the error
}

// OpenAI returns the error in OpenAI's form.
func (p *Problem) OpenAI() OpenAIError {
	e := OpenAIError{Message: p.Error(), Type: openAIType(p.Status), Code: p.Code}
	if code, ok := openAICodes[p.Code]; ok {
		e.Code = code
	}
	if len(p.Errors) > 0 {
		param := openAIParam(p.Errors[0].Pointer)
		e.Param = &param
		e.Message = strings.Replace(e.Message, p.Errors[0].Pointer+": ", param+": ", 1)
		for _, other := range p.Errors[1:] {
			e.Message += "; " + openAIParam(other.Pointer) + ": " + other.Detail
		}
	}
	return e
}

// openAICodes are the codes for which OpenAI has a different name.
var openAICodes = map[string]string{
	"unknown_flow":       "model_not_found",
	"rate_limited":       "rate_limit_exceeded",
	"unauthorized":       "invalid_api_key",
	"invalid_credential": "invalid_api_key",
}

func openAIType(status int) string {
	switch {
	case status == http.StatusUnauthorized:
		return "authentication_error"
	case status == http.StatusForbidden:
		return "permission_error"
	case status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case status >= http.StatusInternalServerError:
		return "server_error"
	}
	return "invalid_request_error"
}

// openAIParam writes a JSON pointer as OpenAI does: /messages/0/role is messages[0].role.
func openAIParam(pointer string) string {
	rest, ok := strings.CutPrefix(pointer, "/")
	if !ok {
		return pointer
	}
	var b strings.Builder
	for part := range strings.SplitSeq(rest, "/") {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		switch {
		case part != "" && strings.Trim(part, "0123456789") == "":
			b.WriteString("[" + part + "]")
		case b.Len() > 0:
			b.WriteString("." + part)
		default:
			b.WriteString(part)
		}
	}
	return b.String()
}
