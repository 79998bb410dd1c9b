//go:build !hugot

package hugot

// built is whether this build can run models: the library adds some 15 MB to the
// program, which most documents never need.
const built = false

func load(*folder) (runner, error) { return nil, nil }
