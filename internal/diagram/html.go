package diagram

import "strings"

// htmlPage returns a page with the picture and the Mermaid text. It loads nothing.
func htmlPage(g *graph) string {
	var b strings.Builder
	b.WriteString("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n" +
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n")
	b.WriteString("<title>" + escapeXML(g.title) + "</title>\n<style>\n" +
		":root { color-scheme: light dark; }\n" +
		"body { margin: 0; font-family: system-ui, sans-serif; background: #fff; color: #1f2933; }\n" +
		"@media (prefers-color-scheme: dark) { body { background: #14181d; color: #e6ebf0; } }\n" +
		".picture { overflow-x: auto; }\n.picture svg { display: block; margin: 0 auto; }\n" +
		"details { margin: 1rem 2rem; }\npre { overflow-x: auto; }\n" +
		"</style>\n</head>\n<body>\n<div class=\"picture\">\n")
	b.WriteString(svg(g))
	b.WriteString("</div>\n<details>\n<summary>Mermaid</summary>\n<pre>")
	b.WriteString(strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(mermaid(g)))
	b.WriteString("</pre>\n</details>\n</body>\n</html>\n")
	return b.String()
}
