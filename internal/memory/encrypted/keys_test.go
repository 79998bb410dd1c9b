package encrypted_test

import (
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/memory/encrypted"
)

func TestParseKeys(t *testing.T) {
	one, two := strings.Repeat("0a", 32), strings.Repeat("0b", 32)
	if keys, err := encrypted.ParseKeys("\n" + one + "\n\n  " + two); err != nil || len(keys) != 2 {
		t.Errorf("got %d keys, %v", len(keys), err)
	}
	for _, wrong := range []string{"", " \n\n", one + "\nkey"} {
		if _, err := encrypted.ParseKeys(wrong); err == nil {
			t.Errorf("%q was accepted", wrong)
		}
	}
}
