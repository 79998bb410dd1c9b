package format

import (
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
)

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

func TestConvert_HTMLElements(t *testing.T) {
	for _, test := range []struct{ name, page, want string }{
		{"emphasis", "<p>a <b>bold </b><i>it</i>, <s>old</s> and <code>x`y</code>.", "a **bold** *it*, ~~old~~ and `` x`y ``."},
		{"spaces", "<p>one\n  two<span> </span>three<br>four", "one two three\nfour"},
		{"numbers", "<ol start=3><li><p>three</p><p>more</p><li>four</ol>", "3. three\n\n   more\n4. four"},
		{"quotation", "<blockquote><p>a</p><ul><li>b</ul></blockquote><p>c", "> a\n>\n> - b\n\nc"},
		{"text that looks like Markdown", "<p># no heading<p>1. no item<p>a_b*c<p>- no", "\\# no heading\n\n1\\. no item\n\na_b*c\n\n\\- no"},
		{"covered cells", "<table><tr><th colspan=2>h<th>i<tr><td rowspan=2>a<td>b<td>c<tr><td>d<td>e</table>", "| h |  | i |\n| --- | --- | --- |\n| a | b | c |\n|  | d | e |"},
		{"table for arrangement", "<table><tr><td><h1>Title</h1><p>text</td></tr></table>", "# Title\n\ntext"},
		{"image", `<p><img src=a.png alt="A lamp"> <img src=b.png>x`, "A lamp x"},
		{"scripts", "<p>a<script>alert(1)</script><style>p{}</style><p style='display: none'>no</p><p hidden>no</p>", "a"},
		{"code with backticks", "<pre>```\nx</pre>", "````\n```\nx\n````"},
		{"link without target", `<p><a href="javascript:x()">a</a> <a href="#b">b</a> <a href="c d">c</a>`, "a b [c](c%20d)"},
		{"link around a heading", "<a href=x><h2>Title</h2></a>", "## Title"},
		{"definitions", "<dl><dt>term<dd>meaning</dl>", "term\n\nmeaning"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := convert(t, "a.html", "<html><body>"+test.page).Text; got != test.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, test.want)
			}
		})
	}
}

// TestConvert_MainContent: what the page marks as content is kept, also where it has a
// header or links; the rest of the site is not.
func TestConvert_MainContent(t *testing.T) {
	const text = "The pilots of the harbour keep written records of depth, wind and current, which the office collects each morning. "
	long := strings.Repeat("<p>"+text+"</p>", 3)
	site := `<header><a href=/>Logo</a><form><input></form></header><div class="top-nav"><a href=1>One</a> <a href=2>Two</a></div>`
	end := `<aside><h3>Other pages</h3><a href=3>Three</a></aside><div id=cookie-banner>We use cookies</div><footer>Imprint</footer>`
	want := "# Title\n\n" + strings.TrimSpace(strings.Repeat(strings.TrimSpace(text)+"\n\n", 3))
	for name, page := range map[string]string{
		"main":        site + "<main><h1>Title</h1>" + long + "</main>" + end,
		"role":        site + "<div role=main><h1>Title</h1>" + long + "</div>" + end,
		"article":     site + "<article><header><h1>Title</h1></header>" + long + "</article>" + end,
		"no mark":     site + "<div><h1>Title</h1>" + long + "</div>" + end,
		"short main":  site + "<main></main><div><h1>Title</h1>" + long + "</div>" + end,
		"breadcrumbs": "<main><ul class=breadcrumbs><li><a href=/>Home</a></ul><h1>Title</h1>" + long + "</main>",
	} {
		if got := convert(t, "a.html", page).Text; got != want {
			t.Errorf("%s: got:\n%s", name, got)
		}
	}
	list := "<article><h2>One</h2>" + long + "</article><article><h2>Two</h2>" + long + "</article>"
	if got := convert(t, "a.html", site+list).Text; !strings.Contains(got, "## One") || !strings.Contains(got, "## Two") {
		t.Errorf("a page with several articles lost one:\n%s", got)
	}
}

// TestConvert_HTMLBombs: pages that would cost much end with an error, or soon.
func TestConvert_HTMLBombs(t *testing.T) {
	testkit.SkipWithRace(t)
	var formatting strings.Builder
	for range 500 {
		formatting.WriteString("<b><i><u><font color=red>")
	}
	for name, page := range map[string]string{
		"formatting elements":  formatting.String() + strings.Repeat("<p>x", 100_000),
		"deep elements":        strings.Repeat("<div>", 1_000_000),
		"deep lists":           strings.Repeat("<ul><li>x", 200),
		"deep quotations":      strings.Repeat("<blockquote>x", 400),
		"many elements":        strings.Repeat("<br>", 4_000_000),
		"wide table":           "<table>" + strings.Repeat("<tr><td colspan=1000 rowspan=1000>x<td>y", 3000),
		"boilerplate in depth": strings.Repeat("<div class=nav>", 400) + strings.Repeat("word ", 100_000),
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Convert(t.Context(), File{Name: "a.html", Data: []byte(page)}, Limits{Output: 4 << 20})
			if err == nil && len(r.Text) > 20*len(page) {
				t.Errorf("%d bytes of text", len(r.Text))
			}
		})
	}
}

func FuzzHTML(f *testing.F) {
	f.Add("<main><h1>T</h1><p>a <b>b</b><ul><li>c<table><tr><td>d</table>")
	f.Add("<table><tr><td colspan=9>a<pre>`</pre>")
	f.Fuzz(func(t *testing.T, page string) {
		r, err := Convert(t.Context(), File{Name: "a.html", Data: []byte(page)}, Limits{Output: 1 << 20})
		if err == nil && len(r.Text) > 1<<20 {
			t.Error("more text than the limit")
		}
	})
}
