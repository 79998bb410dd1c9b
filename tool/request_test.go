package tool_test

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/tool"
)

func TestAPI_Bodies(t *testing.T) {
	order := &spec.CustomType{ID: "Order", Properties: spec.Properties{{Name: "id", Type: spec.Type{Name: "int"}}, {Name: "note", Type: spec.Type{Name: "text", Optional: true}}}}
	orders := &spec.Variable{ID: "orders", Type: spec.Type{Elem: &spec.Type{Name: "Order", Custom: order}}}
	record := value.NewRecord("Order", value.Field{Name: "id", Value: int64(1)}, value.Field{Name: "note", Value: nil})
	for name, tt := range map[string]struct {
		declare  func(*spec.APITool)
		args     map[string]any
		want     string
		wantType string
	}{
		"list, without unset fields": {func(d *spec.APITool) { d.Inputs, d.Body = []*spec.Variable{orders}, "orders" },
			map[string]any{"orders": []any{record, map[string]any{"id": 2, "note": "x", "more": nil}}}, `[{"id":1},{"id":2,"more":null,"note":"x"}]`, "application/json"},
		"record in an object": {func(d *spec.APITool) {
			d.Inputs = []*spec.Variable{{ID: "order", Type: spec.Type{Name: "Order", Custom: order}}}
		}, map[string]any{"order": record}, `{"order":{"id":1}}`, "application/json"},
		"any value": {func(d *spec.APITool) { d.Inputs, d.Body = []*spec.Variable{variable("labels", "any")}, "labels" },
			map[string]any{"labels": map[string]any{"a": []any{1, nil}}}, `{"a":[1,null]}`, "application/json"},
		"no optional body": {func(d *spec.APITool) { d.Inputs, d.Body = []*spec.Variable{variable("labels", "any?")}, "labels" }, nil, "", ""},
		"form": {func(d *spec.APITool) {
			d.Inputs, d.BodyFormat, d.ListFormat, d.RecordFormat = []*spec.Variable{variable("a", "text"), variable("b", "list[any]"), variable("c", "text?")}, "form", "indices", "brackets"
			d.Names = map[string]string{"a": "a[x]"}
		}, map[string]any{"a": "1 &", "b": []any{map[string]any{"k": true}, 2}}, "a%5Bx%5D=1+%26&b%5B0%5D%5Bk%5D=true&b%5B1%5D=2", "application/x-www-form-urlencoded"},
		"raw text": {func(d *spec.APITool) {
			d.Inputs, d.Body, d.BodyFormat = []*spec.Variable{variable("x", "text")}, "x", "raw"
		}, map[string]any{"x": "a\nb"}, "a\nb", "text/plain; charset=utf-8"},
		"raw bytes": {func(d *spec.APITool) {
			d.Inputs, d.Body, d.BodyFormat = []*spec.Variable{variable("x", "bytes")}, "x", "raw"
		}, map[string]any{"x": []byte{0xff, 0}}, "\xff\x00", "application/octet-stream"},
		"raw bytes of a model": {func(d *spec.APITool) {
			d.Inputs, d.Body, d.BodyFormat, d.Headers = []*spec.Variable{variable("x", "bytes")}, "x", "raw", map[string]spec.Secret{"Content-Type": spec.NewSecret("image/png")}
		}, map[string]any{"x": "/wA="}, "\xff\x00", "image/png"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, answer(200, "application/json", "{}"))
			m := s.declare(t, func(d *spec.APITool) { d.Method = "POST"; tt.declare(d) })
			if _, err := m.Call(t.Context(), tt.args); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff([]call{{"POST /orders", tt.want}}, s.seen()); d != "" {
				t.Error(d)
			}
			if got := s.headers[0].Get("Content-Type"); got != tt.wantType {
				t.Errorf("Content-Type %q, want %q", got, tt.wantType)
			}
		})
	}
}

