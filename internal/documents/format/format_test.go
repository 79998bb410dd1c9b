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

func TestConvert_HTML(t *testing.T) {
	r := convert(t, "https://example.com/guide/start.html", `<!doctype html><title>Start &amp; go</title>
<nav><a href=/>Home</a> <a href=/docs>Docs</a></nav>
<main><h1>Start<a class=headerlink href=#start>¶</a></h1><p>Read the <a href="../next">next <b>page</b></a>.</p>
<ul><li>one<ul><li>two</li></ul></li></ul><table><tr><th>a<th>b<tr><td>1<td>2|3</table>
<pre><code class="language-go">x := 1
</code></pre></main><footer>© 2026</footer>`)
	want := "# Start\n\nRead the [next **page**](https://example.com/next).\n\n- one\n  - two\n\n| a | b |\n| --- | --- |\n| 1 | 2\\|3 |\n\n```go\nx := 1\n```"
	if r.Text != want || r.Title != "Start & go" {
		t.Errorf("title %q, text:\n%s", r.Title, r.Text)
	}
}
