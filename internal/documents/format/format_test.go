package format

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func convert(t *testing.T, name, content string) *Result {
	t.Helper()
	r, err := Convert(t.Context(), File{Name: name, Data: []byte(content)}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestConvert_Text(t *testing.T) {
	r := convert(t, "notes.md", "\xef\xbb\xbf# Title\r\n\r\ntext")
	if r.Text != "# Title\n\ntext" || r.Format != "markdown" || r.MediaType != "text/markdown" || r.Pages != nil {
		t.Errorf("got %+v", r)
	}
}
