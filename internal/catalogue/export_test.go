package catalogue

import "sync/atomic"

// Reads counts the uses of the built-in catalogue.
var Reads atomic.Int32

func init() {
	read := builtin
	builtin = func() *library {
		Reads.Add(1)
		return read()
	}
}
