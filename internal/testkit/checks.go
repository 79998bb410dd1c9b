package testkit

import (
	"flag"
	"os"
)

// LimitChecks lowers the number of random cases of each property from 100 to 30 if the
// race detector is on, which makes a case about eight times slower, and outside of CI. It is called before
// the flags are parsed: -rapid.checks overrides it.
func LimitChecks() {
	if (race || !InCI()) && flag.Lookup("rapid.checks") != nil {
		_ = flag.Set("rapid.checks", "30") // cannot fail: the flag is a number
	}
}

// InCI reports whether the tests run in CI, which checks all cases of a slow test. Elsewhere it may check some.
func InCI() bool { return os.Getenv("QTYPE_CI") != "" }

// Race reports whether the race detector is on, so that a slow test can do less.
func Race() bool { return race }

// AllowWaiting lets eight parallel tests of a package run at once instead of one for each
// processor: it is for packages whose parallel tests mostly wait, for leases, timeouts and servers. It is
// called before the flags are parsed: -parallel overrides it.
func AllowWaiting() {
	_ = flag.Set("test.parallel", "8") // cannot fail: the flag is a number
}