func TestAPI_Multipart(t *testing.T) {
	s := serve(t, answer(200, "application/json", "{}"))
	m := s.declare(t, func(d *spec.APITool) {
		d.Method, d.BodyFormat = "POST", "multipart"
		d.Inputs = []*spec.Variable{variable("title", "text"), variable("pages", "list[image]"), variable("cover", "file?")}
		d.Names = map[string]string{"pages": "pages[]"}
	})
	args := map[string]any{"title": "Atlas", "pages": []any{[]byte("\x89PNG\r\n\x1a\n"), "QUI="}}
	for range 2 {
		if _, err := m.Call(t.Context(), args); err != nil {
			t.Fatal(err)
		}
	}
	if s.seen()[0] != s.seen()[1] {
		t.Error("equal calls send different requests")
	}
	_, parameters, err := mime.ParseMediaType(s.headers[0].Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for r := multipart.NewReader(strings.NewReader(s.seen()[0].Body), parameters["boundary"]); ; {
		part, err := r.NextPart()
		if err != nil {
			break
		}
		content, err := io.ReadAll(part)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %s %s %q", part.FormName(), part.FileName(), part.Header.Get("Content-Type"), content))
	}
	want := []string{`title   "Atlas"`, `pages[] pages[] image/png "\x89PNG\r\n\x1a\n"`, `pages[] pages[] text/plain; charset=utf-8 "AB"`}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestAPI_QueryFormatsAndHeaders(t *testing.T) {
	for format, want := range map[string]string{
		"repeat": "GET /orders?f%5Bs%5D=1&f%5Bs%5D=2", "brackets": "GET /orders?f%5Bs%5D%5B%5D=1&f%5Bs%5D%5B%5D=2",
		"indices": "GET /orders?f%5Bs%5D%5B0%5D=1&f%5Bs%5D%5B1%5D=2", "comma": "GET /orders?f%5Bs%5D=1%2C2",
	} {
		s := serve(t, answer(200, "application/json", "{}"))
		m := s.declare(t, func(d *spec.APITool) {
			d.ListFormat, d.Names = format, map[string]string{"f": "f[s]"}
			d.Parameters, d.HeaderParameters = []*spec.Variable{variable("f", "list[int]")}, []*spec.Variable{variable("X-Trace", "text?")}
		})
		if _, err := m.Call(t.Context(), map[string]any{"f": []any{1, 2}, "X-Trace": "7"}); err != nil {
			t.Fatal(err)
		}
		if got := s.seen()[0].Line; got != want || s.headers[0].Get("X-Trace") != "7" {
			t.Errorf("%s: %s %v, want %s", format, got, s.headers[0], want)
		}
		if _, err := m.Call(t.Context(), map[string]any{"f": []any{}, "X-Trace": "a\nb"}); err == nil || !strings.Contains(err.Error(), "X-Trace: contains a character") {
			t.Errorf("a line break in a header: %v", err)
		}
	}
}

func TestAPI_Download(t *testing.T) {
	s := serve(t, answer(200, "application/json", `{"a": 1}`))
	m := s.declare(t, func(d *spec.APITool) { d.Outputs = []*spec.Variable{variable("file", "bytes")} })
	if got, err := m.Call(t.Context(), nil); err != nil || string(got.([]byte)) != `{"a": 1}` {
		t.Errorf("%v, %v", got, err)
	}
}

// pagesOf answers requests for pages of the numbers 1 to 5, two on each.
func pagesOf(address func() string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		at := 0
		q := r.URL.Query()
		for _, key := range []string{"after", "offset"} {
			if s := q.Get(key); s != "" {
				_, _ = fmt.Sscan(s, &at)
			}
		}
		if s := q.Get("page"); s != "" {
			_, _ = fmt.Sscan(s, &at)
			at = 2 * (at - 1)
		}
		items := []map[string]int{}
		for n := at + 1; n <= min(5, at+2); n++ {
			items = append(items, map[string]int{"id": n})
		}
		body := map[string]any{"data": map[string]any{"items": items}, "more": at+2 < 5, "total": 5}
		if at+2 < 5 {
			next := fmt.Sprintf("%s/orders?offset=%d", address(), at+2)
			w.Header().Set("Link", fmt.Sprintf(`<%s/orders?offset=0>; rel="first", <%s>; rel="next"`, address(), next))
			body["next"] = next
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(body)
	}
}

func TestAPI_Pagination(t *testing.T) {
	const all = `{"data":{"items":[{"id":1},{"id":2},{"id":3},{"id":4},{"id":5}]},"more":true,"next":"-","total":5}`
	for name, tt := range map[string]struct {
		p        spec.Pagination
		requests int
		want     string // empty for all; otherwise the error
	}{
		"header":      {spec.Pagination{Type: "link"}, 3, ""},
		"address":     {spec.Pagination{Type: "link", Next: "next"}, 3, ""},
		"cursor":      {spec.Pagination{Type: "cursor", Next: "data.items.-1.id", Parameter: "after", More: "more"}, 3, ""},
		"page":        {spec.Pagination{Type: "page", Parameter: "page"}, 4, ""},
		"offset":      {spec.Pagination{Type: "offset", Parameter: "offset", More: "more"}, 3, ""},
		"too many":    {spec.Pagination{Type: "page", Parameter: "page", MaxPages: 2}, 2, "more than the 2 pages of max_pages"},
		"at limit":    {spec.Pagination{Type: "page", Parameter: "page", MaxPages: 5, AtLimit: "truncate"}, 4, ""},
		"no list":     {spec.Pagination{Type: "page", Parameter: "page", Items: "total"}, 1, "page 1 has no list at total"},
		"same cursor": {spec.Pagination{Type: "cursor", Next: "total", Parameter: "after"}, 2, "page 2 names itself as the next page"},
	} {
		t.Run(name, func(t *testing.T) {
			var s *server
			s = serve(t, pagesOf(func() string { return s.URL }))
			p := tt.p
			if p.Items == "" {
				p.Items = "data.items"
			}
			got, err := s.declare(t, func(d *spec.APITool) { d.Pagination = &p }).Call(t.Context(), nil)
			switch {
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("error %v, want %s", err, tt.want)
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want == "":
				object := got.(map[string]any)
				object["next"] = "-"
				if raw := string(value.JSON(value.FromGo(object))); raw != all {
					t.Errorf("got %s", raw)
				}
			}
			if n := len(s.seen()); n != tt.requests {
				t.Errorf("%d requests, want %d", n, tt.requests)
			}
		})
	}
}

// The next page must be on the server of the endpoint, which gets the credentials.
func TestAPI_PageOnAnotherServer(t *testing.T) {
	s := serve(t, answer(200, "application/json", `[1]`, "Link", `<https://other.example/x>; rel=next`))
	m := s.declare(t, func(d *spec.APITool) { d.Pagination = &spec.Pagination{Type: "link"} })
	if _, err := m.Call(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "the next page is on another server, https://other.example") {
		t.Errorf("error %v", err)
	}
}

func TestAPI_Conflicts(t *testing.T) {
	x := []*spec.Variable{variable("x", "text"), variable("y", "text")}
	for want, d := range map[string]*spec.APITool{
		"body names z, which is not an input":             {Method: "POST", Body: "z"},
		"a GET request has no body":                       {Method: "GET", Body: "x", ToolBase: spec.ToolBase{Inputs: x[:1]}},
		"body_format: raw needs the key body":             {Method: "POST", BodyFormat: "raw"},
		"so the input y is not sent":                      {Method: "POST", Body: "x", ToolBase: spec.ToolBase{Inputs: x}},
		"names has z, which is not an argument":           {Method: "POST", Names: map[string]string{"z": "q"}},
		"a body in the format form is made of all inputs": {Method: "POST", BodyFormat: "form", Body: "x", ToolBase: spec.ToolBase{Inputs: x[:1]}},
		"pagination by page needs parameter":              {Pagination: &spec.Pagination{Type: "page"}},
		"pagination by cursor needs next":                 {Pagination: &spec.Pagination{Type: "cursor", Parameter: "c"}},
		"pagination by link uses the whole address":       {Pagination: &spec.Pagination{Type: "link", Parameter: "c"}},
		"pagination by offset does not read next":         {Pagination: &spec.Pagination{Type: "offset", Parameter: "c", Next: "n"}},
		"the header accept-encoding is set by qtype":      {HeaderParameters: []*spec.Variable{variable("a", "text")}, Names: map[string]string{"a": "accept-encoding"}},
		"invalid header":                                  {HeaderParameters: []*spec.Variable{variable("a", "text")}, Names: map[string]string{"a": "a b"}},
	} {
		d.Endpoint = "https://a.example/x"
		if _, err := tool.NewAPI(d, tool.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
