package spec_test

import (
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/spec"
)

func TestAPITool_Conflicts(t *testing.T) {
	inputs := []*spec.Variable{{ID: "q"}}
	for want, tool := range map[string]spec.APITool{
		"": {Endpoint: "https://shop.example/{q}", Method: "get"},
		`method: method "FETCH" is not one of GET, HEAD, OPTIONS, DELETE, PUT, POST, PATCH`: {Endpoint: "https://shop.example/", Method: "FETCH"},
		"endpoint: endpoint must begin with http:// or https://":                            {Endpoint: "shop.example/orders/{q}"},
		"endpoint: endpoint has no host":                                                    {Endpoint: "http://"},
		"endpoint: endpoint is not a URL":                                                   {Endpoint: "http://exa mple/"},
		`endpoint: endpoint: unmatched "{"`:                                                 {Endpoint: "http://shop.example/{q"},
		"endpoint: endpoint: {q} is allowed in the path or the query, not in the host":      {Endpoint: "http://{q}/"},
		"endpoint: endpoint names {nmae}, which is neither an input nor a parameter":        {Endpoint: "http://shop.example/{nmae}"},
		`headers: invalid header "a b"`:                                                     {Endpoint: "http://shop.example/", Headers: map[string]spec.Secret{"a b": spec.NewSecret("c")}},
		`method: method "FETCH" is not one of GET, HEAD, OPTIONS, DELETE, PUT, POST, PATCH; endpoint: endpoint must begin with http:// or https://; names: names has x, which is not an argument`: {
			Endpoint: "shop.example", Method: "FETCH", Body: "q", Names: map[string]string{"x": "y"}},
	} {
		tool.Inputs = inputs
		var got []string
		for _, c := range tool.Conflicts() {
			got = append(got, c.Key+": "+c.Problem)
		}
		if got := strings.Join(got, "; "); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestIsHTTPAddress(t *testing.T) {
	for text, want := range map[string]bool{
		"http://localhost:11434/v1": true, "HTTPS://shop.example": true, "http://[::1]:80/": true,
		"": false, "foo": false, "localhost:11434": false, "http://": false, "http://:80": false, "ftp://shop.example": false, "http://exa mple/": false, "://": false,
	} {
		if spec.IsHTTPAddress(text) != want {
			t.Errorf("%q: got %v", text, !want)
		}
	}
}
