package diag

import "fmt"

// DidYouMean returns `; did you mean "x"?` with the candidate that is nearest to
// name; empty if none is near.
func DidYouMean(name string, candidates []string) string {
	if near := Nearest(name, candidates); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}
