//go:build !unix

package checkpoint

// noFollow is empty on systems without such flags.
const noFollow = 0
