//go:build !js

package wordvectors

import _ "embed"

//go:embed table.bin
var table string
