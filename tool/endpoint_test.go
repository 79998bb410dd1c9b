package tool

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// No value changes the structure of the URL: the host, the number of path segments and
// the other query parameters.
func TestEndpoint_EscapesValues(t *testing.T) {
	e, err := parseEndpoint("https://shop.example/a/{x}/b?k={y}&z=1")
	if err != nil {
		t.Fatal(err)
	}
	piece := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"..", ".", "/", `\`, "%2e", "%2F", "?", "#", "&", "=", ";", "@", ":", "\x00", "\n", "a"}))
	rapid.Check(t, func(t *rapid.T) {
		value := strings.Join(rapid.SliceOfN(piece, 0, 5).Draw(t, "value"), "")
		u, err := e.fill(func(string) (string, error) { return value, nil })
		if err != nil {
			if value != "" && !hasDotDot(value) {
				t.Fatalf("%q was refused: %v", value, err)
			}
			return
		}
		if u.Host != "shop.example" || strings.Count(u.EscapedPath(), "/") != 3 || u.Path != "/a/"+value+"/b" || u.Fragment != "" {
			t.Fatalf("%q made %s", value, u)
		}
		if q := u.Query(); len(q) != 2 || q.Get("k") != value || q.Get("z") != "1" {
			t.Fatalf("%q made %v", value, q)
		}
	})
}

func FuzzEndpoint(f *testing.F) {
	f.Add("https://h/{a}/{b}?c={d}", "..")
	f.Add("http://[::1]:80/{a}.json#{b}", "x/y")
	f.Fuzz(func(t *testing.T, text, value string) {
		e, err := parseEndpoint(text)
		if err != nil {
			return
		}
		u, err := e.fill(func(string) (string, error) { return value, nil })
		if err == nil && (u.Hostname() == "" || (u.Scheme != "http" && u.Scheme != "https")) {
			t.Errorf("%q with %q made %s", text, value, u)
		}
	})
}
