package temporal

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.temporal.io/sdk/converter"

	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/internal/memory/encrypted"
)

func key(t *testing.T, fill byte) encrypted.Key {
	t.Helper()
	k, err := encrypted.ParseKey(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{fill}, 32)))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestSealer: payloads and blobs do not contain what they encrypt, former keys decrypt, and what
// was modified, moved or not encrypted is an error.
func TestSealer(t *testing.T) {
	const text = "the secret of row 7"
	old, now := durable.Config{Keys: []encrypted.Key{key(t, 1)}}, durable.Config{Keys: []encrypted.Key{key(t, 2), key(t, 1)}}
	p, err := dataConverter(old).ToPayload(text)
	if err != nil || bytes.Contains(p.GetData(), []byte("secret")) {
		t.Fatalf("%v, %q", err, p.GetData())
	}
	var got string
	if err := dataConverter(now).FromPayload(p, &got); err != nil || got != text {
		t.Errorf("got %q, %v", got, err)
	}
	other := durable.Config{Keys: []encrypted.Key{key(t, 3)}}
	if err := dataConverter(other).FromPayload(p, &got); err == nil || !strings.Contains(err.Error(), "not among the given keys") {
		t.Errorf("another key: %v", err)
	}
	plain, err := converter.GetDefaultDataConverter().ToPayload(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := dataConverter(now).FromPayload(plain, &got); err == nil || !strings.Contains(err.Error(), "not encrypted, although a key is given") {
		t.Errorf("not encrypted: %v", err)
	}
	p.Data[len(p.Data)-1] ^= 1
	if err := dataConverter(now).FromPayload(p, &got); err == nil || !strings.Contains(err.Error(), "modified after encryption") {
		t.Errorf("modified: %v", err)
	}
	failure := failureConverter(now).ErrorToFailure(os.ErrPermission)
	if strings.Contains(failure.String(), os.ErrPermission.Error()) {
		t.Errorf("the failure is readable: %s", failure)
	}

	now.Blobs = t.TempDir()
	b := newBlobs(now)
	if err := b.write(t.Context(), "r/a", text); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(now.Blobs, "r", "a"))
	if err != nil || bytes.Contains(raw, []byte("secret")) {
		t.Errorf("%v, %q", err, raw)
	}
	if err := b.read(t.Context(), "r/a", &got); err != nil || got != text {
		t.Errorf("got %q, %v", got, err)
	}
	if err := os.Rename(filepath.Join(now.Blobs, "r", "a"), filepath.Join(now.Blobs, "r", "b")); err != nil {
		t.Fatal(err)
	}
	if err := b.read(t.Context(), "r/b", &got); err == nil || !strings.Contains(err.Error(), "moved from another place") {
		t.Errorf("moved: %v", err)
	}
}
