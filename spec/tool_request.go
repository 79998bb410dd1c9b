package spec

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Formats of the body of an APITool, see APITool.BodyFormat.
const (
	BodyJSON      = "json"
	BodyForm      = "form"
	BodyMultipart = "multipart"
	BodyRaw       = "raw"
)

// Kinds of pagination, see Pagination.Type.
const (
	PagesByLink   = "link"
	PagesByCursor = "cursor"
	PagesByNumber = "page"
	PagesByOffset = "offset"
)

// Pagination is how an APITool requests the further pages of a result.
type Pagination struct {
	Positioned
	// Type is link (the header Link, or the address in the field next), cursor (the field next is a query parameter of the next request), page (the parameter counts pages) or offset (it counts items).
	Type string `yaml:"type" jsonschema:"required" validate:"oneof=link cursor page offset"`
	// Items is the field with the list of a page, such as data or result.items; without it, the result is the list.
	Items string `yaml:"items"`
	// Next is the field with the address of the next page, or with the cursor, such as meta.next or data.-1.id for the id of the last item; the last page has none.
	Next string `yaml:"next"`
	// Parameter is the query parameter for the cursor, the number of the page or the offset.
	Parameter string `yaml:"parameter"`
	// More is a field that is true if there is another page.
	More string `yaml:"more"`
	// MaxPages is the maximum number of requests for one call.
	MaxPages int `yaml:"max_pages" default:"10" validate:"gt=0"`
	// AtLimit decides about a result with more pages than max_pages: error fails the call, truncate returns the pages so far.
	AtLimit string `yaml:"at_limit" default:"error" validate:"oneof=error truncate"`
}

// sendsBody lists the HTTP methods of tools and whether they send a body.
func sendsBody() map[string]bool {
	return map[string]bool{"GET": false, "HEAD": false, "OPTIONS": false, "DELETE": false, "PUT": true, "POST": true, "PATCH": true}
}

// HasBody reports whether requests of the tool have a body: the method is POST, PUT or
// PATCH, or DELETE with the key body or a format of the body.
func (t *APITool) HasBody() bool {
	method := strings.ToUpper(t.Method)
	return sendsBody()[method] || method == "DELETE" && (t.Body != "" || t.BodyFormat != "" && t.BodyFormat != BodyJSON)
}

// Conflict is a value that makes a call of a tool impossible or contradicts another value.
type Conflict struct {
	Key     string // of the tool
	Entry   string // of the map under Key; empty for the whole value
	Problem string // what is wrong
}

// Conflicts returns the values of the tool that no request can be made of, or that
// contradict others. The validator reports them, and a run refuses the tool.
func (t *APITool) Conflicts() []Conflict {
	all := t.requestConflicts()
	if !t.hasUnknownMethod() { // else it is unknown whether requests have a body
		all = append(all, t.bodyConflicts()...)
	}
	arguments := t.Arguments()
	for _, id := range slices.Sorted(maps.Keys(t.Names)) {
		if !slices.ContainsFunc(arguments, func(v *Variable) bool { return v != nil && v.ID == id }) {
			all = append(all, Conflict{"names", id, fmt.Sprintf("names has %s, which is not an argument", id)})
		}
	}
	if t.Pagination != nil {
		if problem := t.Pagination.conflict(); problem != "" {
			all = append(all, Conflict{Key: "pagination", Problem: problem})
		}
	}
	return all
}

// bodyConflicts returns what is wrong with body and body_format.
func (t *APITool) bodyConflicts() []Conflict {
	var all []Conflict
	if t.Body != "" {
		if problem := t.bodyConflict(); problem != "" {
			all = append(all, Conflict{Key: "body", Problem: problem})
		}
	}
	switch {
	case t.BodyFormat == BodyRaw && t.Body == "":
		all = append(all, Conflict{Key: "body_format", Problem: "body_format: raw needs the key body, which names the input that is sent"})
	case len(all) == 0 && t.BodyFormat != "" && t.BodyFormat != BodyJSON && !t.HasBody():
		all = append(all, Conflict{Key: "body_format", Problem: fmt.Sprintf("a %s request has no body", strings.ToUpper(t.Method))})
	}
	return all
}

// bodyConflict returns what is wrong with the key body, empty for nothing.
func (t *APITool) bodyConflict() string {
	isInput := slices.ContainsFunc(t.Inputs, func(v *Variable) bool { return v != nil && v.ID == t.Body })
	second, more := t.secondBodyInput()
	switch {
	case !isInput:
		return fmt.Sprintf("body names %s, which is not an input", t.Body)
	case !t.HasBody():
		return fmt.Sprintf("a %s request has no body", strings.ToUpper(t.Method))
	case t.BodyFormat == BodyForm || t.BodyFormat == BodyMultipart:
		return fmt.Sprintf("a body in the format %s is made of all inputs; remove body", t.BodyFormat)
	case more:
		return fmt.Sprintf("body is %s, so the input %s is not sent; move it to parameters", t.Body, second)
	}
	return ""
}

// secondBodyInput returns an input that is neither the body nor in the endpoint.
func (t *APITool) secondBodyInput() (id string, found bool) {
	for _, v := range t.Inputs {
		if v != nil && v.ID != t.Body && !strings.Contains(t.Endpoint, "{"+v.ID+"}") {
			return v.ID, true
		}
	}
	return "", false
}

// conflict returns what is wrong with the keys, empty for nothing.
func (p *Pagination) conflict() string {
	counts := p.Type == PagesByNumber || p.Type == PagesByOffset
	switch {
	case p.Type != PagesByLink && p.Parameter == "":
		return fmt.Sprintf("pagination by %s needs parameter, the query parameter of the next request", p.Type)
	case p.Type == PagesByCursor && p.Next == "":
		return "pagination by cursor needs next, the field with the cursor"
	case p.Type == PagesByLink && p.Parameter != "":
		return "pagination by link uses the whole address of the next page; remove parameter"
	case counts && p.Next != "":
		return fmt.Sprintf("pagination by %s does not read next; remove it", p.Type)
	}
	return ""
}
